"""The routes of the explorer, and its answers to errors, for the application of a node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.net.tasks import end
from capdex.uri import CapabilityURI
from capdex.version import Version
from capdex_explorer.http.answer import JSON, Answers, Endpoint, wants_json
from capdex_explorer.http.rendered import STATIC_PREFIX, RenderedPage, read_assets, weight
from capdex_explorer.pages import (
    discovery,
    file_check,
    files,
    node,
    package,
    publisher,
    recent,
    search,
    versions,
)
from capdex_explorer.site import Page, Site, address_of, is_uri
from capdex_explorer.views.environment import build_environment
from capdex_indexer.query.index import in_time
from capdex_service.queries.names import LATEST
from capdex_service.queries.resolve import name_page

# Each page has its JSON at the same path with `.json`.
PAGES: Final[dict[str, Page]] = {
    "/search": search.results,
    "/triggers": search.triggered,
    "/browse": search.browse,
    "/recent": recent.recent,
    "/node": node.node,
    "/docs": discovery.docs,
    "/help": node.explanations,
    "/help/{code}": node.explanation,
    "/block/{number}": versions.block,
    "/p/{who}": publisher.publisher,
    "/c/{name}/versions": versions.versions,
    "/c/{name}/history": versions.history,
    "/c/{name}/diff": versions.diff,
    "/c/{name}/{version}/tools": package.tools,
    "/c/{name}/{version}/texts": package.texts,
    "/c/{name}/{version}/bytes": package.exact_bytes,
    "/c/{name}/{version}/files": files.files,
    "/c/{name}/{version}/checks": package.checks,
    "/c/{name}/{version}/triggers": package.triggers,
    "/c/{name}/{version}": package.overview,
}
FILES: Final[dict[str, tuple[Any, str]]] = {
    "/feed.atom": (recent.feed, "application/atom+xml"),
    "/p/{who}/feed.atom": (recent.feed, "application/atom+xml"),
    "/c/{name}/feed.atom": (recent.feed, "application/atom+xml"),
    "/c/{name}/badge.svg": (discovery.badge, "image/svg+xml"),
    "/c/{name}/{version}/badge.svg": (discovery.badge, "image/svg+xml"),
    "/sitemap.xml": (discovery.sitemaps, "application/xml"),
    "/sitemap/{first}.xml": (discovery.sitemap, "application/xml"),
    "/llms.txt": (discovery.llms, "text/plain; charset=utf-8"),
    "/robots.txt": (discovery.robots, "text/plain; charset=utf-8"),
}
LISTED: Final = ("domain", "tag")  # facets with a page for each value

Handlers = Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]]


class Explorer:
    """The explorer of one site: `routes` to mount, and `handlers` of errors; `run` samples."""

    def __init__(self, site: Site, others: Handlers) -> None:
        files, addresses = read_assets()
        self.site, self._others = site, others
        self.answers = answers = Answers(site, build_environment(addresses, site.block_explorers))

        async def static(request: Request) -> Response:
            file = files.get(request.url.path)
            if file is None:
                raise HTTPException(404)
            return file.response(request)

        async def icon(request: Request) -> Response:
            return Response(status_code=308, headers={"Location": addresses["icon.svg"]})

        overview = answers.endpoint(package.overview)

        async def named(request: Request) -> Response:
            name = (given := request.path_params["name"]).removesuffix(".json")
            if is_uri(name):
                return RedirectResponse(address_of(CapabilityURI.loose(name)) + given[len(name) :])
            if not wants_json(request):
                return await overview(request)
            async with in_time():
                answer = await name_page(site.reader, name)
            return RenderedPage.of(answer.body, JSON).response(request)

        def exact(endpoint: Endpoint) -> Endpoint:
            async def answer(request: Request) -> Response:
                name, version = (request.path_params.get(x, "") for x in ("name", "version"))
                wanted = _inexact(name, version)
                if wanted is None:
                    return await endpoint(request)
                try:
                    async with in_time():
                        release = await site.reader.read(site.reader.resolve, wanted)
                except InvalidInput:
                    if not request.url.path.endswith(".svg"):
                        raise
                    return await endpoint(request)  # a badge says it as an image
                rest = request.url.path.split("/", 4)[4:]
                suffix = ".json" if not rest and request.url.path.endswith(".json") else ""
                suffix += f"?{request.url.query}" if request.url.query else ""
                return RedirectResponse("/".join(("/c", name, release.semver, *rest)) + suffix)

            return answer

        attempted = answers.endpoint(file_check.file_check)
        self.routes: Sequence[BaseRoute] = [
            Route("/", answers.endpoint(search.home), methods=["GET"]),
            Route("/index.json", answers.endpoint(search.home), methods=["GET"]),
            Route("/favicon.ico", icon, methods=["GET"]),
            Route(STATIC_PREFIX + "{path:path}", static, methods=["GET"]),
            Route("/try", attempted, methods=["GET", "POST"]),
            Route("/try.json", attempted, methods=["GET", "POST"]),
            *(
                Route(path, exact(answers.endpoint(make, media_type)), methods=["GET"])
                for path, (make, media_type) in FILES.items()
            ),
            *(
                Route(path, answers.endpoint(partial(search.of_value, key)), methods=["GET"])
                for key in LISTED
                for path in (f"/{key}/{{value:path}}.json", f"/{key}/{{value:path}}")
            ),
            *(
                Route(f"{path}{suffix}", exact(answers.endpoint(page)), methods=["GET"])
                for path, page in PAGES.items()
                for suffix in (".json", "")
            ),
            Route("/c/{name}", named, methods=["GET"]),
        ]

    @property
    def handlers(self) -> Handlers:
        """Return the handlers of errors: a page for browsers, a problem document for others."""
        return dict.fromkeys((CapdexError, HTTPException, Exception), self._handle)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Sample the node's figures until the end, and close the site then."""
        sampling = asyncio.create_task(self.site.samples.take_always(self.site.status))
        try:
            yield
        finally:
            await end([sampling])
            await self.site.close()

    async def _handle(self, request: Request, error: Exception) -> Response:
        html = weight(request.headers.get("accept", ""), "text/html")
        if not html or wants_json(request) or request.method not in ("GET", "HEAD"):
            kind = next(x for x in type(error).__mro__ if x in self._others)
            return await self._others[kind](request, error)
        if isinstance(error, HTTPException):
            if error.status_code != 404:
                return PlainTextResponse(error.detail, error.status_code, error.headers)
            error = InvalidInput("there is nothing at this address", Code.NOT_FOUND, fix="search")
        return await self.answers.error(request, error, as_json=False)


def _inexact(name: str, version: str) -> CapabilityURI | None:
    """Return what `latest` or a range of versions means; None for any other text."""
    try:
        uri = CapabilityURI.loose(name if version == LATEST else f"{name}@{version}")
    except InvalidInput:
        return None
    return None if not version or isinstance(uri.selector, Version) else uri
