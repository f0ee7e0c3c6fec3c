"""Search the listed releases by words and filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection

from capdex.errors import InvalidInput
from capdex.json import list_of, object_of
from capdex.json_schema.arguments import one_of, read_arguments, read_text, some_of
from capdex.search.explain import Explanation
from capdex_indexer.query.search.filters import (
    FILTER_NAMES,
    HAS_PROMPT,
    NOT,
    SINCE,
    WINDOW,
    SearchFilters,
)
from capdex_indexer.query.search.page import MAX_PAGE, SearchResult, read_reasons
from capdex_service.answers.card import Card, Hit, render_hits
from capdex_service.answers.paging import read_limit
from capdex_service.answers.rendered import Answer, Moment
from capdex_service.queries.reader import Reader, read_cards
from capdex_service.queries.releases import find_by_hash

DEFAULT_PAGE: Final = 10
FACETS: Final = ("domain", "kind", "tag", "language", "license", "permission", "binding")
DETAILS: Final = ("brief", "full")
# Arguments that clients write into `filters` by mistake, each with an example.
ARGUMENTS: Final = {
    "limit": "5",
    "cursor": '"…"',
    "detail": '"full"',
    "facets": '["domain"]',
    "query_string": '"…"',
}
_TEXTS: Final[dict[str, Any]] = {key: {} for key in (*FILTER_NAMES, SINCE)}
_OTHERS: Final = {
    HAS_PROMPT: {"type": "boolean"},
    WINDOW: {"type": "integer"},
    NOT: {"type": "object", "properties": _TEXTS},
}
MAX_REPLY_BYTES: Final = 1 << 20  # a host puts replies into a model's context: keep them small


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search: words, filters, facets to count, and the page."""

    query: str
    filters: SearchFilters
    limit: int = DEFAULT_PAGE
    cursor: str | None = None
    detail: str = "brief"
    facets: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> SearchRequest:
        """Read the arguments of `search_capabilities`; raises InvalidInput."""
        query, filters = read_text(given, "query_string"), _filters(given.get("filters"))
        for key in ARGUMENTS.keys() & filters.keys():
            raise InvalidInput(
                f"{key} is not a filter, but an argument beside filters",
                fix=f'write {{"query_string": "…", "filters": […], "{key}": {ARGUMENTS[key]}}}',
            )
        limit = read_limit(given.get("limit", DEFAULT_PAGE), MAX_PAGE)
        cursor = given.get("cursor")
        detail = one_of("detail", given.get("detail", "brief"), DETAILS)
        if cursor is not None and not isinstance(cursor, str):
            raise InvalidInput("cursor is not a string", fix="send next_cursor of a page")
        facets = tuple(dict.fromkeys(some_of("facets", given.get("facets"), FACETS)))
        return cls(query, SearchFilters.parse(filters), limit, cursor, detail, facets)


def _filters(given: object) -> dict[str, Any]:
    """Return filters as an object, also from a list of `filter:value`; raises InvalidInput."""
    if given is not None and not isinstance(given, dict | list):
        raise InvalidInput("filters is not a list of filter:value", fix='write ["tag:city"]')
    filters = {**object_of(given)}
    for text in list_of(given):
        key, colon, value = map(str.strip, (text if isinstance(text, str) else "").partition(":"))
        if not colon or key == NOT:
            raise InvalidInput("filters is not a list of filter:value", fix='write ["tag:city"]')
        if key in (HAS_PROMPT, SINCE, WINDOW):
            filters[key] = value
            continue
        of = filters.setdefault(NOT, {}) if key.startswith(f"{NOT}.") else filters
        of.setdefault(key.removeprefix(f"{NOT}."), []).extend([value] if value else ())
    return read_arguments({"properties": _TEXTS | _OTHERS}, filters)


async def search(reader: Reader, wanted: SearchRequest) -> Answer:
    """Return a page of hits, best first; an exact name leads, or that of an exact CID or sha256.

    A page whose releases are very large is cut; its cursor goes on from there. Raises the errors
    of `Index.find`.
    """
    return (await explained_search(reader, wanted, explained=False))[0]


async def explained_search(
    reader: Reader, wanted: SearchRequest, *, explained: bool = True
) -> tuple[Answer, Mapping[str, tuple[str, ...]]]:
    """Return what `search` returns, with the reasons of each hit, and its corrections.

    These are the words that were taken for each misspelt one.
    """
    if hashed := await find_by_hash(reader, wanted.query.strip()):
        wanted = replace(wanted, query=hashed.name or "")
    limit = wanted.limit
    moment = await reader.moment()  # first: the answer is never older than this block
    while True:
        work = partial(
            reader.index.find,
            wanted.query,
            wanted.filters,
            limit=limit,
            cursor=wanted.cursor,
            facets=wanted.facets,
            revision=moment.revision,
        )
        result = await reader.run(work, long=True)
        reasons: Mapping[str, Explanation] = {}
        if wanted.detail == "full":
            cards, reasons = await reader.read(_read_full, result, wanted.query)
        else:
            cards = await reader.cards([hit.name for hit in result.hits])
            if explained:
                reasons = await reader.read(read_reasons, result, wanted.query)
        answer = _render(result, cards, reasons, wanted.facets, moment, reader.warning())
        if limit == 1 or len(answer.body) + len(answer.text_json) <= MAX_REPLY_BYTES:
            return answer, result.corrected
        limit = max(1, limit // 2)


def _read_full(
    connection: Connection, result: SearchResult, query: str
) -> tuple[dict[str, Card], dict[str, Explanation]]:
    names = [hit.name for hit in result.hits]
    return read_cards(connection, names, full=True), read_reasons(connection, result, query)


def _render(
    result: SearchResult,
    cards: Mapping[str, Card],
    reasons: Mapping[str, Explanation],
    facets: Sequence[str],
    moment: Moment,
    warning: str | None,
) -> Answer:
    head: dict[str, Any] = {"total": result.total, "mode": result.mode}
    head["next_cursor"] = result.next_cursor
    if facets:
        head["facets"] = {
            key: [{"value": value, "count": count} for value, count in counts]
            for key, counts in result.facets.items()
        }
    hits: list[Hit] = []
    for hit in result.hits:
        if (card := cards.get(hit.name)) is None:
            continue  # no longer listed
        more: dict[str, Any] = {"score": round(hit.score, 6), "matched": hit.fields}
        more |= {"like": hit.like} if hit.like else {}
        if (reason := reasons.get(hit.name)) is not None:
            snippet = None if reason.snippet is None else asdict(reason.snippet)
            similarity = None if hit.similarity is None else round(hit.similarity, 3)
            more["why"] = {"tool": reason.tool, "snippet": snippet, "similarity": similarity}
        hits.append((card, more, hit.fields or (("meaning",) if hit.similarity else ())))
    made = render_hits(head, hits, result.total, result.next_cursor, fits=result.fits)
    return made.answer(moment, warning)
