"""The store of objects: their documents, and their merged values for queries.

The key of an object is the owner-bound name of its package, the memory scope, the schema and its
id. An object goes from live to deleted (its content is kept until a purge) to erased (its id alone
is kept, so that a merge does not bring it back). Past its time to live an object is as good as
gone, and the next purge or start removes it.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

import orjson

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex_router.state import rows
from capdex_router.state.database import Database
from capdex_router.state.object import StateObject
from capdex_router.state.patch import Patched
from capdex_router.state.query import Key, ObjectQuery
from capdex_router.state.rows import DELETED, ERASED, LIVE, Run, Space
from capdex_router.state.strategies import Model
from capdex_router.state.values import check_size

MAX_SCANNED_BYTES: Final = 64 * 1024 * 1024  # by one query
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
CHUNK_ROWS: Final = 512


class FoundObject(NamedTuple):
    """An object that a query found: its whole value, and what the query selects of it.

    `conflicts` has all values of a multi-value register that has several.
    """

    id: str
    value: Json
    shown: Json
    conflicts: Json


class ObjectPage(NamedTuple):
    """Hits in order, and the cursor of the next page, if there may be one."""

    hits: tuple[FoundObject, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ObjectCollection:
    """The objects of a schema in a space, counted. `visibility` is None until its package ran."""

    space: Space
    schema_uri: str
    visibility: str | None
    live: int
    deleted: int
    expired: int


class ObjectStore:
    """Objects in a file; every method is one transaction, and may be called from any thread."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.database = Database(path)
        self.clock = clock
        self._known: dict[tuple[Space, str], tuple[Model, int]] = {}
        with self.database.writing() as run:
            self._expire(run, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def create(self, space: Space, model: Model, id_: str, value: Json) -> None:
        """Keep a new object; raises InvalidInput if the id is taken, also by a deleted object."""
        check_size(value)
        now = self.clock()
        number = self._number(space, model)
        with self.database.writing() as run:
            row = run(
                "SELECT state, changed FROM objects WHERE (collection, id) = (?, ?)", (number, id_)
            ).fetchone()
            if row is not None and (row[0] != LIVE or row[1] > rows.horizon(model, now)):
                deleted = row[0] != LIVE
                raise InvalidInput(
                    f"there is an object with the id {id_[:64]!r}",
                    why="it was deleted" if deleted else "",
                    fix="use another id" if deleted else "use state.update, or another id",
                )
            peer = rows.new_peer()
            rows.put(run, number, id_, peer, StateObject.create(model, peer, value, now))

    def update(
        self, space: Space, model: Model, id_: str, change: Callable[[Json], Patched]
    ) -> Json:
        """Change an object and return its new value; raises InvalidInput NOT_FOUND."""
        number = self._number(space, model)
        with self.database.writing() as run:
            peer, document = self._load(run, number, model, id_)
            changed = change(document.value())
            check_size(changed.value)
            document.write(changed.value, changed.touched, self.clock())
            value: Json = rows.put(run, number, id_, peer, document)
            return value

    def delete(self, space: Space, model: Model, id_: str, *, hard: bool = False) -> None:
        """Delete an object, or erase its content for good; raises InvalidInput NOT_FOUND.

        A deleted object can still be erased.
        """
        number = self._number(space, model)
        with self.database.writing() as run:
            if hard:
                held = "SELECT 1 FROM objects WHERE (collection, id) = (?, ?) AND state != ?"
                if run(held, (number, id_, ERASED)).fetchone() is None:
                    raise _not_found(id_)
                rows.erase(run, number, id_)
            else:
                peer, document = self._load(run, number, model, id_)
                document.delete(self.clock())
                rows.put(run, number, id_, peer, document)
        if hard:
            self.database.forget()

    def query(self, space: Space, model: Model, query: ObjectQuery) -> ObjectPage:
        """Return a page of objects.

        Without an order, a page may be short where much was looked at; its cursor goes on. With
        one, raises InvalidInput TOO_LARGE if too much is to be ordered.
        """
        number = self._number(space, model)
        horizon = rows.horizon(model, self.clock())
        with self.database.reading() as run:
            return _Scan(run, number, horizon, query).page()

    def collections(self) -> list[ObjectCollection]:
        """Return what is kept, in the order of owner, scope and schema."""
        with self.database.reading() as run:
            groups = run(
                "SELECT owner, scope, schema_uri, visibility,"
                " total(state = 0 AND NOT changed <= ?1 - ttl_s IS TRUE), total(state = 1),"
                " total(state = 0 AND changed <= ?1 - ttl_s IS TRUE)"
                " FROM collections JOIN objects ON collection = number"
                " GROUP BY number ORDER BY owner, scope, schema_uri",
                (self.clock(),),
            ).fetchall()
        return [
            ObjectCollection(Space(owner, scope), uri, visibility, *map(int, counts))
            for owner, scope, uri, visibility, *counts in groups
        ]

    def count(self, owner: str) -> int:
        """Return how many objects of an owner are there, without those that were deleted."""
        with self.database.reading() as run:
            (count,) = run(
                "SELECT count(*) FROM objects JOIN collections ON collection = number"
                " WHERE owner = ? AND state = ?",
                (owner, LIVE),
            ).fetchone()
        return int(count)

    def purge(self, owner: str | None = None) -> int:
        """Remove what has expired, and the content of what was deleted; return how many."""
        with self.database.writing() as run:
            count = self._expire(run, owner)
            deleted = run(
                "SELECT collection, id FROM objects JOIN collections ON collection = number"
                " WHERE state = ?1 AND (?2 IS NULL OR owner = ?2)",
                (DELETED, owner),
            ).fetchall()
            for number, id_ in deleted:
                rows.erase(run, number, id_)
        self.database.forget()
        return count + len(deleted)

    def drop(self, owner: str) -> int:
        """Remove all objects of an owner without a trace; return how many there were."""
        with self.database.writing() as run:
            for table in ("documents", "objects"):
                count: int = run(
                    f"DELETE FROM {table} WHERE collection IN"  # noqa: S608 - ours
                    " (SELECT number FROM collections WHERE owner = ?)",
                    (owner,),
                ).rowcount
            # The collections keep their numbers: another process may know them already, and a
            # number that a second package got would show it the objects of the first.
        self.database.forget()
        return count

    def _expire(self, run: Run, owner: str | None) -> int:
        expired = run(
            "SELECT collection, id FROM objects JOIN collections ON collection = number"
            " WHERE state = ?1 AND changed <= ?2 - ttl_s AND (?3 IS NULL OR owner = ?3)",
            (LIVE, self.clock(), owner),
        ).fetchall()
        for key in expired:
            run("DELETE FROM objects WHERE (collection, id) = (?, ?)", key)
            run("DELETE FROM documents WHERE (collection, id) = (?, ?)", key)
        return len(expired)

    def _number(self, space: Space, model: Model) -> int:
        known = self._known.get((space, model.uri))
        if known is not None and known[0] == model:
            return known[1]
        with self.database.writing() as run:
            number = rows.register(run, space, model)
        self._known[space, model.uri] = model, number
        return number

    def _load(self, run: Run, number: int, model: Model, id_: str) -> tuple[int, StateObject]:
        row = run(
            "SELECT peer, blob FROM documents JOIN objects USING (collection, id)"
            " WHERE (collection, id) = (?, ?) AND state = ? AND changed > ?",
            (number, id_, LIVE, rows.horizon(model, self.clock())),
        ).fetchone()
        if row is None:
            raise _not_found(id_)
        peer = row[0] or rows.new_peer()
        return peer, StateObject.load(model, peer, row[1])


class _Scan:
    """The objects of a collection that a query holds for, read in the order of their ids."""

    def __init__(self, run: Run, number: int, horizon: float, query: ObjectQuery) -> None:
        self._query = query
        self._bytes = 0
        after = query.after[0] if query.after and not query.order else ""
        self._last = after
        self._cursor = run(
            "SELECT id, value, conflicts FROM objects WHERE collection = ?1 AND id > ?2"
            " AND state = ?3 AND changed > ?4 AND (?5 = x'' OR instr(value, ?5)) ORDER BY id",
            (number, after, LIVE, horizon, query.text),
        )

    def page(self) -> ObjectPage:
        """Return a page in the order of the query, which looks at all objects, else of ids.

        In the order of ids it stops where enough was looked at.
        """
        query = self._query
        found: Iterable[tuple[Key, FoundObject, int]] = (
            (query.key(hit.value, hit.id), hit, size) for hit, size in self._hits()
        )
        if query.order:
            later = (x for x in found if query.after is None or query.after < x[0])
            found = heapq.nsmallest(query.limit + 1, later, key=lambda x: x[0])
        hits: list[FoundObject] = []
        size, last = 0, ()
        for key, hit, bytes_ in found:
            size += bytes_
            if len(hits) == query.limit or (hits and size > MAX_ANSWER_BYTES):
                return ObjectPage(tuple(hits), query.cursor(last))
            hits.append(hit)
            last = key
        more = self._bytes > MAX_SCANNED_BYTES
        return ObjectPage(tuple(hits), query.cursor((self._last,)) if more else None)

    def _hits(self) -> Iterator[tuple[FoundObject, int]]:
        holds = self._query.holds
        while chunk := self._cursor.fetchmany(CHUNK_ROWS):
            # One array is parsed quicker than its items one by one.
            values = orjson.loads(b"[%b]" % b",".join(row[1] for row in chunk))
            for (id_, data, conflicts), value in zip(chunk, values, strict=True):
                self._last = id_
                self._bytes += len(data)
                if holds(value):
                    known = orjson.loads(conflicts) if conflicts else {}
                    yield FoundObject(id_, value, self._query.shown(value), known), len(data)
            if self._bytes > MAX_SCANNED_BYTES:
                if not self._query.order:
                    return
                raise InvalidInput(
                    "there is too much to be put in order",
                    Code.TOO_LARGE,
                    why=f"more than {MAX_SCANNED_BYTES} bytes match so far",
                    fix="ask for a text that an object must have, or without order",
                )


def _not_found(id_: str) -> InvalidInput:
    return InvalidInput(
        f"there is no object with the id {id_[:64]!r}",
        Code.NOT_FOUND,
        fix="state.query lists the objects that are there",
    )
