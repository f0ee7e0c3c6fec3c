"""Search the listed releases by words and filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capdex.errors import InvalidInput
from indexer.query import Filters, Page, read_revision, read_tools
from mcp_service.answers import text
from mcp_service.answers.rendered import Answer, Moment, render
from mcp_service.queries.reader import Reader

MAX_PAGE: Final = 50
DEFAULT_PAGE: Final = 10
FACETS: Final = ("domain", "tag", "language", "license", "permission", "binding")
DETAILS: Final = ("brief", "full")
MAX_REPLY_BYTES: Final = 1 << 20  # a host puts replies into a model's context: keep them small


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search: words, filters, facets to count, and the page."""

    query: str
    filters: Filters
    limit: int = DEFAULT_PAGE
    cursor: str | None = None
    detail: str = "brief"
    facets: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> SearchRequest:
        """Read the arguments of `search_capabilities`; raises InvalidInput."""
        query, filters = given.get("query_string"), given.get("filters")
        if not isinstance(query, str):
            came = "nothing" if query is None else type(query).__name__
            raise InvalidInput("query_string is missing or not a string", why=f"it is {came}")
        if filters is not None and not isinstance(filters, dict):
            raise InvalidInput("filters is not an object")
        limit = given.get("limit", DEFAULT_PAGE)
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
            raise InvalidInput(f"limit is not a whole number from 1 to {MAX_PAGE}")
        cursor, detail = given.get("cursor"), given.get("detail", "brief")
        if cursor is not None and not isinstance(cursor, str):
            raise InvalidInput("cursor is not a string")
        if detail not in DETAILS:
            raise InvalidInput(f"detail is one of {', '.join(DETAILS)}")
        facets = read_facets(given.get("facets"))
        return cls(query, Filters.parse(filters or {}), limit, cursor, str(detail), facets)


def read_facets(given: Any) -> tuple[str, ...]:
    """Read the argument `facets`: a list of FACETS; raises InvalidInput."""
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(x, str) and x in FACETS for x in given):
        raise InvalidInput(f"facets is not a list of {', '.join(FACETS)}")
    return tuple(dict.fromkeys(given))


async def search(reader: Reader, wanted: SearchRequest) -> Answer:
    """Return a page of hits, best first; an exact name leads.

    A page whose releases are very large is cut; its cursor goes on from there. Raises the errors
    of `Index.search`.
    """
    return await reader.run(_search, reader, wanted, long=True)


def _search(reader: Reader, wanted: SearchRequest) -> Answer:
    limit = wanted.limit
    while True:
        with reader.index.read() as connection:
            # Read first: the answer is never older than this block.
            moment = Moment.of(*read_revision(connection))
        page = reader.index.search(
            wanted.query, wanted.filters, limit=limit, cursor=wanted.cursor, facets=wanted.facets
        )
        answer = _render(reader, page, wanted, moment)
        if limit == 1 or len(answer.body) + len(answer.text_json) <= MAX_REPLY_BYTES:
            return answer
        limit = max(1, limit // 2)


def _render(reader: Reader, page: Page, wanted: SearchRequest, moment: Moment) -> Answer:
    with reader.index.read() as connection:
        tools = read_tools(connection, [hit.release.sequence for hit in page.hits])
    words = text.hits(
        page.hits, tools, total=page.total, cursor=page.next_cursor, full=wanted.detail == "full"
    )
    head: dict[str, Any] = {"total": page.total, "next_cursor": page.next_cursor}
    if wanted.facets:
        head["facets"] = {
            key: [{"value": value, "count": count} for value, count in found]
            for key, found in page.facets.items()
        }
    releases = (
        (hit.release, {"score": round(hit.score, 6), "matched": list(hit.matched)})
        for hit in page.hits
    )
    return render(head, releases, words).answer(moment, reader.warning())
