"""One process of a node: its loops, and its HTTP and MCP answers on one port."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Final

import uvicorn
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from capdex.errors import CapdexError, Code, UsageError
from capdex.net.rpc.aiohttp_transport import AiohttpTransport
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.proofs import Prover
from indexer.http import gateway, mirror
from indexer.http.status import Surface, build_routes
from indexer.node.node import Node
from mcp_service.hosts import HostCheck
from mcp_service.http import (
    MAX_BODY_BYTES,
    ReaderRoutes,
    build_reader_routes,
    error_response,
    routing_error_response,
)

STOP_S: Final = 3  # open requests have this long to end; the node has five seconds in all


def build_app(surface: Surface, face: ReaderRoutes | None, *, allowed: Sequence[str]) -> ASGIApp:
    """Return the ASGI application: all routes behind the host check.

    Without a `face` (MCP) it has the operator's routes alone.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with face.lifespan if face else nullcontext():
            yield

    served = [*build_routes(surface)]
    if face is not None:
        served += gateway.routes(surface.index, surface.blocks)
        served += [*mirror.routes(surface.index), *face.routes]
    return Starlette(
        routes=served,
        middleware=[
            Middleware(HostCheck, allowed=allowed),
            Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES),
        ],
        exception_handlers={
            CapdexError: error_response,
            HTTPException: routing_error_response,
            Exception: error_response,
        },
        lifespan=lifespan,
    )


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; raises UsageError if the address is taken or not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because event loops set TCP_NODELAY only on sockets that name TCP.
    # Without TCP_NODELAY each answer waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host}:{port}",
            Code.CONFIG,
            why=error.strerror or str(error),
            fix="choose another port with --port, or 0 for any free one",
        ) from None
    listener.listen(128)
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def open_prover(
    rpc_urls: Sequence[str], *, chain_id: int, registry: str
) -> AsyncIterator[Prover]:
    """Open a prover of answers over connections of its own.

    Requests of clients cause its calls: an endpoint that limits them must not slow the indexer.
    """
    async with Rpc(rpc_urls, transport=AiohttpTransport()) as rpc:
        contract = bytes.fromhex(registry.removeprefix("0x"))
        yield Prover(rpc, chain_id=chain_id, contract=contract)


@asynccontextmanager
async def serve(
    node: Node,
    listener: socket.socket,
    *,
    allowed: Sequence[str],
    prover: Prover | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve a node and run its loops; yields the task of the loops, which ends only by failing."""
    surface, face = node.surface, None
    if node.options.role.serves:
        face = build_reader_routes(
            surface.index, serve=node.options.serve, prover=prover, warning=surface.health.warning
        )
    config = uvicorn.Config(
        build_app(surface, face, allowed=allowed),
        http="httptools",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=STOP_S,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_useful)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(_serve(server, listener))
    running = asyncio.create_task(node.run())
    try:
        while not server.started:
            if serving.done():
                await serving
            await asyncio.sleep(0.01)
        yield running
    finally:
        running.cancel()
        server.should_exit = True
        # An exception of the loops reaches the caller by the yielded task, not from here.
        await asyncio.gather(running, serving, return_exceptions=True)


def _is_useful(record: logging.LogRecord) -> bool:
    """False for tracebacks of cancelled requests: uvicorn logs their number in another record."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


async def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    # Not uvicorn's own `serve`: it would replace the signal handlers of `run_until_stopped`.
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
    if not server.should_exit:
        await server.main_loop()
    await server.shutdown(sockets=[listener])
