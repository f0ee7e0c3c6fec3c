"""The fast paths, answered in front of the router: `/mcp`, `/c/<name>.json` and `/v1/…`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from capdex_service.answers.rendered import Answer
from capdex_service.http.pages import Page, send_answer
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import cached

_NAME: Final = re.compile(r"/c/([^/:@]+)\.json")  # what is a URI, the explorer redirects
_RESOLVE: Final = "/v1/resolve"
# The query string of a plain resolution; its characters stand for themselves.
_PLAIN: Final = re.compile(rb"uri=(did:nuwa:cap:[a-z0-9@.-]+)")


class FastPaths:
    """Middleware that answers the fast paths; everything else goes to `app`."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        reader: Reader,
        calls: Mapping[str, ASGIApp],
        pages: Mapping[str, Page],
        names: Page,
    ) -> None:
        self._app, self._reader, self._calls = app, reader, calls
        self._pages, self._names = pages, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or pass it on."""
        if scope["type"] == "http":
            path, method = scope["path"], scope["method"]
            is_read = method in ("GET", "HEAD")
            if method == "POST" and (app := self._calls.get(path)) is not None:
                await app(scope, receive, send)
                return
            if method == "GET" and path == _RESOLVE and (answer := self._cached(scope)) is not None:
                await send_answer(answer, scope, send)
                return
            page = self._pages.get(path)
            if page is not None and is_read:
                await page(scope, receive, send)
                return
            if is_read and (named := _NAME.fullmatch(path)):
                await self._names({**scope, "path_params": {"name": named[1]}}, receive, send)
                return
        await self._app(scope, receive, send)

    def _cached(self, scope: Scope) -> Answer | None:
        """Return the cached answer to a plain resolution; the page gives every other one."""
        plain = _PLAIN.fullmatch(scope["query_string"])
        return None if plain is None else cached(self._reader, plain[1].decode("ascii"))
