"""The fetch queue for operators: pending and parked releases, their last error and next try."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, case, func, select, tuple_

from capdex.errors import InvalidInput
from capdex.problems import Availability
from capdex_indexer.db.columns import PARKED, PENDING, Lane
from capdex_indexer.db.models import RELEASE

_CONDITIONS: Final = {Availability.PENDING: PENDING, Availability.PARKED: PARKED}
WAITING: Final = tuple(_CONDITIONS)
_CURSOR: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,17})?)-([0-9]{1,18})")

_IS_PENDING: Final = RELEASE.c.availability == Availability.PENDING
_LANE: Final = case(
    (RELEASE.c.due_at == 0, int(Lane.NEW)),
    (RELEASE.c.verdict.is_(None), int(Lane.RETRY)),
    else_=int(Lane.AGAIN),
)
_QUEUED: Final = select(
    *(RELEASE.c.id, RELEASE.c.cap_uri, RELEASE.c.cid, RELEASE.c.publisher, RELEASE.c.reason),
    *(RELEASE.c.availability.label("state"), case((_IS_PENDING, _LANE)).label("lane")),
    *(RELEASE.c.message.label("error"), RELEASE.c.attempts, RELEASE.c.queued_at),
    case((_IS_PENDING, RELEASE.c.due_at)).label("due_at"),
).order_by(RELEASE.c.queued_at, RELEASE.c.id)


@dataclass(frozen=True, slots=True)
class QueuePage:
    """A page of the queue, oldest first; `totals` counts all selected releases by state.

    Each row is a release that waits to be judged, for the first time or again: `cap_uri`, `cid`,
    `publisher`, `state`, `lane`, `reason`, `error` (of the last try), `attempts`, `queued_at` and
    `due_at`. Times are epoch seconds; `due_at` is 0 for at once, and None for a parked release, as
    its lane is.
    """

    releases: tuple[Row[Any], ...]
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
    after = None if cursor is None else _read_cursor(cursor)
    queued: list[Row[Any]] = []
    totals: dict[Availability, int] = {}
    for state, condition in _CONDITIONS.items():
        if state not in states:
            continue
        selected = condition if name is None else and_(condition, RELEASE.c.name == name)
        query = _QUEUED.where(selected).limit(limit + 1)
        if after is not None:
            query = query.where(tuple_(RELEASE.c.queued_at, RELEASE.c.id) > after)
        queued += connection.execute(query)
        count = select(func.count()).select_from(RELEASE).where(selected)
        totals[state] = int(connection.execute(count).scalar_one())
    rows = sorted(queued, key=lambda row: (row.queued_at, row.id))
    more, rows = len(rows) > limit, rows[:limit]
    last = f"{rows[-1].queued_at!r}-{rows[-1].id}" if more else None
    return QueuePage(tuple(rows), totals, last)


def _read_cursor(text: str) -> tuple[float, int]:
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{text[:80]!r} is not a cursor of the queue",
            fix="use the next_cursor of the previous page",
        )
    return float(match[1]), int(match[2])
