"""Clients that hold connections: silent ones, halves of requests, answers that nobody reads.

`Hostile(port, count)` opens `count` connections in a process of its own, a fifth of each kind, and
opens a closed one again, until the `with` block ends. Printed: how many are open.
"""

from __future__ import annotations

import multiprocessing
import resource
import select
import socket
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType

# As a proxy names them: a node that trusts it counts them as one client.
HOST = b"Host: localhost\r\nX-Forwarded-For: 198.51.100.66\r\n"
PAGE = b"GET /c/note.json HTTP/1.1\r\n" + HOST + b"\r\n"
KINDS = {
    "silent": b"",
    "half a head": b"GET /v1/resolve?cap_uri=did:nuwa:cap:note HTTP/1.1\r\n" + HOST,
    "half a body": b"POST /mcp HTTP/1.1\r\n" + HOST + b"Content-Length: 500\r\n\r\n{",
    "no reader": PAGE * 16,
    "pipelined": PAGE * 200,
}
SMALL_BUFFER = 4096
MAX_NEW_PER_S = 100


class Hostile:
    """A process with hostile connections; `pressing` returns when it has opened all once."""

    def __init__(self, port: int, count: int, kinds: tuple[str, ...] = tuple(KINDS)) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(
            target=_press, args=(port, count, kinds, theirs), daemon=True
        )

    def __enter__(self) -> Hostile:
        self._process.start()
        return self

    def pressing(self, within_s: float = 60.0) -> None:
        """Wait until every connection was opened once."""
        assert self._ours.poll(within_s), "the hostile connections were not opened"
        self._ours.recv()

    def end(self) -> int:
        """Close all; return how many connections were opened in all."""
        self._ours.send(None)
        opened = self._ours.recv()
        self._process.join()
        return int(opened)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()


def _press(port: int, count: int, kinds: tuple[str, ...], control: Connection) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    poll = select.poll()
    held: dict[int, tuple[socket.socket, str]] = {}
    missing = [kinds[i % len(kinds)] for i in range(count)]
    opened, said, began = 0, False, time.monotonic()
    while not control.poll():
        # A client that is cut comes back, at a bounded rate after the first time.
        allowed = count + (time.monotonic() - began) * MAX_NEW_PER_S
        for _ in range(min(len(missing), 100, max(0, int(allowed - opened)))):
            kind = missing.pop()
            opened += 1
            connection = _open(port, KINDS[kind])
            held[connection.fileno()] = connection, kind
            # Of a client that does not read only the end is looked for.
            poll.register(connection, 0 if kind == "no reader" else select.POLLIN)
        if opened >= count and not said:
            said = True
            control.send(None)
        for descriptor, events in poll.poll(10):
            connection, kind = held[descriptor]
            with suppress(OSError):
                if events == select.POLLIN and connection.recv(1 << 16):
                    continue
            poll.unregister(connection)
            del held[descriptor]
            connection.close()
            missing.append(kind)
    control.send(opened)


def _open(port: int, data: bytes) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
    connection.setblocking(False)
    with suppress(BlockingIOError):
        connection.connect(("127.0.0.1", port))
    if data:
        with suppress(OSError):
            connection.setblocking(True)
            connection.settimeout(0.2)
            connection.sendall(data)
    connection.setblocking(False)
    return connection
