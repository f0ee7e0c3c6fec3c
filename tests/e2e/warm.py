"""Runs commands in forks of a process that has imported capdex: the second of imports is paid once.

Each command is still a process of its own, with its own arguments, folder, environment and streams;
only `exec` is left out. A connection on the Unix socket named on the command line is one command:
JSON `{argv, cwd, env, session}` with the descriptors of stdout and stderr, and of stdin where there
is one. `argv` is what an interpreter takes; `session`: it leads a process group of its own, and
waits at its end for its threads, as any interpreter does. The answer is the process id, then the
exit status as `waitpid` gives it, a line each. Ends when its stdin does, and on Linux all its forks
with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

WARM = (
    "aiohttp",
    "mcp",
    "web3",
    "capdex_cli.commands.author.publish",
    "capdex_cli.commands.find.query",
    "capdex_cli.commands.use.install",
    "capdex_cli.config.load",
    "capdex_cli.main",
    "capdex_publisher.publish.publish",
    "capdex_publisher.registry.registry",
    "capdex_publisher.registry.lifecycle",
)
SET_PDEATHSIG = 1  # of prctl
MAX_REQUEST_BYTES = 1 << 20


def serve(path: str, *more: str) -> None:
    """Fork one process a connection, until stdin ends."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as capdex_cli.main does, before numpy is imported
    for name in (*WARM, *more):
        importlib.import_module(name)
    importlib.import_module("templates").compile_now()
    # Keys of tests guard nothing, and the usual work factor takes 0.05 s for each use of one.
    keystore: Any = importlib.import_module("capdex_publisher.keys.keystore")
    keystore.LIGHT_SCRYPT_N = 1024
    gc.freeze()  # a fork that looks for garbage would copy each page of them
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    while True:
        ready, _, _ = select.select([listener.fileno(), 0], [], [])
        if 0 in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(connection)
            os._exit(0)
        connection.close()


def answer(connection: socket.socket) -> None:
    """Run the command that a connection asks for, and tell how it ended."""
    end_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    body, descriptors, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 3)
    while not body.endswith(b"\n"):
        body += connection.recv(MAX_REQUEST_BYTES)
    request = json.loads(body)
    pid = os.fork()
    if pid == 0:
        connection.close()
        run(request, descriptors)
    connection.sendall(b"%d\n" % pid)
    _, status = os.waitpid(pid, 0)
    connection.sendall(b"%d\n" % status)


def end_with_parent() -> None:
    """Let the kernel kill this process when the one that forked it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL)


def run(request: dict[str, Any], descriptors: list[int]) -> None:
    """Become `python ARGV`; never returns."""
    end_with_parent()
    if request.get("session"):
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    out, err, given = [*descriptors, os.open(os.devnull, os.O_RDONLY)][:3]
    for source, target in ((given, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    os.closerange(3, 64)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - ends with the process
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    code = 0
    try:
        interpret(request["argv"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        if not request.get("session"):
            os._exit(code)
    sys.exit(code)


def interpret(argv: list[str]) -> None:
    """Do what an interpreter does with `-m MODULE …`, `-c CODE …` or `SCRIPT …`."""
    first, *rest = argv
    sys.path[0] = str(Path.cwd() if first in ("-m", "-c") else Path(first).parent)
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = [first, *rest[1:]]
        exec(rest[0], {"__name__": "__main__"})  # noqa: S102 - a test's own
    else:
        sys.argv = argv
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    serve(*sys.argv[1:])
