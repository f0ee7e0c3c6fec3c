"""The HTTP face of the readers: MCP at `/mcp`, releases of a name at `/c/<name>.json`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

import orjson
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.problems import Verdict
from capdex.uri import check_name
from indexer.search import Index
from mcp_service import answers
from mcp_service.server import build_server

MAX_BODY_BYTES: Final = 256 * 1024  # a call is a few hundred bytes


@dataclass(frozen=True, slots=True)
class Face:
    """Routes to mount, and the lifespan that must be entered around serving them."""

    routes: Sequence[BaseRoute]
    lifespan: AbstractAsyncContextManager[None]


def build_face(
    index: Index, *, serve: frozenset[Verdict], allowed_hosts: Sequence[str] | None
) -> Face:
    """The readers' routes; `allowed_hosts` None leaves Host and Origin to the caller's own check.

    Sessions are stateless and replies plain JSON: a reader keeps nothing between calls, so both
    protocol eras are answered alike and any node behind a balancer can answer the next call.
    """
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    if allowed_hosts is not None:
        hosts = [spelling for host in allowed_hosts for spelling in (host, f"{host}:*")]
        origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
        security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
    manager = StreamableHTTPSessionManager(
        build_server(index, serve=serve),
        json_response=True,
        stateless=True,
        security_settings=security,
        max_request_body_size=MAX_BODY_BYTES,
    )

    async def releases(request: Request) -> Response:
        try:
            name = check_name(request.path_params["name"])
            return await asyncio.to_thread(_releases, index, name)
        except CapdexError as error:
            return problem(error)

    routes = [
        Route("/c/{name}.json", releases),
        Route("/mcp", manager.asgi_app),
    ]
    return Face(routes, manager.run())


def _releases(index: Index, name: str) -> Response:
    found = index.releases(name)
    if not found:
        raise InvalidInput(f"no capability is named {name}", code=Code.NOT_FOUND)
    return json_response(answers.releases(name, found, index.state()))


def problem(error: CapdexError) -> Response:
    """A P16 error as an RFC 9457 problem document."""
    kind = error.kind
    body = {"type": "about:blank", "title": error.message, "status": kind.http} | error.to_json()
    response = json_response(body, status=kind.http, media_type="application/problem+json")
    if kind.retryable:
        response.headers["Retry-After"] = "1"
    return response


def json_response(
    body: Any, *, status: int = 200, media_type: str = "application/json"
) -> Response:
    """Compact JSON."""
    return Response(orjson.dumps(body), status_code=status, media_type=media_type)
