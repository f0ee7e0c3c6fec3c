"""`capdex node --workers`: several processes answer as one node, and end with it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from capdex.net.ipfs.block_store import BlockDirectory

pytestmark = pytest.mark.real

PAGES = ("/health", "/ready", "/status", "/status?max_lag=0", "/status?max_lag=never", "/metrics")


class Served:
    """A node with one published package that it serves, and its workers."""

    def __init__(self, process: Any, connections: ExitStack) -> None:
        self.process, self.url = process, process.url()
        self._connections = connections

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines of an event."""
        lines = [line for line in self.process.stderr.splitlines() if line.startswith("{")]
        return [x for x in map(json.loads, lines) if x["event"] == name]

    def workers(self, count: int) -> list[int]:
        """The process ids of the workers, once so many have been started in all."""
        self.process.wait_for(lambda: len(self.events("worker serves")) >= count, "workers")
        return [x["pid"] for x in self.events("worker serves")]

    def connect(self) -> http.client.HTTPConnection:
        """A client of the node, closed at the end of the test."""
        client = http.client.HTTPConnection(str(urlsplit(self.url).netloc), timeout=30)
        return self._connections.enter_context(closing(client))


def ask(connection: http.client.HTTPConnection, path: str) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of one request on a connection that stays open."""
    connection.request("GET", path)
    reply = connection.getresponse()
    headers = {key.lower(): value for key, value in reply.getheaders()}
    return reply.status, headers, reply.read()


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Processes that do nothing meanwhile: connections go to the others."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    """Closes the connections of a test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def start(
    shell: Any,
    anvil: Any,
    chains: Any,
    making: Any,
    http: Callable[..., tuple[int, bytes]],
    connections: ExitStack,
) -> Callable[..., Served]:
    """Start a node whose index has the package `shared`."""
    registry = chains.Registry.deploy(anvil.url)
    data = making.package_bytes("shared", publisher=registry.publisher)
    BlockDirectory(shell / "blocks").write(data)
    registry.publish([("shared", "1.0.0", data)])

    def go(db: str, *args: str) -> Served:
        node = shell.start(
            "node", "--rpc-url", anvil.url, "--chain-id", "31337", "--registry", registry.address,
            "--db", db, "--blocks", str(shell / "blocks"), "--ipfs", f"dir:{shell / 'blocks'}",
            "--port", "0", "--log-format", "json", *args,
        )  # fmt: skip
        served = Served(node, connections)

        def serves() -> bool:
            state = json.loads(http(f"{served.url}/status")[1])
            return state["status"] == "ready" and state["releases"]["listed"] == 1

        served.process.wait_for(serves, "it served the package")
        return served

    return go


def test_a_worker_answers_while_the_process_of_the_node_stands_still(
    start: Callable[..., Served], postgres_url: str
) -> None:
    node = start(postgres_url, "--workers", "2")
    own = ask(node.connect(), "/c/shared.json")
    (worker,) = node.workers(1)
    with stopped(node.process.popen.pid):
        assert ask(node.connect(), "/c/shared.json") == own
    with stopped(worker):
        assert ask(node.connect(), "/c/shared.json") == own


def test_every_process_gives_the_same_answers_about_the_node(
    start: Callable[..., Served], shell: Any
) -> None:
    node = start(f"sqlite:///{shell / 'index.db'}", "--workers", "2")
    (worker,) = node.workers(1)
    with stopped(node.process.popen.pid):
        theirs = node.connect()
        ask(theirs, "/c/shared.json")  # this connection is the worker's from now on
    with stopped(worker):
        ours = node.connect()
        ask(ours, "/c/shared.json")

    def without_times(page: tuple[int, dict[str, str], bytes]) -> Any:
        changing = rb'(capdex_(lag_seconds|rpc_requests_total).*|"lag_seconds":[^,]+)'
        headers = {key: value for key, value in page[1].items() if key != "content-length"}
        return page[0], headers, re.sub(changing, b"", page[2])

    for path in PAGES:
        assert without_times(ask(theirs, path)) == without_times(ask(ours, path))
    counts = [
        sum(int(float(x)) for x in re.findall(rb"^capdex_rpc_requests_total\S* (\S+)", body, re.M))
        for _, _, body in (ask(each, "/metrics") for each in (ours, theirs, ours, theirs))
    ]
    assert counts == sorted(counts)  # a counter never goes back from one process to another
    assert counts[0] > 0


def test_a_worker_that_ends_is_started_again(start: Callable[..., Served], shell: Any) -> None:
    node = start(f"sqlite:///{shell / 'index.db'}", "--workers", "2")
    (first,) = node.workers(1)
    os.kill(first, signal.SIGKILL)
    second = node.workers(2)[-1]
    (ended,) = node.events("worker ended")
    assert (ended["worker"], ended["code"], ended["level"]) == (2, -signal.SIGKILL, "warning")
    assert second != first
    with stopped(node.process.popen.pid):
        assert ask(node.connect(), "/c/shared.json")[0] == 200


def test_workers_end_with_a_node_that_is_killed(
    start: Callable[..., Served], shell: Any, eventually: Callable[..., Any]
) -> None:
    node = start(f"sqlite:///{shell / 'index.db'}", "--workers", "3")
    node.workers(2)
    node.process.popen.kill()

    def refused() -> bool:
        try:
            node.connect().connect()
        except ConnectionRefusedError:
            return True
        return False

    eventually(refused, "the end of the workers, which listen at the same address")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_node_and_its_workers_end_in_time_though_clients_hang(
    start: Callable[..., Served], shell: Any, number: int, code: int
) -> None:
    node = start(f"sqlite:///{shell / 'index.db'}", "--workers", "3")
    workers = node.workers(2)
    every = {node.process.popen.pid, *workers}
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"
    clients = []
    for one in every:
        with stopped(*every - {one}):
            client = node.connect()
            ask(client, "/c/shared.json")
            client.sock.sendall(head)
            clients.append(client)
    assert node.process.stop(number) == code
    assert "cut off" not in node.process.stderr
    assert node.events("worker ended") == []
    assert node.events("stopped") != []
    with pytest.raises(ConnectionRefusedError):
        node.connect().connect()


def test_a_reader_has_workers_too(
    start: Callable[..., Served],
    shell: Any,
    connections: ExitStack,
    eventually: Callable[..., Any],
) -> None:
    db = f"sqlite:///{shell / 'index.db'}"
    start(db)
    options = ("--blocks", str(shell / "blocks"), "--port", "0", "--log-format", "json")
    process = shell.start("node", "--role", "reader", "--db", db, *options, CAPDEX_WORKERS="2")
    reader = Served(process, connections)
    reader.workers(1)
    with stopped(reader.process.popen.pid):
        client = reader.connect()
        assert ask(client, "/c/shared.json")[0] == 200
    status, _, body = ask(client, "/status")
    assert (status, json.loads(body)["role"]) == (200, "reader")
    # On a machine under load a heartbeat of the writer may be late for a moment.
    eventually(lambda: ask(client, "/ready")[0] == 200, "a ready reader")


def test_a_worker_that_is_still_starting_ends_with_its_node(
    start: Callable[..., Served], shell: Any, connections: ExitStack
) -> None:
    db = f"sqlite:///{shell / 'index.db'}"
    start(db).process.stop()
    # Without a writer, a worker waits for its heartbeat before it serves.
    options = ("--blocks", str(shell / "blocks"), "--port", "0", "--log-format", "json")
    process = shell.start("node", "--role", "reader", "--db", db, *options, "--workers", "2")
    reader = Served(process, connections)
    assert process.stop(signal.SIGTERM) == 143
    assert "cut off" not in process.stderr
    with pytest.raises(ConnectionRefusedError):
        reader.connect().connect()
