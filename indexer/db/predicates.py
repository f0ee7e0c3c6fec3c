"""The conditions on releases that have an index of their own, in the words of that index.

A partial index serves a query only where SQLite finds its condition in it, written the same way:
so each is written here once, for indexer/db/models.py and for whoever asks. They are texts because
SQLAlchemy would write " = 1" behind what it knows to be Boolean.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Index, TextClause, literal_column, text

STANDS: Final[ColumnElement[Any]] = literal_column("release.stands")
NOT_YANKED: Final = text("NOT release.yanked")
JUDGED: Final = text("release.verdict IS NOT NULL")
REJECTED: Final = text("release.verdict <> 'verified'")
PENDING: Final = text("release.availability = 'pending'")
PARKED: Final = text("release.availability = 'parked'")
# The lanes of the queue (indexer/store/fetch_queue.py).
NEW: Final = text("release.availability = 'pending' AND release.due_at = 0")
RETRIED: Final = text(
    "release.availability = 'pending' AND release.due_at > 0 AND release.verdict IS NULL"
)
JUDGED_AGAIN: Final = text(
    "release.availability = 'pending' AND release.due_at > 0 AND release.verdict IS NOT NULL"
)


def partial_index(
    name: str, *columns: str, where: ColumnElement[Any] | TextClause, unique: bool = False
) -> Index:
    """An index of those rows alone for which a condition holds."""
    return Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)
