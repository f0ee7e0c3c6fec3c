"""The feed of changed names, for readers that keep answers and for followers of an index."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, Row, bindparam, exists, select, tuple_

from capdex.errors import Code, Unavailable
from capdex.problems import Verdict
from capdex_indexer.db.columns import STANDS
from capdex_indexer.db.driver_errors import translated_errors
from capdex_indexer.db.engine import transaction
from capdex_indexer.db.models import LISTING, NAME_CHANGE, RELEASE, REVISION


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
_NEWEST: Final = (
    _FEED.where(
        exists().where(
            RELEASE.c.name == NAME_CHANGE.c.name,
            STANDS,
            RELEASE.c.verdict.in_(bindparam("serve", expanding=True)),
        )
    )
    .order_by(None)
    .order_by(NAME_CHANGE.c.revision.desc(), NAME_CHANGE.c.name.desc())
    .limit(bindparam("limit"))
)
_LISTED: Final = select(
    *(RELEASE.c.id, RELEASE.c.cap_uri, RELEASE.c.semver, RELEASE.c.cid, RELEASE.c.sha256)
).where(RELEASE.c.id.in_(bindparam("ids", expanding=True)))


def read_changes(connection: Connection, after: tuple[int, str], limit: int) -> list[NameChange]:
    """Return the names changed after a (revision, name), in that order; at most `limit`."""
    later = tuple_(NAME_CHANGE.c.revision, NAME_CHANGE.c.name) > after
    return [NameChange(*row) for row in connection.execute(_FEED.where(later).limit(limit))]


def read_listed_releases(
    connection: Connection, changes: Iterable[NameChange]
) -> dict[str, Row[Any] | None]:
    """Return the release that search lists of each changed name, or None, in their order.

    A row has `cap_uri`, `semver`, `cid` and `sha256` (bytes).
    """
    ids = {x.name: x.release_id for x in changes}
    rows = connection.execute(_LISTED, {"ids": [x for x in ids.values() if x is not None]})
    listed: dict[int, Any] = {row.id: row for row in rows}
    return {name: None if id_ is None else listed[id_] for name, id_ in ids.items()}


def read_newest(connection: Connection, serve: Collection[Verdict], limit: int) -> list[NameChange]:
    """Return the names that changed last, the newest change first.

    Names without a release of a served verdict are left out: anybody can announce such ones.
    """
    values = {"serve": sorted(serve), "limit": limit}
    return [NameChange(*row) for row in connection.execute(_NEWEST, values)]


class CommitWatch:
    """Tells cheaply whether the writer may have committed since the last call.

    On SQLite `token` takes 4 µs; on PostgreSQL it is a query. Any thread may call it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.immediate = engine.dialect.name == "sqlite"
        self._raw: Any = None
        self._opened = 0  # connections; each one counts commits from its own start
        self._turn = threading.Lock()  # one cursor cannot run two statements at a time

    def token(self) -> int:
        """Return a number that changes with every commit; raises Unavailable."""
        if self.immediate:
            try:
                with self._turn:
                    if self._raw is not None and not self._raw.info["in_place"]():
                        self._raw.invalidate()
                        self._raw = None
                    if self._raw is None:
                        with translated_errors(self._engine):
                            self._raw = self._engine.raw_connection()
                            self._cursor = self._raw.cursor()
                            self._opened += 1
                    seen = self._cursor.execute("PRAGMA data_version").fetchone()[0]
                    return self._opened << 32 | int(seen)
            except sqlite3.Error as error:
                message = "the index cannot be read"
                raise Unavailable(message, Code.DATABASE_UNAVAILABLE, str(error)) from error
        with transaction(self._engine) as connection:
            return int(connection.execute(REVISION).scalar() or 0)

    def close(self) -> None:
        """Close the connection, also if the engine was disposed before."""
        if self._raw is not None:
            self._raw.invalidate()
            self._raw = None
