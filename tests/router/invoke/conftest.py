"""A server on loopback that a tool asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web


@pytest.fixture
async def server() -> AsyncIterator[int]:
    """The port of an HTTP service that echoes, fails, or never answers."""
    never = asyncio.Event()

    async def echo(request: web.Request) -> web.Response:
        return web.json_response(await request.json())

    async def fail(_: web.Request) -> web.Response:
        return web.json_response({}, status=500)

    async def hang(_: web.Request) -> web.Response:
        await never.wait()
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.post("/echo", echo), web.post("/fail", fail), web.post("/hang", hang)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    never.set()
    await runner.cleanup()
