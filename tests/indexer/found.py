"""Pages of hits with their releases."""

from __future__ import annotations

from typing import Any, NamedTuple

from capdex_indexer.query.index import Index
from capdex_indexer.query.release import IndexedRelease
from capdex_indexer.query.search.filters import SearchFilters
from capdex_indexer.query.search.page import read_listed


class FoundRelease(NamedTuple):
    release: IndexedRelease
    score: float
    matched: tuple[str, ...]


class FoundPage(NamedTuple):
    hits: list[FoundRelease]
    next_cursor: str | None
    total: int
    facets: dict[str, list[tuple[str, int]]]


def search_page(
    index: Index, query: str, filters: SearchFilters | None = None, **page: Any
) -> FoundPage:
    """Find releases; those that are no longer listed are left out."""
    found = index.find(query, filters, **page)
    with index.read() as connection:
        listed = read_listed(connection, [hit.name for hit in found.hits])
    hits = [FoundRelease(listed[x.name], x.score, x.fields) for x in found.hits if x.name in listed]
    return FoundPage(hits, found.next_cursor, found.total, found.facets)
