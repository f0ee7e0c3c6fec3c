"""The bell of new heads, and the watchdog that opens a connection anew when it falls silent."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from capdex.net.rpc import new_heads as heads
from capdex.net.rpc.new_heads import MAX_SILENCE_S, MIN_SILENCE_S, Watchdog, wake_on_heads

HEAD = {"jsonrpc": "2.0", "method": "eth_subscription", "params": {"result": {}}}
FAIL_AFTER_S = 20


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(heads, "RETRY_BASE_S", 0.001)
    monkeypatch.setattr(heads, "RETRY_CAP_S", 0.001)


@pytest.fixture
async def listening():
    """Serve a websocket by what to do with each connection; rings a bell. Gives the connections."""
    stack = []

    async def start(serve):
        opened = []

        async def accept(request):
            websocket = web.WebSocketResponse()
            await websocket.prepare(request)
            opened.append(await websocket.receive_json())
            await serve(websocket, len(opened))
            return websocket

        app = web.Application()
        app.router.add_get("/", accept)
        server = TestServer(app)
        await server.start_server()
        bell = asyncio.Event()
        task = asyncio.create_task(wake_on_heads(str(server.make_url("/")), bell))
        stack.append((task, server))
        return opened, bell

    yield start
    for task, server in stack:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await server.close()


async def confirm(websocket):
    await websocket.send_json({"jsonrpc": "2.0", "id": 1, "result": "0x1"})


async def rung(bell, times):
    async with asyncio.timeout(FAIL_AFTER_S):
        for _ in range(times):
            await bell.wait()
            bell.clear()


async def test_a_connection_that_ends_is_opened_anew_and_rings_for_what_was_missed(listening):
    async def serve(websocket, nth):
        await confirm(websocket)

    opened, bell = await listening(serve)
    await rung(bell, 3)
    assert len(opened) >= 3
    assert all(asked["method"] == "eth_subscribe" for asked in opened)


async def test_a_subscription_that_falls_silent_is_made_anew(listening, monkeypatch):
    monkeypatch.setattr(heads, "MIN_SILENCE_S", 0.01)
    monkeypatch.setattr(heads, "INTERVALS", 0.001)

    async def serve(websocket, nth):
        await confirm(websocket)
        await websocket.send_json(HEAD)
        await websocket.send_json(HEAD)
        await websocket.receive()  # nothing more is said: the client must go

    opened, bell = await listening(serve)
    async with asyncio.timeout(FAIL_AFTER_S):
        while len(opened) < 3:
            await rung(bell, 1)


@pytest.mark.parametrize(
    "said",
    [
        orjson.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}),
        b"<html>",
        b"[]",
    ],
)
async def test_a_refused_subscription_rings_no_bell_and_is_asked_for_again(listening, said):
    asked_again = asyncio.Event()

    async def serve(websocket, nth):
        await websocket.send_bytes(said)
        if nth == 3:
            asked_again.set()

    _, bell = await listening(serve)
    async with asyncio.timeout(FAIL_AFTER_S):
        await asked_again.wait()
    assert not bell.is_set()


@given(st.lists(st.floats(0, 1e6) | st.none()))
def test_patience_has_bounds_whatever_is_heard(events):
    dog, now = Watchdog(), 0.0
    for gap in events:
        if gap is None:
            before = dog.timeout_s
            dog.expired()
            assert dog.timeout_s >= before
        else:
            now += gap
            dog.received(now)
        assert MIN_SILENCE_S <= dog.timeout_s <= MAX_SILENCE_S


@given(st.floats(0.001, 10))
def test_patience_follows_the_chains_own_interval(interval_s):
    dog = Watchdog()
    for n in range(10):
        dog.received(n * interval_s)
    assert dog.timeout_s == pytest.approx(
        max(MIN_SILENCE_S, min(MAX_SILENCE_S, heads.INTERVALS * interval_s))
    )


async def test_a_redirect_leads_to_no_host_that_nobody_configured():
    led, begun, again = [], asyncio.Event(), asyncio.Event()

    async def elsewhere(request):
        led.append(request.path)
        return web.Response()

    async def redirect(request):
        (again if begun.is_set() else begun).set()
        raise web.HTTPFound(str(other.make_url("/latest/meta-data")))

    apps = web.Application(), web.Application()
    apps[0].router.add_get("/{path:.*}", elsewhere)
    apps[1].router.add_get("/", redirect)
    async with TestServer(apps[0]) as other, TestServer(apps[1]) as endpoint:
        task = asyncio.create_task(wake_on_heads(str(endpoint.make_url("/")), asyncio.Event()))
        async with asyncio.timeout(FAIL_AFTER_S):
            await again.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert led == []
