"""HTTP routes of a reader: MCP at `/mcp`, the releases of a name at `/c/<name>.json`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

import orjson
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.problems import Verdict
from capdex.uri import check_name
from indexer.query import Index
from mcp_service import answers
from mcp_service.errors import internal_error, public_error
from mcp_service.proofs import Prover
from mcp_service.server import build_server

MAX_BODY_BYTES: Final = 256 * 1024  # a call is a few hundred bytes


@dataclass(frozen=True, slots=True)
class ReaderRoutes:
    """Routes to mount, and the lifespan context to enter while serving them."""

    routes: Sequence[BaseRoute]
    lifespan: AbstractAsyncContextManager[None]


def build_reader_routes(
    index: Index,
    *,
    serve: frozenset[Verdict],
    prover: Prover | None = None,
    warning: Callable[[], str | None] = lambda: None,
) -> ReaderRoutes:
    """Return the routes of a reader; put `HostCheck` in front of them.

    MCP is stateless with plain JSON replies: clients of both protocol versions get the same
    answers, and any node behind a load balancer can answer the next call.
    """
    manager = StreamableHTTPSessionManager(
        build_server(index, serve=serve, prover=prover, warning=warning),
        json_response=True,
        stateless=True,
        max_request_body_size=MAX_BODY_BYTES,
    )

    async def releases(request: Request) -> Response:
        name = check_name(request.path_params["name"])
        return json_response(
            answers.with_warning(await asyncio.to_thread(_releases, index, name), warning())
        )

    routes = [
        Route("/c/{name}.json", releases),
        # POST only: without sessions there is no stream to GET and no session to DELETE.
        Route("/mcp", manager.asgi_app, methods=["POST"]),
    ]
    return ReaderRoutes(routes, manager.run())


def _releases(index: Index, name: str) -> answers.Json:
    position, found = index.position(), index.releases(name)
    if not found:
        raise InvalidInput(f"no capability is named {name}", code=Code.NOT_FOUND)
    return answers.releases(name, found, index.name_state(name), position)


def problem(error: CapdexError, *, status: int | None = None) -> Response:
    """Return a P16 error as an RFC 9457 problem document; `status` overrides the code's own."""
    kind = error.kind
    number = status or kind.http
    body = {"type": "about:blank", "title": error.message, "status": number} | error.to_json()
    response = json_response(body, status=number, media_type="application/problem+json")
    if kind.retryable:
        response.headers["Retry-After"] = "1"
    return response


async def routing_error_response(_: Request, error: Exception) -> Response:
    """Return an error of the routing (no such page, wrong method) as a problem document."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = Code.NOT_FOUND if status == 404 else Code.INVALID_INPUT
    found = InvalidInput(
        "there is nothing here" if status == 404 else "that is not done here", code
    )
    response = problem(found, status=status)
    response.headers.update(getattr(error, "headers", None) or {})
    return response


async def error_response(_: Request, error: Exception) -> Response:
    """Return an error of a page as a problem document, without internal details."""
    return problem(public_error(error) if isinstance(error, CapdexError) else internal_error())


def json_response(
    body: Any, *, status: int = 200, media_type: str = "application/json"
) -> Response:
    """Return a response of compact JSON."""
    return Response(orjson.dumps(body), status_code=status, media_type=media_type)
