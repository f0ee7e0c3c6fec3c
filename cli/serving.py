"""One process of a node: its two loops, and every face of it on one port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import Final

import uvicorn
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from capdex.errors import Code, UsageError
from capdex.problems import Verdict
from indexer.http import build_routes
from indexer.node import Node
from mcp_service.http import MAX_BODY_BYTES, Face, build_face

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
STOP_S: Final = 5  # open requests have this long to end


class HostCheck:
    """Answers requests for hosts that are ours alone: a name rebound to 127.0.0.1 is refused.

    A browser's `Origin` must be one of these hosts, too; requests without one are no browser's.
    """

    def __init__(self, app: ASGIApp, *, allowed: Sequence[str]) -> None:
        self.app = app
        self.allowed = frozenset(host.lower() for host in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421 (Host) or 403 (Origin)."""
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            host = headers.get(b"host", b"").decode("latin-1")
            origin = headers.get(b"origin")
            status = 0
            if not self._ours(host):
                status, words = 421, f"this node does not answer for {host[:100]!r}\n"
            elif origin is not None and not self._ours_by_url(origin.decode("latin-1")):
                status, words = 403, "requests from other sites are refused\n"
            if status:
                await _plain(send, status, words)
                return
        await self.app(scope, receive, send)

    def _ours(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        bare = name if colon and port.isdigit() else host
        return bare.lower() in self.allowed

    def _ours_by_url(self, origin: str) -> bool:
        scheme, separator, host = origin.partition("://")
        return bool(separator) and scheme in ("http", "https") and self._ours(host)


def build_app(node: Node, face: Face, *, allowed: Sequence[str]) -> ASGIApp:
    """The ASGI application: the node's routes and the readers', behind the host check."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with face.lifespan:
            yield

    return Starlette(
        routes=[*build_routes(node.surface), *face.routes],
        middleware=[
            Middleware(HostCheck, allowed=allowed),
            Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES),
        ],
        lifespan=lifespan,
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, open before anything is announced; raises UsageError when taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
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


def hosts(host: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """The Host headers answered: loopback's names where bound there, else only what was named."""
    try:
        loopback = ip_address(host).is_loopback
        unspecified = ip_address(host).is_unspecified
    except ValueError:
        loopback, unspecified = host == "localhost", False
    if not loopback and not allowed:
        raise UsageError(
            f"a node on {host} must know by which names it is called",
            Code.CONFIG,
            why="whoever can make a browser resolve a name to it could speak through that browser",
            fix="add --allowed-host NAME for each name or address clients use",
        )
    own = () if unspecified else ((f"[{host}]",) if ":" in host else (host,))
    return (*LOOPBACK, *own, *allowed)


@asynccontextmanager
async def serve(
    node: Node, listener: socket.socket, *, verdicts: frozenset[Verdict], allowed: Sequence[str]
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve a node's faces and run its loops; yields the task that ends only if they fail."""
    face = build_face(node.surface.index, serve=verdicts, allowed_hosts=None)
    config = uvicorn.Config(
        build_app(node, face, allowed=allowed),
        http="httptools",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=STOP_S,
    )
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
        with suppress(asyncio.CancelledError):
            await running
        await serving


async def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    # uvicorn's `serve` takes over the signals; whoever called us has its own plans for them.
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
    if not server.should_exit:
        await server.main_loop()
    await server.shutdown(sockets=[listener])


async def _plain(send: Send, status: int, words: str) -> None:
    body = words.encode("utf-8")
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
