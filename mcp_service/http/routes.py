"""HTTP routes of a reader: MCP at `/mcp`, plain pages at `/v1/…`, names at `/c/<name>.json`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mcp_service.answers.rendered import Answer
from mcp_service.http import openapi, v0_1
from mcp_service.http.change_stream import ChangeStream
from mcp_service.http.fast import FastPaths
from mcp_service.http.pages import Page
from mcp_service.http.parameters import read_parameters
from mcp_service.http.v1 import QUESTIONS
from mcp_service.limits.bodies import MAX_BODY_BYTES
from mcp_service.mcp.envelope import CheckedMessages
from mcp_service.mcp.front import Front
from mcp_service.mcp.server import build_server
from mcp_service.mcp.tools import PROFILES
from mcp_service.queries.reader import Reader
from mcp_service.queries.resolve import name_page


@dataclass(frozen=True, slots=True)
class ReaderRoutes:
    """Routes to mount, the lifespan context to enter while serving them, and the hot paths.

    `hot` is a middleware that belongs behind all others. Close `stream` before the server stops:
    it would wait for the clients of streams to leave.
    """

    routes: Sequence[BaseRoute]
    hot: Middleware
    stream: ChangeStream
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
        transport = CheckedMessages(manager.asgi_app)
        routes.append(Route(path, transport, methods=["POST"]))
        fronts[path] = Front(reader, server, PROFILES[seen], transport)
        lifespans.append(manager.run())

    async def releases(request: Request) -> Response:
        answer = await name_page(reader, request.path_params["name"])
        return Response(answer.body, media_type="application/json")

    pages = {path: Page(reader, question) for path, question in QUESTIONS.items()}
    stream = ChangeStream(reader)
    routes += [Route(path, page, methods=["GET"]) for path, page in pages.items()]
    routes.append(Route("/v1/changes/stream", stream, methods=["GET"]))
    routes += v0_1.build_routes(reader)
    routes.append(Route(openapi.PATH, Page(reader, _openapi), methods=["GET"]))
    routes.append(Route("/c/{name}.json", releases))
    hot = Middleware(FastPaths, reader=reader, fronts=fronts, pages=pages)
    return ReaderRoutes(routes, hot, stream, _together(lifespans))


async def _openapi(_: Reader, query: bytes) -> Answer:
    read_parameters(query, ())
    return Answer(openapi.document(), b'""')


@asynccontextmanager
async def _together(lifespans: Sequence[AbstractAsyncContextManager[None]]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for lifespan in lifespans:
            await stack.enter_async_context(lifespan)
        yield
