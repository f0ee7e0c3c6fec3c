"""The fetch queue for operators: pending and parked releases, their last error and next try."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from heapq import merge
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, TextClause, and_, func, select, tuple_

from capdex.errors import InvalidInput
from capdex.problems import Availability
from capdex_indexer.db.columns import PARKED, PENDING, Lane
from capdex_indexer.db.models import RELEASE

WAITING: Final = (Availability.PENDING, Availability.PARKED)
_CURSOR: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,17})?)-([0-9]{1,18})")
_CONDITIONS: Final = {Availability.PENDING: PENDING, Availability.PARKED: PARKED}


@dataclass(frozen=True, slots=True)
class QueuedRelease:
    """A release that waits to be judged, for the first time or again; times are epoch seconds.

    `due_at` is the time of the next try, 0 for at once, None for a parked one. `error` is the
    outcome of the last try.
    """

    name: str | None
    cap_uri: str
    cid: str
    publisher: str
    state: Availability
    lane: Lane | None
    reason: str | None
    error: str
    attempts: int
    queued_at: float
    due_at: float | None


@dataclass(frozen=True, slots=True)
class QueuePage:
    """A page of the queue, oldest first; `totals` counts all selected releases by state."""

    releases: tuple[QueuedRelease, ...]
    totals: dict[Availability, int]
    next_cursor: str | None


def read_queue(
    connection: Connection,
    *,
    states: Collection[Availability] = WAITING,
    name: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> QueuePage:
    """Read a page of the queue (of one name, or all); raises InvalidInput for an invalid cursor."""
    chosen = [state for state in WAITING if state in states]
    after = None if cursor is None else _read_cursor(cursor)
    found = [_of_state(connection, state, name, limit + 1, after) for state in chosen]
    rows = list(merge(*found, key=lambda row: (row.queued_at, row.id)))
    more, rows = len(rows) > limit, rows[:limit]
    last = f"{rows[-1].queued_at!r}-{rows[-1].id}" if more else None
    totals = {state: _count(connection, state, name) for state in chosen}
    return QueuePage(tuple(map(_queued, rows)), totals, last)


def _of_state(
    connection: Connection,
    state: Availability,
    name: str | None,
    limit: int,
    after: tuple[float, int] | None,
) -> list[Row[Any]]:
    key = tuple_(RELEASE.c.queued_at, RELEASE.c.id)
    query = select(RELEASE).where(_selected(state, name))
    if after is not None:
        query = query.where(key > after)
    ordered = query.order_by(RELEASE.c.queued_at, RELEASE.c.id).limit(limit)
    return list(connection.execute(ordered))


def _count(connection: Connection, state: Availability, name: str | None) -> int:
    query = select(func.count()).select_from(RELEASE).where(_selected(state, name))
    return int(connection.execute(query).scalar_one())


def _selected(state: Availability, name: str | None) -> ColumnElement[bool] | TextClause:
    in_state = _CONDITIONS[state]
    return in_state if name is None else and_(in_state, RELEASE.c.name == name)


def _queued(row: Row[Any]) -> QueuedRelease:
    state = Availability(row.availability)
    pending = state is Availability.PENDING
    return QueuedRelease(
        name=row.name,
        cap_uri=row.cap_uri,
        cid=row.cid,
        publisher=row.publisher,
        state=state,
        lane=_lane(row) if pending else None,
        reason=row.reason,
        error=row.message,
        attempts=row.attempts,
        queued_at=row.queued_at,
        due_at=row.due_at if pending else None,
    )


def _lane(row: Row[Any]) -> Lane:
    if row.due_at == 0:
        return Lane.NEW
    return Lane.RETRY if row.verdict is None else Lane.AGAIN


def _read_cursor(text: str) -> tuple[float, int]:
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"{text[:80]!r} is not a cursor of the queue",
            fix="use the next_cursor of the previous page",
        )
    return float(found[1]), int(found[2])
