"""A node process whose clients hang up halfway, and send what is not HTTP: its log stays short.

Every line that a client can cause is counted or rate-limited, and none is a traceback.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capdex_indexer.store import Deployment, Store

TIMES = 300
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
JSON = b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
MODERN = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + JSON
CUT = {
    "a body cut off": POST + b"Content-Length: 500\r\n\r\n" + PING,
    "a body cut off, without a handshake": POST + MODERN + b"Content-Length: 500\r\n\r\n" + PING,
    "a body that never begins": POST + b"Content-Length: 500\r\n\r\n",
    "a chunked body cut off": POST + b"Transfer-Encoding: chunked\r\n\r\n28\r\n" + PING,
    "a chunk without a size": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + PING,
    "a body of another page": POST.replace(b"/mcp", b"/health") + b"Content-Length: 9\r\n\r\n{",
    "a call whose answer nobody reads": POST + b"Content-Length: %d\r\n\r\n" % len(PING) + PING,
    "a page that nobody reads": b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 9,
    "half a head": POST[:40],
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 \r\n\r\n",
    "another protocol": b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\n\r\n",
}


class NodeProcess:
    """`capdex node --role reader` as a process, and the lines of its log."""

    def __init__(self, folder: Path) -> None:
        db = f"sqlite:///{folder / 'index.db'}"
        Store.open(db, Deployment(31337, "0x" + "00" * 20, 0, bytes(32))).close()
        command = ("node", "--role", "reader", "--db", db, "--blocks", str(folder / "blocks"))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "capdex", *command, "--port", "0", "--log-format", "json"],
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ | {"CAPDEX_HOME": str(folder / "home")},
        )
        self.lines: list[dict[str, Any]] = []
        self._read: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._follow).start()
        while (line := self._read.get(timeout=60)).get("event") != "listening":
            pass
        self.port = int(line["url"].rpartition(":")[2])

    def _follow(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                self.lines.append(json.loads(line))
                self._read.put(self.lines[-1])

    def send(self, data: bytes, *, abruptly: bool) -> None:
        """Send bytes and hang up: with a FIN, or with a reset."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(data)
            if abruptly:
                reset = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)

    def ask(self, data: bytes) -> bytes:
        """Send a request that ends its connection, and return the reply."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))

    def end(self) -> list[dict[str, Any]]:
        """Stop the node; the lines of its log between `listening` and `stopping`."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=30) == 143
        events = [line["event"] for line in self.lines]
        return self.lines[events.index("listening") + 1 : events.index("stopping")]


@pytest.fixture
def node(folder: Path) -> Iterator[NodeProcess]:
    started = NodeProcess(folder)
    yield started
    started.process.kill()
    started.process.wait()


def test_clients_that_hang_up_cost_a_few_lines_and_no_traceback(node: NodeProcess) -> None:
    for data in CUT.values():
        for i in range(TIMES):
            node.send(data, abruptly=i % 2 == 0)
    health = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert node.ask(health).startswith(b"HTTP/1.1 200 ")
    lines = node.end()
    assert [x for x in lines if "exception" in x or x["level"] == "error"][:1] == []
    assert len(lines) <= len(CUT), lines[:20]
    told = {x["kind"] for x in lines if x["event"] == "faults of clients"}
    assert {"cut off", "not HTTP", "another protocol"} <= told
