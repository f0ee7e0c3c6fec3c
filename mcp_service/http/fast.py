"""The hot paths, answered in front of the router: `POST /mcp` and `GET /c/<name>.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from capdex.errors import CapdexError
from mcp_service.answers.rendered import Answer
from mcp_service.mcp.front import JSON_TYPE, Front
from mcp_service.queries.reader import Reader
from mcp_service.queries.resolve import name_page

_PAGE: Final = ("/c/", ".json")


class FastPaths:
    """Middleware that answers the hot paths; everything else, errors too, goes to `app`."""

    def __init__(self, app: ASGIApp, *, reader: Reader, fronts: Mapping[str, Front]) -> None:
        self._app, self._reader, self._fronts = app, reader, fronts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or pass it on."""
        if scope["type"] == "http":
            path, method = scope["path"], scope["method"]
            if method == "POST" and (front := self._fronts.get(path)) is not None:
                await front(scope, receive, send)
                return
            if method == "GET" and path.startswith(_PAGE[0]) and path.endswith(_PAGE[1]):
                try:
                    answer = await name_page(self._reader, path[3:-5])
                except CapdexError:
                    pass  # the router's error handlers answer
                else:
                    await send_answer(answer, scope, send)
                    return
        await self._app(scope, receive, send)


async def send_answer(answer: Answer, scope: Scope, send: Send) -> None:
    """Send an answer as JSON with its ETag, or 304 if the client has it."""
    etag = answer.etag.encode("ascii")
    headers = [(b"content-type", JSON_TYPE), (b"etag", etag), (b"cache-control", b"no-cache")]
    for key, value in scope["headers"]:
        if key == b"if-none-match" and (etag in value or value.strip() == b"*"):
            await send({"type": "http.response.start", "status": 304, "headers": headers[1:]})
            await send({"type": "http.response.body", "body": b""})
            return
    headers.append((b"content-length", str(len(answer.body)).encode("ascii")))
    headers.append((b"x-content-type-options", b"nosniff"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
