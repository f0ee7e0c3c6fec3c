"""Search: the engine of a reader, kept up with the database, and the pages of its hits."""

from capdex.search.query import MAX_QUERY_CHARS
from capdex_indexer.query.search.filters import FILTER_NAMES, SearchFilters
from capdex_indexer.query.search.follower import SearchFollower
from capdex_indexer.query.search.live import LiveSearch
from capdex_indexer.query.search.page import (
    MAX_PAGE,
    SearchHit,
    SearchPage,
    SearchResult,
    find,
    read_listed,
    read_page,
    read_reasons,
)
from capdex_indexer.query.search.processes import Progress
from capdex_indexer.query.search.route import MAX_MESSAGE_CHARS, Route, route
from capdex_indexer.query.search.snapshots import Snapshots, directory_of
from capdex_indexer.query.search.state import State

__all__ = [
    "FILTER_NAMES",
    "MAX_MESSAGE_CHARS",
    "MAX_PAGE",
    "MAX_QUERY_CHARS",
    "LiveSearch",
    "Progress",
    "Route",
    "SearchFilters",
    "SearchFollower",
    "SearchHit",
    "SearchPage",
    "SearchResult",
    "Snapshots",
    "State",
    "directory_of",
    "find",
    "read_listed",
    "read_page",
    "read_reasons",
    "route",
]
