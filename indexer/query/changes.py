"""The feed of changed names, for readers that keep answers and for followers of an index."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, select, tuple_

from capdex.errors import Code, Unavailable
from indexer.db.engine import transaction, translated_errors
from indexer.db.models import DEPLOYMENT, LISTING, NAME_CHANGE, REGISTRY


@dataclass(frozen=True, slots=True)
class NameChange:
    """A name and the revision of the index that last changed an answer about it.

    `release_id` is the release that search lists for it now, or None.
    """

    revision: int
    name: str
    release_id: int | None


_FEED: Final = (
    select(NAME_CHANGE.c.revision, NAME_CHANGE.c.name, LISTING.c.release_id)
    .select_from(NAME_CHANGE.outerjoin(LISTING, LISTING.c.name == NAME_CHANGE.c.name))
    .order_by(NAME_CHANGE.c.revision, NAME_CHANGE.c.name)
)
_REVISION: Final = select(DEPLOYMENT.c.revision).where(DEPLOYMENT.c.id == REGISTRY)


def read_changes(connection: Connection, after: tuple[int, str], limit: int) -> list[NameChange]:
    """Return the names changed after a (revision, name), in that order; at most `limit`."""
    later = tuple_(NAME_CHANGE.c.revision, NAME_CHANGE.c.name) > after
    return [NameChange(*row) for row in connection.execute(_FEED.where(later).limit(limit))]


class CommitWatch:
    """Tells cheaply whether the writer may have committed since the last call.

    On SQLite `token` takes 2 µs and never waits; on PostgreSQL it is a query.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.immediate = engine.dialect.name == "sqlite"
        self._raw: Any = None

    def token(self) -> int:
        """Return a number that changes with every commit; raises Unavailable."""
        if self.immediate:
            try:
                if self._raw is None:
                    with translated_errors(self._engine):
                        self._raw = self._engine.raw_connection()
                        self._cursor = self._raw.cursor()
                return int(self._cursor.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error as error:
                message = "the index cannot be read"
                raise Unavailable(message, Code.DATABASE_UNAVAILABLE, str(error)) from error
        with transaction(self._engine) as connection:
            return int(connection.execute(_REVISION).scalar() or 0)

    def close(self) -> None:
        """Give the connection back."""
        if self._raw is not None:
            self._raw.close()
            self._raw = None
