"""Commands in forks of one process that has imported all: the second of imports is paid once."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeVar

import pytest

T = TypeVar("T")

PATIENCE_S = 90.0  # a loaded machine is slow, not broken
# A Python that does what another one has begun: it has imported all, and forks.
PROGRAM = """#!/bin/sh
'''exec' "{python}" -IS "$0" "$@"
'''
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({path!r})
argv = {words!r} + sys.argv[1:]
request = {{"argv": argv, "cwd": os.getcwd(), "env": dict(os.environ)}}
body = json.dumps(request).encode() + b"\\n"
sent = socket.send_fds(connection, [body], [1, 2, 0])
connection.sendall(body[sent:])
_, status = connection.makefile("rb")
sys.exit(os.waitstatus_to_exitcode(int(status)))
"""
# What commands that run on import besides.
SERVED = (
    "anyio._backends._asyncio",
    "capdex_cli.commands.run.node",
    "capdex_cli.commands.run.up",
    "capdex_cli.commands.use.router",
    "capdex_cli.devnet.up",
    "capdex_cli.node.serve",
    "capdex_router.faces.server",
    "eth_hash.backends.pycryptodome",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)


def wait_until(condition: Callable[[], T], what: str = "it", within: float = PATIENCE_S) -> T:
    """The first true value of `condition`; fails the test after `within` seconds."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"waited {within:.0f} s in vain for {what}")
        time.sleep(0.01)
    return value


class Started:
    """A command in a fork of the warm process, with what tests use of `subprocess.Popen`."""

    def __init__(self, args: Sequence[str], connection: socket.socket) -> None:
        self.args = list(args)
        self.returncode: int | None = None
        self._connection = connection
        self._lines = connection.makefile("rb")
        self.pid = int(self._lines.readline())

    def poll(self) -> int | None:
        """The exit code, once it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            # Nothing: Ctrl-C ended the warm process, and with it what it had forked.
            status = int(self._lines.readline() or signal.SIGKILL)
            self.returncode = os.waitstatus_to_exitcode(status)
            self._lines.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it alone, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and its exit code is on its way
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL to it alone."""
        self.send_signal(signal.SIGKILL)


class Warm:
    """Runs commands, each in a fork of one process that has imported all (warm.py).

    `python` and `capdex` are programs that have their work done so, with their own arguments,
    folder, environment and streams: a host starts them as it starts any. A signal to them alone
    does not reach the fork; the end of its stdin does.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "warm"
        script = Path(__file__).with_name("warm.py")
        self._popen = subprocess.Popen(
            [sys.executable, str(script), str(self._path), *SERVED], stdin=subprocess.PIPE
        )
        wait_until(self._path.exists, "the warm process")
        self.python = self._write(folder / "python")
        self.capdex = self._write(folder / "capdex", "-m", "capdex")

    def __call__(
        self, args: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """One command; raises TimeoutExpired when it takes longer than any may."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            started = self.start(args, cwd, env, out, err)
            try:
                code = started.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                started.kill()
                raise
            said = [self._read(stream) for stream in (out, err)]
        return subprocess.CompletedProcess(started.args, code, said[0], said[1])

    def start(
        self,
        args: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        out: IO[bytes],
        err: IO[bytes],
        *,
        session: bool = False,
    ) -> Started:
        """One command that runs on; `session`: in a process group of its own."""
        argv = ["-m", "capdex", *args]
        request = {"argv": argv, "cwd": str(cwd), "env": dict(env), "session": session}
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        wait_until(lambda: connection.connect_ex(str(self._path)) == 0, "the warm process")
        body = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [body], [out.fileno(), err.fileno()])
        connection.sendall(body[sent:])
        return Started(args, connection)

    def _write(self, path: Path, *words: str) -> str:
        text = PROGRAM.format(python=sys.executable, path=str(self._path), words=list(words))
        path.write_text(text, "utf-8")
        path.chmod(0o755)
        return str(path)

    @staticmethod
    def _read(stream: IO[bytes]) -> str:
        stream.seek(0)
        return stream.read().decode()

    def stop(self) -> None:
        """End the process: it goes when its stdin does."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        self._popen.wait(PATIENCE_S)
