"""Anvil as a child process: a local chain whose state is kept in a file."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from capdex.errors import Code, Unavailable, UsageError
from capdex.net.files import write_atomically
from capdex.net.rpc.client import Rpc
from capdex_publisher.keys.public_accounts import DEV_CHAIN_ID

START_S: Final = 20.0  # 0.14 s on an idle machine; a large state file takes longer
STOP_S: Final = 5.0
FUNDS_WEI: Final = 1000 * 10**18  # play money
KEEP_S: Final = 0.25  # Anvil writes a draft every second
BESIDE: Final = Path(__file__).resolve().parents[3] / "node_modules"  # of a clone
_SYSTEMS: Final = {"Linux": "linux", "Darwin": "darwin"}
_MACHINES: Final = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


async def fund(rpc: Rpc, address: str) -> None:
    """Give an account of Anvil or of Hardhat's node FUNDS_WEI; raises RpcError of other chains."""
    await rpc.call("hardhat_setBalance", [address, hex(FUNDS_WEI)])
    await rpc.call("evm_mine", [])  # else no storage proof holds until the next block


def platform_name() -> str:
    """Return the name that Foundry's packages of npm have for this machine: `linux-amd64`."""
    system = _SYSTEMS.get(platform.system(), platform.system().lower())
    return f"{system}-{_MACHINES.get(platform.machine(), platform.machine())}"


def find_anvil(fetched: Path | None = None) -> Path:
    """Find the Anvil binary itself, not npm's launcher, so that the child's pid is Anvil's.

    Searched in `CAPDEX_ANVIL`, in the node_modules of a clone, at `fetched`, then on the PATH, but
    not in the working directory, which may be untrusted. Raises UsageError MISSING_PART if it is
    nowhere.
    """
    named = os.environ.get("CAPDEX_ANVIL")
    if named:
        return Path(named)
    package = BESIDE / "@foundry-rs" / f"anvil-{platform_name()}" / "bin" / "anvil"
    for installed in (package, fetched):
        if installed is not None and installed.is_file():
            return installed
    on_path = shutil.which("anvil")
    if on_path is None:
        raise UsageError(
            "Anvil, the local chain, is not installed",
            Code.MISSING_PART,
            why="CAPDEX_ANVIL names none, and none is on the PATH",
            fix="pip install 'capdex[local]', which fetches it",
        )
    return Path(on_path)


def pick_port(wanted: int) -> int:
    """Return `wanted` if that port is free, else any free port."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    raise UsageError("no port is free on this machine", Code.CONFIG)


@asynccontextmanager
async def run_anvil(
    *, state: Path, port: int, log: Path, program: Path | None = None
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """Run Anvil on loopback, yield its URL and process, stop it on exit; `state` keeps its state.

    `program` is its binary, that of `find_anvil` unless it is given. Anvil overwrites its state
    file every second, and a SIGKILL meanwhile leaves half a file. So it writes to a draft, and
    `state` is the newest complete draft. The historical states in its home directory are deleted.
    """
    draft, scratch = state.with_suffix(".draft"), state.with_suffix(".scratch")
    keep_draft(draft, state)  # the last draft of a run that was killed
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(exist_ok=True)
    started = scratch / "started.json"
    command = [
        str(program or find_anvil()), "--host", "127.0.0.1", "--port", str(port),
        "--chain-id", str(DEV_CHAIN_ID), "--accounts", "1", "--no-cors", "--silent",
        "--dump-state", str(draft), "--state-interval", "1", "--preserve-historical-states",
        "--config-out", str(started), *_load(state),
    ]  # fmt: skip
    with log.open("ab") as sink:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env={**os.environ, "HOME": str(scratch)},
                start_new_session=True,  # Ctrl-C reaches only us; we stop Anvil
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        except OSError as error:
            what, fix = f"{command[0]} cannot be started", "correct CAPDEX_ANVIL, or unset it"
            raise UsageError(what, Code.CONFIG, why=error.strerror or "", fix=fix) from None
    url = f"http://127.0.0.1:{port}"
    keeping = asyncio.create_task(_keep_on(draft, state))
    try:
        await _wait_until_up(process, started, log)
        yield url, process
    finally:
        keeping.cancel()
        await stop(process)
        keep_draft(draft, state)
        shutil.rmtree(scratch, ignore_errors=True)


async def stop(process: asyncio.subprocess.Process) -> None:
    """End a child by SIGTERM, on which Anvil writes its state; by SIGKILL after STOP_S."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _keep_on(draft: Path, state: Path) -> None:
    """Keep each new draft until cancelled."""
    kept = 0.0
    while True:
        await asyncio.sleep(KEEP_S)
        with suppress(UsageError):  # for example a full disk: the older state stays
            kept = await asyncio.to_thread(keep_draft, draft, state, kept)


def keep_draft(draft: Path, state: Path, kept: float = 0.0) -> float:
    """Replace `state` by the draft if it is complete and newer than the one of `kept`.

    No text in it has braces, so that the beginning of a draft has more that open than that close.
    It is not read as JSON, which takes seven times its size of memory.
    """
    try:
        written = draft.stat().st_mtime
        if written == kept:
            return kept
        data = draft.read_bytes()
    except FileNotFoundError:
        return kept
    if not data or data.count(b"{") != data.count(b"}"):
        return kept
    write_atomically(state, data)
    return written


def _load(state: Path) -> list[str]:
    return ["--load-state", str(state)] if state.exists() else []


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace")[-500:].strip().splitlines()
    return lines[-1] if lines else ""


async def _wait_until_up(process: asyncio.subprocess.Process, started: Path, log: Path) -> None:
    """Wait until Anvil has its port: then it writes `started`. Another may answer at that port."""
    for _ in range(int(START_S / 0.05)):
        if process.returncode is not None:
            raise Unavailable(
                f"Anvil ended at once with code {process.returncode}",
                Code.RPC_UNAVAILABLE,
                why=_last_line(log),
                fix=f"run it again, or see {log}; `capdex up --fresh` starts anew",
            )
        if await asyncio.to_thread(started.exists):
            return
        await asyncio.sleep(0.05)
    why = f"it has not opened its port after {START_S:g} s"
    raise Unavailable("Anvil does not start", Code.RPC_UNAVAILABLE, why, f"see {log}")


def _die_with_parent() -> None:
    # PR_SET_PDEATHSIG: if `capdex up` is killed, the kernel ends Anvil, too.
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
