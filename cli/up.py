"""`capdex up`: a chain, a registry, a node and the example packages, on this machine, in one go.

Everything lies in one directory and is continued from there at the next start, also after a
SIGKILL: Anvil writes its state every second, the index repeats what it had not committed, and
publishing finds what has already happened.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from web3.types import RPCEndpoint

from capdex.errors import Code, UsageError
from capdex.net.ipfs import open_storage
from cli import logs
from cli.anvil import DEV_CHAIN_ID, pick_port, run_anvil
from cli.examples import Local, publish_examples
from cli.node_app import verdicts
from cli.output import Output
from cli.serving import hosts, listen, serve
from cli.settings import UpSettings
from indexer.node import Node, NodeOptions
from publisher import keys
from publisher.chain import Chain
from publisher.deploy import deploy
from publisher.files import write_atomically, write_private_file
from publisher.registry import Registry
from publisher.secret import Secret, read_passphrase

HOST: Final = "127.0.0.1"
FUNDS_WEI: Final = 1000 * 10**18  # play money
POLL_S: Final = 0.2  # heads come by websocket; this is the safety net
KUBO: Final = "http://127.0.0.1:5001"
MARKER: Final = ".capdex-up"  # only a directory with this file in it is ever wiped


def run_up(settings: UpSettings, output: Output | None = None) -> int:
    """Run everything until SIGINT (exit 130) or SIGTERM (143); raises why it could not start."""
    output = output or Output.open()
    home = settings.dir.absolute()
    with _only_one(home):
        if settings.fresh:
            _wipe(home)
        for part in ("keys", "blocks", "packages"):
            (home / part).mkdir(parents=True, exist_ok=True)
        with (home / "node.log").open("a", encoding="utf-8") as file:
            logs.set_up("logfmt", stream=file)
            return asyncio.run(_run(settings, home, output))


async def _run(settings: UpSettings, home: Path, output: Output) -> int:
    stopped, code = asyncio.Event(), 0

    def stop(number: int) -> None:
        nonlocal code
        code = 128 + number
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    starting = asyncio.create_task(_up(settings, home, output, stopped))
    stopping = asyncio.create_task(stopped.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if stopped.is_set() and not starting.done():
        output.say("")
        output.step("plan", "stopping", "again with `capdex up`, anew with `capdex up --fresh`")
        starting.cancel()
    stopping.cancel()
    with suppress(asyncio.CancelledError):
        await starting
    return code


async def _up(settings: UpSettings, home: Path, output: Output, stopped: asyncio.Event) -> None:
    """Start each part, publish the examples, say that all is ready, and wait."""
    async with AsyncExitStack() as parts:
        passphrase = _passphrase(home)
        account, author = _keys(home, passphrase)
        anvil = await parts.enter_async_context(
            run_anvil(
                state=home / "anvil.json",
                port=pick_port(settings.rpc_port),
                log=home / "anvil.log",
            )
        )
        output.step("ok", "chain", f"Anvil at {anvil.url}, chain id {DEV_CHAIN_ID}")
        chain = await parts.enter_async_context(
            Chain.connect(anvil.url, DEV_CHAIN_ID, state_dir=home / "state")
        )
        if await chain.balance(account.address) < FUNDS_WEI // 2:
            fund = RPCEndpoint("anvil_setBalance")
            await chain.endpoint.make_request(fund, [account.address, hex(FUNDS_WEI)])
        deployment, is_new = await deploy(chain, account, home / "deployments")
        output.step("ok", "registry", f"{deployment.registry}{', deployed now' if is_new else ''}")
        if is_new:
            _drop_index(home)  # it was of a chain that is gone
        ipfs = await _ipfs(settings.ipfs, home)
        listener = parts.enter_context(listen(HOST, pick_port(settings.port)))
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        db = f"sqlite:///{home / 'index.db'}"
        served = verdicts(serve_signed=False)
        node = await parts.enter_async_context(
            Node.open(
                NodeOptions(
                    rpc_urls=(anvil.url,),
                    chain_id=DEV_CHAIN_ID,
                    registry=deployment.registry,
                    db=db,
                    blocks=home / "blocks",
                    ipfs=() if ipfs.startswith("dir:") else (ipfs,),
                    serve=served,
                    start_block=deployment.block_number,
                    poll_interval_s=POLL_S,
                )
            )
        )
        running = await parts.enter_async_context(
            serve(node, listener, verdicts=served, allowed=hosts(HOST, ()))
        )
        output.step("ok", "node", f"{url}   log in {_short(home / 'node.log')}")
        info = {
            "rpc_url": anvil.url,
            "chain_id": DEV_CHAIN_ID,
            "registry": deployment.registry,
            "http_url": url,
            "mcp_url": f"{url}/mcp",
            "gateway_url": url,
            "ipfs": ipfs,
            "db_url": db,
            "account": account.address,
            "pid": os.getpid(),
        }
        storage = open_storage(ipfs)
        parts.push_async_callback(storage.close)
        local = Local(
            Registry(chain, deployment.registry, start_block=deployment.block_number),
            account,
            author,
            storage,
            node.surface.index,
            home / "packages",
        )
        folder = _examples(settings.examples)
        if folder is not None:
            await publish_examples(local, folder, output)
        _announce(home, info, output, parts)
        ending = asyncio.create_task(stopped.wait())
        await asyncio.wait({ending, running}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if running.done() and not running.cancelled():
            await running


def _announce(home: Path, info: dict[str, Any], output: Output, parts: AsyncExitStack) -> None:
    path = home / "up.json"
    write_atomically(path, (json.dumps(info, indent=2) + "\n").encode("utf-8"))
    parts.callback(path.unlink, missing_ok=True)

    def human() -> list[str]:
        bold = output.out.style
        return [
            "",
            f"  {bold('ready', 'green', bold=True)}   MCP server  {info['mcp_url']}",
            f"          status      {info['http_url']}/status",
            "          try         capdex search weather      (in a second terminal, here)",
            "          stop        Ctrl-C; everything is kept in "
            f"{_short(home)} for the next start",
        ]

    output.result("up", info, human=human, plain=[info["mcp_url"]])


@contextmanager
def _only_one(home: Path) -> Iterator[None]:
    home.mkdir(parents=True, exist_ok=True)
    lock = FileLock(home / "up.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise UsageError(
            f"another `capdex up` runs in {home}",
            Code.CONFIG,
            fix="use that one, stop it, or name another directory with --dir",
        ) from None
    try:
        yield
    finally:
        lock.release()


def _wipe(home: Path) -> None:
    """Forget an earlier run: only a directory that `up` made itself, and not its lock."""
    known = (home / MARKER).exists() or not any(x.name != "up.lock" for x in home.iterdir())
    if not known:
        raise UsageError(
            f"{home} was not made by `capdex up`",
            Code.CONFIG,
            fix="remove it yourself, or name another directory with --dir",
        )
    for path in home.iterdir():
        if path.name == "up.lock":
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _passphrase(home: Path) -> Secret:
    """The passphrase of the two key files, made once: they protect play money."""
    (home / MARKER).touch()
    path = home / "keys" / "passphrase"
    if not path.exists():
        write_private_file(path, secrets.token_urlsafe(24).encode("ascii") + b"\n")
    return read_passphrase(file=path)


def _keys(home: Path, passphrase: Secret) -> tuple[Any, keys.DidKey]:
    account, author = home / "keys" / "account.json", home / "keys" / "author.json"
    if not account.exists():
        keys.create_account(account, passphrase, light=True)
    if not author.exists():
        keys.create_did_key(author, passphrase, light=True)
    return keys.load_account(account, passphrase), keys.load_did_key(author, passphrase)


def _drop_index(home: Path) -> None:
    for path in home.glob("index.db*"):
        path.unlink()


async def _ipfs(choice: str, home: Path) -> str:
    """The spec that packages are published to: a running Kubo where wanted, else a directory."""
    directory = f"dir:{home / 'blocks'}"
    if choice == "dir":
        return directory
    try:
        _, writer = await asyncio.open_connection(HOST, 5001)
        writer.close()
    except OSError:
        if choice == "kubo":
            raise UsageError(
                f"no Kubo answers at {KUBO}",
                Code.IPFS_UNAVAILABLE,
                fix="start one with `ipfs daemon`, or leave out --ipfs kubo",
            ) from None
        return directory
    return KUBO if choice == "kubo" else directory


def _examples(named: Path | None) -> Path | None:
    """The examples to publish: those named, else those of this directory, if there are any."""
    if named is not None:
        return named
    for folder in (Path.cwd() / "examples", Path(__file__).resolve().parent.parent / "examples"):
        if any(folder.glob("*.acp.yaml")):
            return folder
    return None


def _short(path: Path) -> str:
    with suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)
