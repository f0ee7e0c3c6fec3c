"""The mirror of a node, served: `/index/config.json` and `/index/no/te/note`, each with an ETag."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from capdex_indexer.http.gateway import sends_etag
from capdex_indexer.mirror.content import CONFIG, name_at, serve_config, serve_file
from capdex_indexer.query.index import Index, in_time

GATEWAY: Final = "/ipfs/{cid}?format=raw"  # relative to this node
LINES_TYPE: Final = "application/x-ndjson"


def routes(index: Index) -> Sequence[BaseRoute]:
    """The routes below `/index/`, for GET and HEAD."""

    async def endpoint(request: Request) -> Response:
        async with in_time():
            return await asyncio.to_thread(_answer, index, request)

    return [Route("/index/{path:path}", endpoint)]


def _answer(index: Index, request: Request) -> Response:
    path = request.path_params["path"]
    kind, body = "application/json", None
    if path == CONFIG:
        body = serve_config(index, GATEWAY)
    elif name := name_at(path):
        kind, body = LINES_TYPE, serve_file(index, name)
    if body is None:
        headers = {"Cache-Control": "no-store"}
        return PlainTextResponse("no name has its file here\n", 404, headers)
    headers = {
        "Content-Type": kind,
        "ETag": f'"{hashlib.sha256(body).hexdigest()}"',
        "Cache-Control": "no-cache",  # clients revalidate each time
    }
    if sends_etag(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers)
