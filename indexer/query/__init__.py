"""Reading the index: resolve, search, list releases and names, report status and digests."""

from indexer.query.catalog import BoundReleases
from indexer.query.changes import CommitWatch, NameChange
from indexer.query.digest import Digest
from indexer.query.filters import FILTER_NAMES, Filters
from indexer.query.index import MAX_QUERY_CHARS, Hit, Index, Page
from indexer.query.name_state import NameState, read_name_state
from indexer.query.release import IndexedRelease, read_name, read_tools
from indexer.query.status import IndexStatus, Position, read_revision

__all__ = [
    "FILTER_NAMES",
    "MAX_QUERY_CHARS",
    "BoundReleases",
    "CommitWatch",
    "Digest",
    "Filters",
    "Hit",
    "Index",
    "IndexStatus",
    "IndexedRelease",
    "NameChange",
    "NameState",
    "Page",
    "Position",
    "read_name",
    "read_name_state",
    "read_revision",
    "read_tools",
]
