"""Answers: a view as HTML or JSON, or an error as a page, with ETag, compression and headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote

import orjson
import structlog
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import Response

from capdex import __version__
from capdex.codes import all_codes
from capdex.errors import CapdexError, Code, InvalidInput
from capdex_explorer.http.page_cache import NO_REVISION, PageCache
from capdex_explorer.http.rendered import NOT_STORED, SECURITY, RenderedPage, weight
from capdex_explorer.pages.discovery import near_names
from capdex_explorer.site import NO_TAG, FormRefused, PageRequest, Site, View
from capdex_indexer.query.index import in_time
from capdex_indexer.query.search.filters import FILTER_NAMES
from capdex_service.answers.errors import public_error
from capdex_service.http.problem import problem
from capdex_service.limits.addresses import CLIENT

# Parameters that choose what is on a page; others, as those of link trackers, are no part of it.
SELECTING: Final = {
    *["q", "message", "path", "sort", "after", "before", "log", "from", "page", "cursor"],
    *["old", "new", *FILTER_NAMES],
}
HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"

Make = Callable[[Site, PageRequest], Awaitable[View | bytes]]
Endpoint = Callable[[Request], Awaitable[Response]]

log = structlog.get_logger(part="explorer")


@dataclass(slots=True)
class Answers:
    """Makes answers, and keeps those that depend on the index alone."""

    site: Site
    templates: Environment
    cache: PageCache = field(default_factory=PageCache)

    def __post_init__(self) -> None:
        self.site.reader.on_change(self.cache.drop)

    def endpoint(self, make: Make, media_type: str = "") -> Endpoint:
        """Return the endpoint of a page, in HTML or, on request, in JSON.

        A file that is made from the index, such as a feed or an image, has a `media_type`.
        """

        async def answer(request: Request) -> Response:
            as_json = not media_type and wants_json(request)
            return await self._answer(request, make, as_json=as_json, media_type=media_type)

        return answer

    async def _answer(
        self, request: Request, make: Make, *, as_json: bool, media_type: str
    ) -> Response:
        base = f"{request.url.scheme}://{request.url.netloc}"
        warning = self.site.reader.warning() or ""
        key = (base, request.scope["path"], request.url.query, str(as_json), warning)
        try:
            async with in_time():
                readable, moment = request.method != "POST", await self.site.reader.moment()
                if readable and (kept := self.cache.get(key, moment)) is not None:
                    return kept.response(request)
                page_request = await read_page_request(request, base)
                complete = self.site.reader.index.live.is_complete(moment.revision)
                made = await make(self.site, page_request)
                rendered = (
                    RenderedPage.of(made, media_type)
                    if isinstance(made, bytes)
                    else self.render(made, page_request, as_json=as_json)
                )
                if readable and rendered.status == 200 and rendered.caching != NOT_STORED:
                    tag = made.cache_tag if isinstance(made, View) else NO_TAG
                    # A commit since may have dropped what it changed already.
                    if (await self.site.reader.moment()).revision == moment.revision:
                        # What a search lacks comes without a commit.
                        made_at = moment if complete else replace(moment, revision=NO_REVISION)
                        self.cache.put(key, rendered, made_at, tag)
                return rendered.response(request)
        except Exception as error:  # noqa: BLE001 - shown as a page, without details of a bug
            return await self.error(request, error, as_json=as_json or bool(media_type))

    def render(self, view: View, page_request: PageRequest, *, as_json: bool) -> RenderedPage:
        """Render a view as JSON or as a page."""
        if as_json:
            return RenderedPage.of(orjson.dumps(view.data), JSON, view.status, live=view.live)
        path = "/index" if page_request.path == "/" else page_request.path
        json = page_request.address().replace(page_request.path, f"{path}.json", 1)
        unknown = dict.fromkeys(page_request.query.keys() - SELECTING)
        page = {
            "path": page_request.path,
            "base": page_request.base,
            "canonical": view.canonical or page_request.address(**unknown),
            "json": json if view.status == 200 else "",
            "version": __version__,
            "warning": self.site.reader.warning(),
        }
        text = self.templates.get_template(view.template).render(page=page, view=view, **view.data)
        return RenderedPage.of(text.encode("utf-8"), HTML, view.status, live=view.live)

    async def error(self, request: Request, error: Exception, *, as_json: bool) -> Response:
        """Return an error as a page, or as a problem document."""
        form = error.view if isinstance(error, FormRefused) else None
        if isinstance(error, FormRefused):
            error = error.error
        if not isinstance(error, CapdexError):
            log.error("page failed", path=request.url.path, exc_info=error)
        if as_json:
            response = problem(error)
            response.headers.update(SECURITY)
            return response
        public = public_error(error)
        refused = {
            "code": str(public.code),
            "message": public.message,
            "why": public.why,
            "fix": public.fix,
            "http": public.kind.http,
            "explained": public.code in all_codes(),
        }
        title = "Not found" if public.kind.http == 404 else "Error"
        view = form or View("error.html", title, {})
        data = view.data | {"refused": refused}
        if form is None:
            lost = public.code == Code.NOT_FOUND
            data["near"] = await self._near(request) if lost else []
        view = replace(view, data=data, status=public.kind.http, live=True)
        page_request = PageRequest(request.url.path, {}, {}, "")
        response = self.render(view, page_request, as_json=False).response(request)
        if public.kind.retryable:
            response.headers["Retry-After"] = "1"
        return response

    async def _near(self, request: Request) -> list[str]:
        """Return the names that are like the one that an address wanted."""
        first, _, rest = request.url.path.removeprefix("/c/").strip("/").partition("/")
        of_name = request.url.path.startswith("/c/") or not rest
        wanted = request.path_params.get("name") or (first if of_name else "")
        try:
            return await near_names(self.site, wanted)
        except CapdexError:  # the index cannot be read: the page says what was wrong at first
            return []


async def read_page_request(request: Request, base: str) -> PageRequest:
    """Read a request; raises InvalidInput for a form that cannot be read."""
    query = request.scope["query_string"]
    path = quote(request.scope["path"].removesuffix(".json"), safe="/:@")
    page_request = PageRequest.read(path, request.path_params, query, base)
    if request.method != "POST":
        return page_request
    form = await _read_form(request)
    return replace(page_request, form=form, client=request.scope.get(CLIENT, ""))


def wants_json(request: Request) -> bool:
    """Return whether a request is for the JSON of a page: by its suffix, or by `Accept`."""
    if request.url.path.endswith(".json"):
        return True
    accept = request.headers.get("accept", "")
    return weight(accept, JSON) > weight(accept, "text/html")


async def _read_form(request: Request) -> dict[str, bytes]:
    """Return the fields of a form; a body of another type is the file `package` itself."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("multipart/form-data", "application/x-www-form-urlencoded"):
        return {"file": await request.body()}
    fields: dict[str, bytes] = {}
    try:
        async with request.form(max_files=1, max_fields=4, max_part_size=1 << 20) as form:
            for name, value in form.items():
                fields[name] = value.encode() if isinstance(value, str) else await value.read()
    except Exception as error:  # noqa: BLE001 - of the parser, for whatever was sent
        raise InvalidInput("the form cannot be read", why=str(error)[:200]) from None
    return fields
