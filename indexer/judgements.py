"""The queue of releases whose bytes are to be fetched, and what judging them found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, bindparam, case, delete, func, insert, select, update

from capdex.events import Announcement
from capdex.package import RULES_VERSION, RejectedPackage, VerifiedPackage
from capdex.problems import Availability, Reason
from indexer import namespaces
from indexer.listing import document
from indexer.models import PENDING, PackageRow, ReleaseRow, table
from indexer.rows import MAX_REASON_CHARS, visible

CHUNK: Final = 500  # values in one IN list, far below every database's limit

Judged = VerifiedPackage | RejectedPackage
T = TypeVar("T")

RELEASE, PACKAGE = table(ReleaseRow), table(PackageRow)

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


@dataclass(frozen=True, slots=True)
class Job:
    """A release whose bytes are to be fetched and judged."""

    release_id: int
    announcement: Announcement
    attempts: int


def read_due(connection: Connection, chain_id: int, now: float, limit: int) -> list[Job]:
    """The releases to fetch now, one publisher after another so that none waits for a flood."""
    turn = func.row_number().over(
        partition_by=RELEASE.c.publisher, order_by=(RELEASE.c.due_at, RELEASE.c.id)
    )
    ranked = (
        select(RELEASE.c.id, turn.label("turn")).where(PENDING, RELEASE.c.due_at <= now)
    ).subquery()
    chosen = (
        select(RELEASE)
        .join(ranked, RELEASE.c.id == ranked.c.id)
        .order_by(ranked.c.turn, RELEASE.c.id)
        .limit(limit)
    )
    return [_job(row, chain_id) for row in connection.execute(chosen)]


def write_judgements(
    connection: Connection, chain_id: int, judged: Mapping[int, Judged]
) -> dict[int, str | None]:
    """Store what was found of the releases that are still there; those with their names."""
    alive: dict[int, str | None] = {}
    for some in chunks(list(judged)):
        columns = select(RELEASE.c.id, RELEASE.c.name, RELEASE.c.sequence)
        found = connection.execute(columns.where(RELEASE.c.id.in_(some))).all()
        if not found:
            continue
        alive |= {row.id: row.name for row in found}
        kept = {row.id: judged[row.id] for row in found}
        connection.execute(_JUDGED, [_verdict(k, v) for k, v in kept.items()])
        write_packages(connection, chain_id, kept)
        namespaces.write(connection, {row.id: row.sequence for row in found}, kept)
    return alive


def write_packages(connection: Connection, chain_id: int, judged: Mapping[int, Judged]) -> None:
    """Store what came to light of each release, in place of what was known of it before."""
    for some in chunks(list(judged)):
        connection.execute(delete(PACKAGE).where(PACKAGE.c.release_id.in_(some)))
    rows = [_package_row(k, v, chain_id) for k, v in judged.items()]
    connection.execute(insert(PACKAGE), rows)


def postpone(connection: Connection, release_id: int, error: str, **values: Any) -> None:
    """Count one more try in vain of a release that waits to be judged, and set `values`.

    One that is judged again keeps its verdict and what was said with it.
    """
    said = case((RELEASE.c.verdict.is_(None), _message(error)), else_=RELEASE.c.message)
    connection.execute(
        update(RELEASE)
        .where(RELEASE.c.id == release_id, PENDING)
        .values(attempts=RELEASE.c.attempts + 1, message=said, **values)
    )


def park(connection: Connection, release_id: int, reason: Reason, error: str) -> None:
    """Take a release out of the queue: until `rearm`, or for good where a verdict stands."""
    new, parked = RELEASE.c.verdict.is_(None), Availability.PARKED.value
    availability = case((new, parked), else_=Availability.AVAILABLE.value)
    why = case((new, reason.value), else_=RELEASE.c.reason)
    postpone(connection, release_id, error, availability=availability, reason=why)


def rearm(connection: Connection, name: str | None) -> int:
    """Queue parked releases (of one name, or all) again from their first try; how many."""
    parked = RELEASE.c.availability == Availability.PARKED.value
    waiting = {"availability": Availability.PENDING.value, "reason": None}
    done = connection.execute(
        update(RELEASE)
        .where(parked if name is None else parked & (RELEASE.c.name == name))
        .values(attempts=0, due_at=0.0, **waiting)
    )
    return int(done.rowcount)


def judge_again(connection: Connection, now: float) -> None:
    """Queue whatever was judged by older rules; its verdict stands until there is another."""
    connection.execute(
        update(RELEASE)
        .where(RELEASE.c.availability == Availability.AVAILABLE.value)
        .values(availability=Availability.PENDING.value, attempts=0, queued_at=now, due_at=0.0)
    )


def chunks(values: Sequence[T]) -> Iterable[Sequence[T]]:
    """The values in pieces that one IN list holds."""
    return (values[i : i + CHUNK] for i in range(0, len(values), CHUNK))


def _job(row: Any, chain_id: int) -> Job:
    text = (row.publisher, row.cap_uri, row.semver, row.cid)
    return Job(row.id, Announcement(chain_id, *text, bytes(row.sha256)), row.attempts)


def _verdict(release_id: int, judged: Judged) -> dict[str, Any]:
    rejected = judged if isinstance(judged, RejectedPackage) else None
    return {
        "release_id": release_id,
        "new_verdict": judged.verdict.value,
        "new_reason": rejected.reason.value if rejected else None,
        "new_message": _message(rejected.message) if rejected else "",
    }


def _package_row(release_id: int, judged: Judged, chain_id: int) -> dict[str, Any]:
    manifest, publisher = judged.manifest, judged.announcement.publisher
    return {
        "release_id": release_id,
        "acp_metadata": manifest.metadata if manifest else None,
        "signer": judged.signer,
        "checks": [check.to_json() for check in judged.checks],
        "problems": [problem.to_json() for problem in judged.problems],
        "document": document(manifest, publisher, chain_id) if manifest else None,
        "rules_version": RULES_VERSION,
    }


def _message(text: str) -> str:
    return visible(text, MAX_REASON_CHARS)
