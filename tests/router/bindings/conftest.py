"""Servers on loopback for the tests of bindings: HTTP by aiohttp, bytes as they come, and MCP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
import uvicorn
from aiohttp import web

from capdex_router.bindings.egress import Egress
from capdex_router.policy.secrets import SecretFile, Secrets

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """Closes at the end of the test what a test opens."""
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
def serve(stack: AsyncExitStack) -> Callable[[Handler], Awaitable[str]]:
    """Serve every path by one handler; return the server's URL without a path."""

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        listening = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listening).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    return start


@pytest.fixture
def serve_bytes(stack: AsyncExitStack) -> Callable[[Talk], Awaitable[str]]:
    """Serve connections by a function that reads and writes bytes."""

    async def start(talk: Talk) -> str:
        async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await talk(reader, writer)
            except (ConnectionError, asyncio.CancelledError):
                pass
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(guarded, "127.0.0.1", 0)

        async def stop() -> None:
            server.close()

        stack.push_async_callback(stop)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    return start


@pytest.fixture
async def local(stack: AsyncExitStack) -> Egress:
    """An egress whose user allows 127.0.0.1."""
    egress = Egress(inside=["127.0.0.1"])
    stack.push_async_callback(egress.close)
    return egress


@pytest.fixture
def secrets(tmp_path: Any) -> Secrets:
    """Secrets in a file of the test's own."""
    return Secrets(SecretFile(tmp_path / "secrets.json"))


@pytest.fixture
def serve_app(stack: AsyncExitStack) -> Callable[[Any], Awaitable[str]]:
    """Serve an ASGI application, such as an MCP server of the SDK, by uvicorn."""

    async def start(app: Any) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1)
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.lifespan.startup()
        await server.startup(sockets=[listener])

        async def stop() -> None:
            server.force_exit = True
            await server.shutdown(sockets=[listener])
            await server.lifespan.shutdown()

        stack.push_async_callback(stop)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    return start
