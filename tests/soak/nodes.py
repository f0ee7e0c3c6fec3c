"""Nodes that are killed hundreds of times: real processes, forked from one that imported all.

Everything here ends with the `with` block that made it, and with this process, however that ends.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).absolute().parents[2]
PATIENCE_S = 90.0  # a loaded machine is slow, not broken
LOOK_S = 0.05  # each look opens a connection, or asks the node, and takes from its time
USED = (
    "capdex_cli.node.serve",
    "anyio._backends._asyncio",
    "eth_hash.backends.pycryptodome",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)
# Ends with the process that started it (PR_SET_PDEATHSIG).
TIED = (
    "import ctypes, os, sys\n"
    "if sys.platform == 'linux': ctypes.CDLL(None).prctl(1, 15)\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)

T = TypeVar("T")


class Stuck(AssertionError):
    """Something that must come did not come."""


def wait_until(condition: Callable[[], T], what: str, within: float = PATIENCE_S) -> T:
    """The first true value of `condition`; raises Stuck."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Stuck(f"waited {within:.0f} s in vain until {what}")
        time.sleep(LOOK_S)
    return value


@contextmanager
def anvil(*options: str) -> Iterator[str]:
    """The URL of a chain; what it keeps of old states in its home, gigabytes, goes with it."""
    binary = next(ROOT.glob("node_modules/@foundry-rs/anvil-*/bin/anvil*"))
    command = [str(binary), "--host", "127.0.0.1", "--port", "0", "--no-cors", *options]
    with tempfile.TemporaryFile() as said, tempfile.TemporaryDirectory(prefix="anvil-") as home:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", TIED, *command],
            env={**os.environ, "HOME": home},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )

        def address() -> str:
            text = os.pread(said.fileno(), 1 << 20, 0).decode("utf-8", "replace")
            _, _, rest = text.partition("Listening on ")
            return rest.split()[0] if "\n" in rest else ""

        try:
            yield f"http://{wait_until(address, 'Anvil listens')}"
        finally:
            process.terminate()
            process.wait()


@dataclass
class Running:
    """A node; `out` is a file with all it said."""

    pid: int
    ended: socket.socket
    out: Path

    @property
    def alive(self) -> bool:
        if self.ended.fileno() < 0:
            return False
        readable, _, _ = select.select([self.ended], [], [], 0)
        return not readable

    @property
    def said(self) -> str:
        """All it said, and the report of a fault of its own."""
        text = self.out.read_text("utf-8", "replace")
        _, _, report = text.rpartition("fix: report it with ")
        if report and (path := Path(report.split()[0])).exists():
            text += path.read_text("utf-8", "replace")
        return text

    def wait_for(self, condition: Callable[[], T], what: str, within: float = PATIENCE_S) -> T:
        """As `wait_until`; raises Stuck at once when the node ends."""

        def unless_ended() -> T:
            value = condition()
            if not value and not self.alive:
                raise Stuck(f"the node ended before {what}")
            return value

        try:
            return wait_until(unless_ended, what, within)
        except Stuck as stuck:
            raise Stuck(f"{stuck}:\n{self.said[-4000:]}") from None

    def kill(self) -> None:
        """SIGKILL, and wait until the kernel is done with it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)  # its workers end by themselves, as they must
        self.ended.settimeout(PATIENCE_S)
        while self.ended.recv(64):
            pass
        self.ended.close()


class Nodes:
    """Starts nodes; made by `open`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._socket = folder / "warm"
        self._started = 0
        self._running: list[Running] = []

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Nodes]:
        """Nodes in a folder of their own; whatever still runs at the end is killed."""
        with tempfile.TemporaryDirectory(prefix="soak-") as folder, ExitStack() as stack:
            self = cls(Path(folder))
            script = ROOT / "tests" / "e2e" / "warm.py"
            warm = subprocess.Popen(
                [sys.executable, str(script), str(self._socket), *USED], stdin=subprocess.PIPE
            )
            stack.callback(warm.wait)
            assert warm.stdin is not None
            stack.callback(warm.stdin.close)
            stack.callback(self._kill_all)
            wait_until(self._socket.exists, "the warm process is there")
            yield self

    def start(self, *arguments: str) -> Running:
        """`capdex node` with these arguments, as a process of its own."""
        self._started += 1
        self._running = [one for one in self._running if one.ended.fileno() >= 0]
        out = self.folder / f"node-{self._started % 8}.log"
        argv = ["-m", "capdex", "node", "--port", "0", "--log-format", "json", *arguments]
        home = {"HOME": str(self.folder), "CAPDEX_HOME": str(self.folder / "home")}
        env = {k: v for k, v in os.environ.items() if not k.startswith("CAPDEX_")} | home
        request = {"argv": argv, "cwd": str(self.folder), "env": env, "session": True}
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(PATIENCE_S)
        wait_until(lambda: connection.connect_ex(str(self._socket)) == 0, "it takes connections")
        body = json.dumps(request).encode() + b"\n"
        with out.open("wb") as sink:
            sent = socket.send_fds(connection, [body], [sink.fileno(), sink.fileno()])
        connection.sendall(body[sent:])
        digits = b""
        while not digits.endswith(b"\n"):
            digits += connection.recv(1)
        self._running.append(Running(int(digits), connection, out))
        return self._running[-1]

    def _kill_all(self) -> None:
        for one in self._running:
            if one.alive:
                one.kill()

    def forget(self, path: Path) -> None:
        """Remove what a node left at a path: a directory, or a database with its companions."""
        for one in path.parent.glob(f"{path.name}*"):
            shutil.rmtree(one) if one.is_dir() else one.unlink()
