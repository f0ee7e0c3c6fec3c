"""Reading the index: resolve, search, list releases and names, report status and digests."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex.search.query import MAX_QUERY_CHARS
    from capdex_indexer.query.catalog import LISTED_BY, BoundReleases, count_listed, read_listed_by
    from capdex_indexer.query.changes import (
        ListedRelease,
        NameChange,
        read_changes,
        read_listed_releases,
        read_newest,
    )
    from capdex_indexer.query.history import (
        HistoryEvent,
        read_account_history,
        read_block_history,
        read_name_history,
    )
    from capdex_indexer.query.index import Index
    from capdex_indexer.query.name_state import NameRecord, read_name_state
    from capdex_indexer.query.names import read_names_like, read_versions_like
    from capdex_indexer.query.pages import (
        count_versions,
        read_first_seen,
        read_newest_releases,
        read_shown_version,
        read_version,
        read_version_before,
        read_versions,
        read_waiting,
    )
    from capdex_indexer.query.release import IndexedRelease, read_name, read_tools
    from capdex_indexer.query.search.filters import FILTER_NAMES, SearchFilters
    from capdex_indexer.query.search.page import (
        MAX_PAGE,
        SearchResult,
        read_listed,
        read_reasons,
    )
    from capdex_indexer.query.search.route import MAX_MESSAGE_CHARS, Route
    from capdex_indexer.query.status import IndexStatus, Position, read_revision

__all__ = [
    "FILTER_NAMES",
    "LISTED_BY",
    "MAX_MESSAGE_CHARS",
    "MAX_PAGE",
    "MAX_QUERY_CHARS",
    "BoundReleases",
    "HistoryEvent",
    "Index",
    "IndexStatus",
    "IndexedRelease",
    "ListedRelease",
    "NameChange",
    "NameRecord",
    "Position",
    "Route",
    "SearchFilters",
    "SearchResult",
    "count_listed",
    "count_versions",
    "read_account_history",
    "read_block_history",
    "read_changes",
    "read_first_seen",
    "read_listed",
    "read_listed_by",
    "read_listed_releases",
    "read_name",
    "read_name_history",
    "read_name_state",
    "read_names_like",
    "read_newest",
    "read_newest_releases",
    "read_reasons",
    "read_revision",
    "read_shown_version",
    "read_tools",
    "read_version",
    "read_version_before",
    "read_versions",
    "read_versions_like",
    "read_waiting",
]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
