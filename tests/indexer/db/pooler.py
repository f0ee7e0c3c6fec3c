"""A pooler before PostgreSQL, as PgBouncer is: of sessions, or of transactions.

It speaks what psycopg needs of the protocol of PostgreSQL (manual, part VII, chapter 55).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Thread

IDLE = b"ZI"  # ReadyForQuery outside of a transaction


class Session:
    """A session of the server, which one client at a time may use, and its greeting."""

    def __init__(self, server: Path, startup: bytes) -> None:
        if b"\0options\0" in startup:
            raise EOFError  # PgBouncer refuses it
        self.lock = Lock()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(server))
        self.socket.sendall(startup)
        said = list(read_answer(self.socket))
        # A pooler tells a number of its own as the process: the key by which it is cancelled.
        own_key = b"K" + struct.pack("!iii", 12, 77, 77)
        self.greeting = b"".join(own_key if x[:1] == b"K" else x for x in said)

    def ask(self, request: bytes, client: socket.socket) -> bool:
        """Pass a request on and its answer back; whether a transaction is open after it."""
        self.socket.sendall(request)
        for message in read_answer(self.socket):
            client.sendall(message)
        return message[:1] + message[-1:] != IDLE


def read(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_message(stream: socket.socket) -> bytes:
    head = read(stream, 5)
    return head + read(stream, struct.unpack("!i", head[1:])[0] - 4)


def read_answer(stream: socket.socket) -> Iterator[bytes]:
    """The server's messages up to ReadyForQuery."""
    message = b""
    while message[:1] != b"Z":
        yield (message := read_message(stream))


@contextmanager
def pooling(server: Path, folder: Path, *, transactions: bool) -> Iterator[None]:
    """A pooler at the same socket's name in `folder`; with `transactions` all share one session."""
    shared: list[Session] = []

    def serve(client: socket.socket) -> None:
        size = read(client, 4)
        startup = size + read(client, struct.unpack("!i", size)[0] - 4)
        if not transactions or not shared:
            shared.append(Session(server, startup))
        session = shared[-1]
        client.sendall(session.greeting)
        while True:
            request = read_message(client)
            with session.lock:
                is_open = True
                while is_open:
                    while request[:1] != b"X" and not is_whole(request):
                        request += read_message(client)
                    if request[:1] == b"X":
                        return
                    is_open = session.ask(request, client)
                    request = read_message(client) if is_open else b""

    def is_whole(request: bytes) -> bool:
        """Whether a query, or the Sync after the messages of a prepared one, is its end."""
        return request[:1] == b"Q" or request.endswith(b"S\0\0\0\4")

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            Thread(target=handle, args=(client,), daemon=True).start()

    def handle(client: socket.socket) -> None:
        with client:
            try:
                serve(client)
            except (EOFError, OSError):
                return

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / server.name))
        listener.listen()
        Thread(target=accept, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
    for session in shared:
        session.socket.close()
