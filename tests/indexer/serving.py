"""A node's own face behind a real HTTP server, for whatever asks it something."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import uvicorn
from starlette.applications import Starlette

from capdex_indexer.http import gateway, mirror
from capdex_indexer.http.status import Surface, build_routes
from capdex_indexer.sync.loop import SyncProgress
from capdex_service.http.problem import EXCEPTION_HANDLERS


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Any
    body: bytes
    json: Any


class Node:
    """The routes behind uvicorn: `await node("/status")`."""

    def __init__(self, surface: Surface, url: str, session: aiohttp.ClientSession) -> None:
        self.surface, self.url, self._session = surface, url, session

    async def __call__(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        url = self.url + path
        async with self._session.request(method, url, headers=named) as reply:
            body = await reply.read()
            of_json = reply.content_type in ("application/json", "application/problem+json")
            is_json = of_json and method != "HEAD" and body
            return Answer(reply.status, reply.headers, body, json.loads(body) if is_json else None)

    def report(self, **progress: Any) -> None:
        self.surface.health.report(SyncProgress(**progress))


@asynccontextmanager
async def serve(surface: Surface) -> AsyncIterator[Node]:
    """Serve a surface on a free port of loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    index = surface.index
    served = [*gateway.routes(index, surface.blocks), *mirror.routes(index)]
    routes = [*build_routes(surface), *served]
    app = Starlette(routes=routes, exception_handlers=EXCEPTION_HANDLERS)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
    # No type of its own: a client that sends Accept unasked would hide what happens without it.
    async with aiohttp.ClientSession(skip_auto_headers=["Accept"]) as session:
        yield Node(surface, f"http://127.0.0.1:{listener.getsockname()[1]}", session)
    await server.shutdown(sockets=[listener])
