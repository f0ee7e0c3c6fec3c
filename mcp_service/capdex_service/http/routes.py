"""HTTP routes of a reader: MCP at `/mcp`, plain pages at `/v1/…`, names at `/c/<name>.json`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from capdex.manifest import editor_schema
from capdex_service.answers.rendered import Answer
from capdex_service.http import openapi, v0_1
from capdex_service.http.change_stream import ChangeStream
from capdex_service.http.fast_paths import FastPaths
from capdex_service.http.pages import Page, Question
from capdex_service.http.parameters import read_parameters
from capdex_service.http.v1 import QUESTIONS
from capdex_service.mcp.endpoint import McpEndpoint
from capdex_service.mcp.subscriptions.feed import Feed
from capdex_service.mcp.subscriptions.sessions import Sessions
from capdex_service.mcp.tools import PROFILES
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import name_page


@dataclass(frozen=True, slots=True)
class ReaderRoutes:
    """Routes to mount, the lifespan context to enter while serving them, and the fast paths.

    `fast_paths` is a middleware behind all others. Await `end_streams` before the server
    stops: it would wait for the clients of streams to leave.
    """

    routes: Sequence[BaseRoute]
    fast_paths: Middleware
    lifespan: AbstractAsyncContextManager[None]
    end_streams: Callable[[], Awaitable[None]]


def build_reader_routes(
    reader: Reader, *, profile: str = "default", sessions: Path | None = None
) -> ReaderRoutes:
    """Return the routes of a reader; put `HostCheck` in front of them.

    `/mcp` has the tools of `profile`, `/mcp/minimal` those for small contexts, answered in text
    alone. `sessions` is the directory of MCP sessions that the processes of a node share; without
    one it is a new one.
    """
    feed, kept = Feed(reader), Sessions(sessions)
    endpoints = {
        path: McpEndpoint(reader, PROFILES[seen], feed, kept)
        for path, seen in {"/mcp": profile, "/mcp/minimal": "minimal"}.items()
    }
    calls = {path: endpoint.app for path, endpoint in endpoints.items()}

    names = Page(reader, lambda reader, _, name: name_page(reader, name))
    pages = {path: Page(reader, question) for path, question in QUESTIONS.items()}
    stream = ChangeStream(reader)
    routes: list[BaseRoute] = [
        *(Route(path, app, methods=["GET", "POST", "DELETE"]) for path, app in calls.items()),
        *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
        Route("/v1/changes/stream", stream, methods=["GET"]),
        *v0_1.build_routes(reader),
        Route(openapi.PATH, Page(reader, _fixed(openapi.document)), methods=["GET"]),
        Route(editor_schema.PATH, Page(reader, _fixed(editor_schema.to_json)), methods=["GET"]),
        Route("/c/{name}", names, methods=["GET"]),
    ]

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(kept.close)
            for endpoint in endpoints.values():
                await stack.enter_async_context(endpoint.run())
            yield

    async def end_streams() -> None:
        feed.close()
        await stream.close()

    fast_paths = Middleware(FastPaths, reader=reader, calls=calls, pages=pages, names=names)
    return ReaderRoutes(routes, fast_paths, lifespan(), end_streams)


def _fixed(body: Callable[[], bytes]) -> Question:
    """Return the question of a document that takes no parameter."""

    async def answer(_: Reader, query: bytes) -> Answer:
        read_parameters(query, ())
        return Answer(body(), b'""')

    return answer
