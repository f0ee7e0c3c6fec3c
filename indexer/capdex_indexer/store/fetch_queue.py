"""The durable fetch queue: releases to fetch and judge, their delays and their judgements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    TextClause,
    Update,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal,
    select,
    update,
)

from capdex.package import RULES_VERSION
from capdex.problems import Availability, Reason, Verdict
from capdex.registry.events import Announcement
from capdex_indexer.db import schema_claims
from capdex_indexer.db.bulk_insert import chunks, insert_rows
from capdex_indexer.db.columns import JUDGED_AGAIN, NEW, PENDING, RETRIED, STANDS, Lane
from capdex_indexer.db.models import PACKAGE, RELEASE
from capdex_indexer.projection.event_rows import MAX_REASON_CHARS, storable
from capdex_indexer.projection.package_rows import Judgement

LONG_AGO: Final = 1.0  # due at once, and yet not new: only a release never tried is due at 0
PARTS: Final = 4  # publishers at least that share one read of the queue


_PACKAGE: Final = (
    *("release_id", "acp_metadata", "signer", "checks", "problems", "document"),
    "rules_version",
)
_JOB: Final = [
    RELEASE.c[name]
    for name in ("id", "publisher", "cap_uri", "semver", "cid", "sha256", "attempts")
]


def _next_due(*conditions: ColumnElement[bool] | TextClause) -> Select[Any]:
    """Select the first due releases of the next publisher in a lane who has some."""
    publisher = (
        select(func.min(RELEASE.c.publisher))
        .where(*conditions, RELEASE.c.publisher > bindparam("after"))
        .correlate(None)
        .scalar_subquery()
    )
    order = [RELEASE.c.due_at, RELEASE.c.id] if len(conditions) > 1 else [RELEASE.c.id]
    return (
        select(RELEASE.c.publisher, RELEASE.c.id)
        .where(*conditions, RELEASE.c.publisher == publisher)
        .order_by(*order)
        .limit(bindparam("depth"))
    )


_JUDGED: Final = (
    update(RELEASE)
    .where(RELEASE.c.id == bindparam("release_id"))
    .values(
        availability=Availability.AVAILABLE.value,
        verdict=bindparam("new_verdict"),
        reason=bindparam("new_reason"),
        message=bindparam("new_message"),
    )
)


def _delayed(**values: object) -> Update:
    new = bindparam("new_message", type_=Text)
    message = case((RELEASE.c.verdict.is_(None), new), else_=RELEASE.c.message)
    attempts = RELEASE.c.attempts + cast(bindparam("tries"), Integer)
    return (
        update(RELEASE)
        .where(RELEASE.c.id == bindparam("release_id"), PENDING)
        .values(attempts=attempts, message=message, **values)
    )


_NEW = RELEASE.c.verdict.is_(None)
_POSTPONED: Final = _delayed(due_at=bindparam("new_due_at"))
_PARKED: Final = _delayed(
    availability=case((_NEW, Availability.PARKED.value), else_=Availability.AVAILABLE.value),
    reason=case((_NEW, bindparam("new_reason", type_=Text)), else_=RELEASE.c.reason),
)


_DUE: Final = {
    Lane.NEW: _next_due(NEW),  # at any time
    Lane.RETRY: _next_due(RETRIED, RELEASE.c.due_at <= bindparam("now")),
    Lane.AGAIN: _next_due(JUDGED_AGAIN, RELEASE.c.due_at <= bindparam("now")),
}


@dataclass(frozen=True, slots=True)
class Job:
    """A release whose bytes are to be fetched and judged."""

    release_id: int
    announcement: Announcement
    attempts: int
    lane: Lane = Lane.NEW


@dataclass(frozen=True, slots=True)
class Delay:
    """A release that was not judged: due again `at` (epoch seconds), or parked for a `reason`.

    With `tried` False the attempt does not count.
    """

    release_id: int
    error: str
    at: float | None = None
    reason: Reason | None = None
    tried: bool = True


def read_due(
    connection: Connection,
    chain_id: int,
    now: float,
    limit: int,
    *,
    lane: Lane | None = None,
    after: str = "",
    known: Collection[int] = (),
) -> list[Job]:
    """Return the releases to fetch now, of all lanes or of one, without the `known` ids.

    In each lane the publishers after `after` come first, each with a part of `limit` at a time, so
    that no publisher waits for the flood of another.
    """
    chosen: dict[int, Lane] = {}
    for wanted in Lane if lane is None else (lane,):
        _choose(connection, wanted, now, limit, after, known, chosen)
    rows: dict[int, Any] = {}
    for some in chunks(list(chosen)):
        rows |= {
            row.id: row for row in connection.execute(select(*_JOB).where(RELEASE.c.id.in_(some)))
        }
    return [_job(rows[release_id], chain_id, its_lane) for release_id, its_lane in chosen.items()]


def read_verified(connection: Connection, chain_id: int, after: int, limit: int) -> list[Job]:
    """Return verified releases with ids above `after`, the lowest first, as jobs to do again."""
    query = select(*_JOB).where(
        RELEASE.c.id > after, RELEASE.c.verdict == Verdict.VERIFIED.value, STANDS
    )
    rows = connection.execute(query.order_by(RELEASE.c.id).limit(limit))
    return [_job(row, chain_id, Lane.AGAIN) for row in rows]


def _job(row: Any, chain_id: int, lane: Lane) -> Job:
    text = (row.publisher, row.cap_uri, row.semver, row.cid)
    return Job(row.id, Announcement(chain_id, *text, bytes(row.sha256)), row.attempts, lane)


def _choose(
    connection: Connection,
    lane: Lane,
    now: float,
    limit: int,
    after: str,
    known: Collection[int],
    chosen: dict[int, Lane],
) -> None:
    """Add due releases of a lane to `chosen`, up to `limit`, by a few seeks in its index."""
    part, depth = max(1, limit // PARTS), len(known)
    due = {} if lane is Lane.NEW else {"now": now}
    seen: set[str] = set()
    while len(chosen) < limit:
        values = {"after": after, "depth": part + depth, **due}
        rows = connection.execute(_DUE[lane], values).all()
        if rows and rows[0].publisher not in seen:
            after = rows[0].publisher
            seen.add(after)
            new = [x.id for x in rows if x.id not in known and x.id not in chosen]
            chosen |= dict.fromkeys(new[: min(part, limit - len(chosen))], lane)
        elif not rows and after:
            after = ""  # continue with the first publisher
        elif depth < len(known) + len(chosen):  # every publisher had a turn: start another round
            depth = len(known) + len(chosen)
            part = limit if len(seen) == 1 else part
            seen.clear()
        else:
            return


def write_judgements(
    connection: Connection, judgements: Mapping[int, Judgement]
) -> dict[int, str | None]:
    """Store verdicts of the releases that still exist; return their names by id."""
    alive: dict[int, str | None] = {}
    for some in chunks(list(judgements)):
        columns = select(RELEASE.c.id, RELEASE.c.name, RELEASE.c.sequence)
        rows = connection.execute(columns.where(RELEASE.c.id.in_(some))).all()
        if not rows:
            continue
        alive |= {row.id: row.name for row in rows}
        kept = {row.id: judgements[row.id] for row in rows}
        verdicts = [
            {
                "release_id": release_id,
                "new_verdict": judgement.verdict.value,
                "new_reason": judgement.reason.value if judgement.reason else None,
                "new_message": judgement.message,
            }
            for release_id, judgement in kept.items()
        ]
        connection.execute(_JUDGED, verdicts)
        write_packages(connection, kept)
        schema_claims.write(connection, {row.id: row.sequence for row in rows}, kept)
    return alive


def write_packages(connection: Connection, judgements: Mapping[int, Judgement]) -> None:
    """Store the package of each release, replacing an earlier one."""
    for some in chunks(list(judgements)):
        connection.execute(delete(PACKAGE).where(PACKAGE.c.release_id.in_(some)))
    rows = [
        (k, v.metadata, v.signer, v.checks, v.problems, v.document, RULES_VERSION)
        for k, v in judgements.items()
    ]
    insert_rows(connection, PACKAGE, rows, _PACKAGE)


def write_delays(connection: Connection, delays: Sequence[Delay]) -> None:
    """Postpone or park releases; those no longer in the queue are left alone.

    A release that is verified again keeps its verdict and its message.
    """
    later = [x for x in delays if x.reason is None]
    parked = [x for x in delays if x.reason is not None]
    if later:
        connection.execute(_POSTPONED, [{**_delay(x), "new_due_at": x.at} for x in later])
    if parked:
        connection.execute(_PARKED, [{**_delay(x), "new_reason": x.reason} for x in parked])


def names_of(connection: Connection, delays: Sequence[Delay]) -> set[str]:
    """Return the names of these releases."""
    names: set[str] = set()
    for some in chunks([x.release_id for x in delays]):
        query = select(RELEASE.c.name).where(RELEASE.c.id.in_(some), RELEASE.c.name.is_not(None))
        names.update(connection.execute(query).scalars())
    return names


def _delay(delay: Delay) -> dict[str, Any]:
    return {
        "release_id": delay.release_id,
        "new_message": storable(delay.error, MAX_REASON_CHARS),
        "tries": int(delay.tried),
    }


def rearm(connection: Connection, name: str | None) -> int:
    """Queue parked releases (of one name, or all) from their first try; return how many."""
    parked = RELEASE.c.availability == Availability.PARKED.value
    waiting = {"availability": Availability.PENDING.value, "reason": None}
    done = connection.execute(
        update(RELEASE)
        .where(parked if name is None else parked & (RELEASE.c.name == name))
        .values(attempts=0, due_at=LONG_AGO, **waiting)
    )
    return int(done.rowcount)


def reset_skewed_delays(connection: Connection, now: float) -> None:
    """Make due at once every retry that only a wrong clock can have scheduled so late.

    No delay is longer than 60 s + 5 s × 2^attempts (`fetch.result_writer`, a test
    compares both), so a later time was computed while the clock was fast.
    """
    longest_s = 60 + 5 * literal(1).bitwise_lshift(RELEASE.c.attempts)
    skewed = RELEASE.c.due_at > now + longest_s
    connection.execute(update(RELEASE).where(PENDING, skewed).values(due_at=now))


def judge_again(connection: Connection, now: float) -> None:
    """Queue every judged release again; its verdict stands until there is another."""
    connection.execute(
        update(RELEASE)
        .where(RELEASE.c.availability == Availability.AVAILABLE.value)
        .values(availability=Availability.PENDING.value, attempts=0, queued_at=now, due_at=LONG_AGO)
    )
