"""HTTP routes of a reader: MCP at `/mcp`, the releases of a name at `/c/<name>.json`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import orjson
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from capdex.errors import CapdexError, Code, InvalidInput
from mcp_service.answers import errors
from mcp_service.http.fast import FastPaths
from mcp_service.limits.bodies import MAX_BODY_BYTES
from mcp_service.mcp.front import Front
from mcp_service.mcp.server import build_server
from mcp_service.mcp.tools import PROFILES
from mcp_service.queries.reader import Reader
from mcp_service.queries.resolve import name_page


@dataclass(frozen=True, slots=True)
class ReaderRoutes:
    """Routes to mount, the lifespan context to enter while serving them, and the hot paths.

    `hot` is a middleware that belongs behind all others.
    """

    routes: Sequence[BaseRoute]
    hot: Middleware
    lifespan: AbstractAsyncContextManager[None]


def build_reader_routes(reader: Reader, *, profile: str = "default") -> ReaderRoutes:
    """Return the routes of a reader; put `HostCheck` in front of them.

    `/mcp` has the tools of `profile`, `/mcp/minimal` those for small contexts, answered in text
    alone. MCP is stateless with plain JSON replies: clients of both protocol versions get the same
    answers, and any node behind a load balancer can answer the next call.
    """
    fronts, lifespans = {}, []
    routes: list[BaseRoute] = []
    for path, seen in {"/mcp": profile, "/mcp/minimal": "minimal"}.items():
        server = build_server(reader, PROFILES[seen])
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        # POST only: without sessions there is no stream to GET and no session to DELETE.
        routes.append(Route(path, manager.asgi_app, methods=["POST"]))
        fronts[path] = Front(reader, server, PROFILES[seen], manager.asgi_app)
        lifespans.append(manager.run())

    async def releases(request: Request) -> Response:
        answer = await name_page(reader, request.path_params["name"])
        return Response(answer.body, media_type="application/json")

    routes.append(Route("/c/{name}.json", releases))
    hot = Middleware(FastPaths, reader=reader, fronts=fronts)
    return ReaderRoutes(routes, hot, _together(lifespans))


@asynccontextmanager
async def _together(lifespans: Sequence[AbstractAsyncContextManager[None]]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for lifespan in lifespans:
            await stack.enter_async_context(lifespan)
        yield


async def _routing_error(_: Request, error: Exception) -> Response:
    """Return an error of the routing (no such page, wrong method) as a problem document."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        found = InvalidInput("there is nothing here", Code.NOT_FOUND)
    else:
        found = InvalidInput("that is not done here")
    return _problem(found, status, getattr(error, "headers", None))


async def _error(_: Request, error: Exception) -> Response:
    """Return an error of a page as a problem document, without internal details."""
    found = errors.public_error(error)
    return _problem(found, found.kind.http, {"Retry-After": "1"} if found.kind.retryable else None)


def _problem(error: CapdexError, status: int, headers: Mapping[str, str] | None) -> Response:
    """Return a P16 error as an RFC 9457 problem document."""
    body = {"type": "about:blank", "title": error.message, "status": status} | error.to_json()
    return _json(body, status, headers, "application/problem+json")


def _json(
    body: Any,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    return Response(orjson.dumps(body), status, headers, media_type)


EXCEPTION_HANDLERS: Final = {CapdexError: _error, HTTPException: _routing_error, Exception: _error}
