"""The pages of `/v1`: the same questions as the MCP tools, asked by a query string."""

from __future__ import annotations

from typing import Any, Final

from capdex_indexer.query.search.filters import FILTER_NAMES, HAS_PROMPT, NOT, SINCE, WINDOW
from capdex_indexer.query.search.page import MAX_PAGE
from capdex_service.answers.cmp import LEVELS
from capdex_service.answers.paging import read_limit
from capdex_service.answers.rendered import Answer
from capdex_service.http.pages import Question
from capdex_service.http.parameters import choice, number, read_parameters, required, several, words
from capdex_service.queries import capabilities, changes, proofs
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import read_include
from capdex_service.queries.route import DEFAULT_ROUTES, route
from capdex_service.queries.search import DEFAULT_PAGE, SearchRequest, search


def read_resolve(query: bytes) -> tuple[str, tuple[str, int | bytes | None], frozenset[str]]:
    """Read the query string of `/v1/resolve`: what `proofs.answer` takes; raises InvalidInput."""
    given = read_parameters(query, ("uri", "include", "proof", "proof_block"), ("include",))
    include = read_include(words(given, "include"))
    return required(given, "uri"), proofs.read_request(given), include


def read_search(query: bytes) -> SearchRequest:
    """Read the query string of `/v1/search`; raises InvalidInput."""
    values = [*FILTER_NAMES, *(f"{NOT}.{name}" for name in FILTER_NAMES)]
    others = ("q", HAS_PROMPT, SINCE, WINDOW, "facets", "detail", "limit", "cursor")
    given = read_parameters(query, (*values, *others), ("facets", *values))
    filters: dict[str, Any] = {x: several(given, x) for x in FILTER_NAMES if x in given}
    lacks = {x: several(given, f"{NOT}.{x}") for x in FILTER_NAMES if f"{NOT}.{x}" in given}
    filters |= {NOT: lacks} if lacks else {}
    if HAS_PROMPT in given:
        filters[HAS_PROMPT] = choice(given, HAS_PROMPT, ("true", "false"), "true") == "true"
    if SINCE in given:
        filters[SINCE] = required(given, SINCE)
    if WINDOW in given:
        filters[WINDOW] = number(given, WINDOW, 0)
    return SearchRequest.parse(
        {
            "query_string": given.get("q", ""),
            "filters": filters,
            "facets": words(given, "facets"),
            "limit": number(given, "limit", DEFAULT_PAGE),
            **{name: given[name] for name in ("detail", "cursor") if name in given},
        }
    )


async def _resolve(reader: Reader, query: bytes) -> Answer:
    return await proofs.answer(reader, *read_resolve(query))


async def _search(reader: Reader, query: bytes) -> Answer:
    return await search(reader, read_search(query))


async def _route(reader: Reader, query: bytes) -> Answer:
    given = read_parameters(query, ("message", "limit"))
    limit = read_limit(number(given, "limit", DEFAULT_ROUTES), MAX_PAGE)
    return await route(reader, required(given, "message"), limit)


async def _list(reader: Reader, query: bytes) -> Answer:
    given = read_parameters(query, ("kind", "limit", "cursor"))
    return await capabilities.list_capabilities(
        reader,
        kind=given.get("kind"),
        limit=number(given, "limit", capabilities.DEFAULT_PAGE),
        cursor=given.get("cursor"),
    )


async def _describe(reader: Reader, query: bytes) -> Answer:
    given = read_parameters(query, ("capability_id", "version"))
    version = required(given, "version") if "version" in given else None
    return await capabilities.describe(reader, required(given, "capability_id"), version)


async def _cmp(reader: Reader, query: bytes) -> Answer:
    given = read_parameters(query, ("level", "of", "cursor"))
    level = choice(given, "level", LEVELS, LEVELS[0])
    return await capabilities.read_level(reader, level, given.get("of"), cursor=given.get("cursor"))


async def _changes(reader: Reader, query: bytes) -> Answer:
    given = read_parameters(query, ("since", "limit"))
    limit = number(given, "limit", changes.DEFAULT_PAGE)
    return await changes.list_changes(reader, given.get("since"), limit)


QUESTIONS: Final[dict[str, Question]] = {
    "/v1/resolve": _resolve,
    "/v1/search": _search,
    "/v1/route": _route,
    "/v1/capabilities": _list,
    "/v1/describe": _describe,
    "/v1/cmp": _cmp,
    "/v1/changes": _changes,
}
