"""Reading the index: resolve, search, list releases and names, report status and digests."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex.search.query import MAX_QUERY_CHARS as MAX_QUERY_CHARS
    from capdex_indexer.query.catalog import LISTED_BY as LISTED_BY
    from capdex_indexer.query.catalog import BoundReleases as BoundReleases
    from capdex_indexer.query.catalog import count_listed as count_listed
    from capdex_indexer.query.catalog import read_listed_by as read_listed_by
    from capdex_indexer.query.changes import CommitWatch as CommitWatch
    from capdex_indexer.query.changes import ListedRelease as ListedRelease
    from capdex_indexer.query.changes import NameChange as NameChange
    from capdex_indexer.query.changes import read_changes as read_changes
    from capdex_indexer.query.changes import read_listed_releases as read_listed_releases
    from capdex_indexer.query.changes import read_newest as read_newest
    from capdex_indexer.query.digest import Digest as Digest
    from capdex_indexer.query.history import HistoryEvent as HistoryEvent
    from capdex_indexer.query.history import read_account_history as read_account_history
    from capdex_indexer.query.history import read_block_history as read_block_history
    from capdex_indexer.query.history import read_name_history as read_name_history
    from capdex_indexer.query.index import Index as Index
    from capdex_indexer.query.name_state import NameRecord as NameRecord
    from capdex_indexer.query.name_state import read_name_state as read_name_state
    from capdex_indexer.query.names import read_names_like as read_names_like
    from capdex_indexer.query.names import read_versions_like as read_versions_like
    from capdex_indexer.query.pages import WaitingRelease as WaitingRelease
    from capdex_indexer.query.pages import count_versions as count_versions
    from capdex_indexer.query.pages import read_first_seen as read_first_seen
    from capdex_indexer.query.pages import read_newest_releases as read_newest_releases
    from capdex_indexer.query.pages import read_shown_version as read_shown_version
    from capdex_indexer.query.pages import read_version as read_version
    from capdex_indexer.query.pages import read_version_before as read_version_before
    from capdex_indexer.query.pages import read_versions as read_versions
    from capdex_indexer.query.pages import read_waiting as read_waiting
    from capdex_indexer.query.release import IndexedRelease as IndexedRelease
    from capdex_indexer.query.release import read_name as read_name
    from capdex_indexer.query.release import read_tools as read_tools
    from capdex_indexer.query.search.filters import FILTER_NAMES as FILTER_NAMES
    from capdex_indexer.query.search.filters import SearchFilters as SearchFilters
    from capdex_indexer.query.search.page import MAX_PAGE as MAX_PAGE
    from capdex_indexer.query.search.page import SearchHit as SearchHit
    from capdex_indexer.query.search.page import SearchPage as SearchPage
    from capdex_indexer.query.search.page import SearchResult as SearchResult
    from capdex_indexer.query.search.page import read_listed as read_listed
    from capdex_indexer.query.search.page import read_reasons as read_reasons
    from capdex_indexer.query.search.route import MAX_MESSAGE_CHARS as MAX_MESSAGE_CHARS
    from capdex_indexer.query.search.route import Route as Route
    from capdex_indexer.query.status import IndexStatus as IndexStatus
    from capdex_indexer.query.status import Position as Position
    from capdex_indexer.query.status import read_revision as read_revision
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
