"""One page of a search: hits of the engine, with their releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, select

from capdex.errors import InvalidInput
from capdex.search.explain import Explanation, explain, wanted_tokens
from capdex.search.ranked import RankedHit
from capdex.search.semantic import Encoder, encode_query
from capdex_indexer.db.models import LISTING
from capdex_indexer.query.release import IndexedRelease, read_releases
from capdex_indexer.query.search.cursor import read_cursor, write_cursor
from capdex_indexer.query.search.documents import read_documents
from capdex_indexer.query.search.filters import SearchFilters
from capdex_indexer.query.search.state import State

MAX_PAGE: Final = 50
LEXICAL, SEMANTIC = "lexical", "semantic"  # by words, or by words and by meaning
MAX_FACETS: Final = 20  # values of each filter that are counted

_LISTED: Final = select(LISTING.c.name, LISTING.c.release_id).where(
    LISTING.c.name.in_(bindparam("names", expanding=True))
)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One page of hits as the engine names them; nothing of it is read from the database.

    `corrected` has the words that were taken for each misspelt one; `mode` is LEXICAL or SEMANTIC.
    It `fits` if a hit has half of the query's words or is named by it. `total` and `facets` count
    all pages: the commonest values of the filters that were asked for, with their numbers.
    """

    hits: list[RankedHit]
    next_cursor: str | None
    total: int
    facets: dict[str, list[tuple[str, int]]]
    corrected: Mapping[str, tuple[str, ...]]
    mode: str = LEXICAL
    fits: bool = True


def find(
    state: State,
    query: str,
    filters: SearchFilters,
    *,
    encoder: Encoder | None = None,
    limit: int,
    cursor: str | None = None,
    facets: Sequence[str] = (),
) -> SearchResult:
    """Return a page of the hits of an engine, best first; with an encoder by meaning, too.

    Raises InvalidInput for a query that is too long, or an invalid limit or cursor.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"a page has 1 to {MAX_PAGE} hits, not {limit}")
    after = None if cursor is None else read_cursor(state.key, cursor, query, filters)
    engine, conditions = state.engine, filters.of_engine()
    scores, mode = engine.scores(query), LEXICAL
    if encoder is not None and engine.encoded and query.strip():
        scores = engine.fuse(scores, encode_query(encoder, query), conditions)
        mode = SEMANTIC
    page = engine.page(scores, filters=conditions, limit=limit, after=after)
    counts = engine.facets(scores, facets, filters=conditions, limit=MAX_FACETS) if facets else {}
    more = None if page.after is None else write_cursor(state.key, query, filters, page.after)
    fits = any(hit.lead or 2 * hit.words >= scores.words for hit in page.hits)
    return SearchResult(page.hits, more, page.total, counts, page.corrected, mode, fits)


def read_listed(connection: Connection, names: Iterable[str]) -> dict[str, IndexedRelease]:
    """Return the listed release of each of these names (a page of them) that has one."""
    rows = connection.execute(_LISTED, {"names": list(names)}).all()
    releases = read_releases(connection, [row.release_id for row in rows])
    return {row.name: release for row, release in zip(rows, releases, strict=True)}


def read_reasons(
    connection: Connection, result: SearchResult, query: str
) -> dict[str, Explanation]:
    """Return why each hit was found, by name."""
    if not query.strip():
        return {}
    names = [hit.name for hit in result.hits]
    wanted = wanted_tokens(query, result.corrected)
    return {x.name: explain(x, wanted) for x in read_documents(connection, names)}
