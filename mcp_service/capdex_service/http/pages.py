"""Pages: an answer to a GET or HEAD with its ETag, or a problem document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from starlette.types import Receive, Scope, Send

from capdex.errors import CapdexError
from capdex_indexer.query.index import in_time
from capdex_service.answers.rendered import Answer
from capdex_service.http.problem import problem
from capdex_service.queries.reader import Reader

JSON_TYPE: Final = b"application/json"

log = structlog.get_logger(part="http")

Question = Callable[..., Awaitable[Answer]]  # of a reader, a query string, and parts of the path


class Page:
    """The ASGI application of one path, whose answers `question` gives."""

    def __init__(self, reader: Reader, question: Question) -> None:
        self._reader, self._question = reader, question

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a GET or HEAD within the time limit; every error is a problem document."""
        try:
            async with in_time():
                path = scope.get("path_params", {})
                answer = await self._question(self._reader, scope["query_string"], **path)
        except Exception as error:
            if not isinstance(error, CapdexError):
                log.exception("page failed", path=scope["path"])
            await problem(error)(scope, receive, send)
        else:
            await send_answer(answer, scope, send)


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
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
