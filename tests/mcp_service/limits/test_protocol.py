"""Connections that give nothing, take nothing or ask for too much, on real sockets."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, cast

import pytest
import uvicorn

from capdex_cli.node.server import listen
from capdex_service.limits.addresses import Addresses
from capdex_service.limits.connections import ConnectionTable
from capdex_service.limits.options import ClientLimits
from capdex_service.limits.protocol import (
    MAX_HEAD_BYTES,
    MAX_PIPELINE,
    BoundedProtocol,
    JoiningTransport,
)

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
USUAL = ClientLimits()
SHORT = ClientLimits(timeout_s=0.2, keep_alive_s=0.2)
PATIENCE_S = 30


class Served:
    """An application behind the protocol: its table, and what the log would count."""

    def __init__(self) -> None:
        self.port = 0
        self.faults: list[str] = []
        self.fault = asyncio.Event()
        self.table: ConnectionTable
        self.clients: list[Client] = []

    def note(self, kind: str) -> None:
        self.faults.append(kind)
        self.fault.set()

    async def connect(self, data: bytes = b"") -> Client:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=raw)
        writer.write(data)
        self.clients.append(Client(reader, writer))
        return self.clients[-1]


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def rest(self) -> bytes:
        """All that comes until the node closes the connection."""
        got = bytearray()
        async with asyncio.timeout(PATIENCE_S):
            try:
                while part := await self.reader.read(1 << 16):
                    got += part
            except ConnectionError:
                pass
        return bytes(got)

    async def answer(self) -> bytes:
        """The head and the body `ok` of one answer."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readuntil(b"\r\n\r\nok")


async def answer_ok(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def served(
    limits: ClientLimits = USUAL, app: Callable[..., Any] = answer_ok
) -> AsyncIterator[Served]:
    node = Served()
    addresses = Addresses(limit_loopback=limits.limit_loopback)
    node.table = table = ConnectionTable(limits, addresses, node.note)
    protocol = cast("type[asyncio.Protocol]", partial(BoundedProtocol, table=table))
    with listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(
            app, http=protocol, ws="none", log_config=None, lifespan="off",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        sweeping = asyncio.create_task(table.sweep_always())
        try:
            node.port = listener.getsockname()[1]
            yield node
        finally:
            sweeping.cancel()
            for client in node.clients:
                client.writer.transport.abort()
                with suppress(ConnectionError):
                    await client.writer.wait_closed()
            for connection in list(server.server_state.connections):
                cast("BoundedProtocol", connection).cut()
            await server.shutdown(sockets=[listener])


@pytest.mark.parametrize(
    "data",
    [b"", b"GET", GET[:-2], POST, POST + b"{", GET + GET[:9], GET + POST],
    ids=[
        "nothing",
        "method",
        "half a head",
        "no body",
        "half a body",
        "second head",
        "second body",
    ],
)
async def test_a_connection_that_gives_no_whole_request_is_closed(data: bytes) -> None:
    async with served(SHORT) as node:
        client = await node.connect(data)
        answers = (await client.rest()).count(b"200 OK")
    assert answers == data.startswith(GET)
    assert node.faults == ["too slow"]
    assert len(node.table) == 0


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nX: ", POST.replace(b"4", b"99999")])
async def test_a_trickle_of_bytes_buys_no_time(begin: bytes) -> None:
    async with served(SHORT) as node:
        client = await node.connect(begin)
        closed = asyncio.create_task(client.rest())
        while not closed.done():
            client.writer.write(b"x")
            await asyncio.wait({closed}, timeout=0.01)
    assert node.faults == ["too slow"]


async def test_an_idle_connection_is_closed_after_its_answer() -> None:
    async with served(SHORT) as node:
        client = await node.connect(GET)
        assert (await client.rest()).endswith(b"ok")


async def test_a_client_that_does_not_read_is_cut() -> None:
    gone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    async with served(SHORT, app) as node:
        client = await node.connect(GET)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE_S):
            await gone.wait()
        assert (node.faults, len(node.table)) == (["too slow"], 0)


async def test_the_rest_of_an_answer_that_is_not_read_is_dropped() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"connection", b"close")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(16 << 20)})

    async with served(SHORT, app) as node:
        client = await node.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.writer.write(GET)
        async with asyncio.timeout(PATIENCE_S):
            await node.fault.wait()
        assert (node.faults, len(node.table)) == (["too slow"], 0)


async def test_an_answer_that_takes_its_time_is_not_cut() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await go.wait()
        await answer_ok(scope, receive, send)

    async with served(app=app) as node:
        client = await node.connect(GET)
        await asked.wait()
        node.table.sweep(asyncio.get_running_loop().time() + 1e6)
        go.set()
        assert b"200 OK" in await client.answer()


async def test_silent_connections_make_room_for_a_new_one_the_longest_silent_first() -> None:
    async with served(ClientLimits(max_connections=3)) as node:
        silent = [await node.connect() for _ in range(3)]
        talking = await node.connect(GET)
        assert b"200 OK" in await talking.answer()
        assert await silent[0].rest() == b""
        assert (len(node.table), node.faults) == (3, ["one connection too many"])
        silent[1].writer.write(GET)
        assert b"200 OK" in await silent[1].answer()


async def test_one_client_has_a_share_and_loses_its_own_connections() -> None:
    limits = ClientLimits(max_connections=100, max_per_client=2, limit_loopback=True)
    async with served(limits) as node:
        first, *_ = [await node.connect() for _ in range(3)]
        assert await first.rest() == b""
        assert len(node.table) == 2


async def test_a_connection_that_is_answered_is_not_cut_for_a_new_one() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await go.wait()
        await answer_ok(scope, receive, send)

    async with served(ClientLimits(max_connections=1), app) as node:
        busy = await node.connect(GET)
        await asked.wait()
        assert await (await node.connect(GET)).rest() == b""
        go.set()
        assert b"200 OK" in await busy.answer()


async def test_a_pipeline_is_short_and_its_rest_is_answered_429() -> None:
    async with served() as node:
        client = await node.connect(GET * 200)
        said = await client.rest()
    statuses = re.findall(rb"HTTP/1.1 (\d+) ", said)
    assert statuses == [b"200"] * (len(statuses) - 1) + [b"429"]
    assert len(statuses) <= MAX_PIPELINE + 2
    head, _, body = said.rpartition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert b"RATE_LIMITED" in body


async def test_a_short_pipeline_is_answered_whole_and_in_order() -> None:
    async with served() as node:
        client = await node.connect(GET * 8 + POST + b"body" + GET)
        for _ in range(10):
            assert b"200 OK" in await client.answer()


async def test_a_lost_connection_with_open_requests_needs_no_garbage_collector() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await go.wait()

    gc.disable()
    try:
        async with served(app=app) as node:
            await node.connect(GET * 8)
            await asked.wait()
            (connection,) = map(weakref.ref, node.table._open)
            connection().cut()  # type: ignore[union-attr]
            async with asyncio.timeout(PATIENCE_S):
                while len(node.table):  # noqa: ASYNC110
                    await asyncio.sleep(0)
                go.set()
                while connection() is not None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
    finally:
        gc.enable()


@pytest.mark.parametrize("line", [b"X: " + b"x" * MAX_HEAD_BYTES, b"X: y\r\n" * MAX_HEAD_BYTES])
async def test_a_head_without_end_is_refused(line: bytes) -> None:
    async with served() as node:
        client = await node.connect(GET[:-2] + line)
        said = await client.rest()
    assert said.startswith(b"HTTP/1.1 431 ") or said == b""  # cut where more was on its way


async def test_a_head_that_is_not_ended_leaves_an_answer_that_is_made() -> None:
    async with served() as node:
        client = await node.connect(GET)
        assert b"200 OK" in await client.answer()
        client.writer.write(GET[:-2] + b"X: y\r\n\r\n")
        assert b"200 OK" in await client.answer()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Wire(asyncio.Transport):
    """The writes that would be system calls."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


@pytest.fixture
async def wire() -> Wire:
    return Wire()


@pytest.fixture
async def transport(wire: Wire) -> JoiningTransport:
    return JoiningTransport(wire, asyncio.get_running_loop())


async def test_a_head_and_its_body_are_one_write(wire: Wire, transport: JoiningTransport) -> None:
    for body in (b"ok", b"no"):
        transport.write(HEAD)
        transport.write(body)
    await asyncio.sleep(0)
    assert wire.writes == [HEAD + b"ok", HEAD + b"no"]


async def test_a_head_alone_is_sent_in_the_next_turn(
    wire: Wire, transport: JoiningTransport
) -> None:
    transport.write(HEAD)
    assert wire.writes == []
    await asyncio.sleep(0)
    transport.write(b"data: 1\n\n")
    assert wire.writes == [HEAD, b"data: 1\n\n"]


async def test_a_head_is_sent_before_the_connection_closes(
    wire: Wire, transport: JoiningTransport
) -> None:
    transport.write(HEAD)
    transport.close()
    await asyncio.sleep(0)
    assert (wire.writes, transport.is_closing()) == ([HEAD], True)


async def test_the_rest_is_that_of_the_transport(transport: JoiningTransport) -> None:
    assert transport.get_extra_info("peername") == ("127.0.0.1", 1)
