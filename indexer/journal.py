"""The registry's events as rows: written in canonical order, and taken back to a fork.

What else depends on an event (its release, the yank flags of others, deprecations) follows in the
same transaction; the caller lists the names that `apply`, `undo` and `decode_again` return.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from capdex.errors import InvalidInput
from capdex.events import (
    DeprecationChanged,
    LogHead,
    LogPosition,
    NameDeprecationChanged,
    Published,
    RawLog,
    YankChanged,
)
from capdex.package import RejectedPackage
from indexer import listing, rows
from indexer.judgements import CHUNK, chunks, write_packages
from indexer.models import (
    STANDS,
    Deployment,
    DeprecationRow,
    EventRow,
    ListingRow,
    ReleaseRow,
    YankRow,
    table,
)
from indexer.rows import Claim, Decoded, Row

EVENT, RELEASE = table(EventRow), table(ReleaseRow)
YANK, DEPRECATION = table(YankRow), table(DeprecationRow)
LISTING = table(ListingRow)

# A yank concerns the release that stood before it.
_FLAGGED: Final = (
    update(RELEASE)
    .where(STANDS, RELEASE.c.cap_uri == bindparam("new_cap_uri"))
    .where(RELEASE.c.sequence < bindparam("new_sequence"))
    .values(yanked=bindparam("new_yanked"), yank_reason=bindparam("new_reason"))
)


@dataclass(slots=True)
class _Consequences:
    """What events change beside their own rows."""

    claims: list[tuple[int, Claim]] = field(default_factory=list)
    yanks: list[Row] = field(default_factory=list)
    deprecations: list[Row] = field(default_factory=list)
    yanked: set[str] = field(default_factory=set)  # the names

    def take(self, one: Decoded) -> str | None:
        """Add those of one event; returns why it counts for nothing, if it does."""
        event, sequence = one.event, one.head.count
        if isinstance(event, Published):
            self.claims.append((sequence, rows.claim(event)))
        elif isinstance(event, InvalidInput):
            return event.message
        elif isinstance(event, YankChanged | DeprecationChanged | NameDeprecationChanged):
            uri = rows.concerned(event)
            if uri is None:
                return f"it concerns no release and no name: {event.name!r}"
            if isinstance(event, YankChanged):
                self.yanks.append(rows.yank_row(event, uri, sequence))
                self.yanked.add(uri.name)
            else:
                self.deprecations.append(rows.deprecation_row(event, uri, sequence))
        return None  # whose a name is decides nothing here: the contract has let them do it

    def write(self, connection: Connection, chain_id: int, now: float) -> None:
        """Insert them; their events are there already."""
        if self.claims:
            _write_releases(connection, self.claims, chain_id, now)
        if self.yanks:
            connection.execute(insert(YANK), self.yanks)
            flags = [{f"new_{k}": v for k, v in x.items()} for x in self.yanks]
            connection.execute(_FLAGGED, flags)
        if self.deprecations:
            connection.execute(insert(DEPRECATION), self.deprecations)


def apply(
    connection: Connection,
    decoded: Iterable[Decoded],
    *,
    timestamps: dict[int, int],
    chain_id: int,
    now: float,
) -> set[str]:
    """Write the events that follow; the names yanked."""
    events: list[Row] = []
    consequences = _Consequences()
    for one in decoded:
        error = consequences.take(one)
        events.append(rows.event_row(one, timestamps[one.log.position.block_number], error))
    if events:
        connection.execute(insert(EVENT), events)
        consequences.write(connection, chain_id, now)
    return consequences.yanked


def undo(connection: Connection, above: int) -> tuple[LogHead, set[str]]:
    """Delete the events above a block; the slot before them, and the names they concerned."""
    gone = EVENT.c.block_number > above
    yanked = set(_scalars(connection, select(YANK.c.cap_uri).join(EVENT).where(gone)))
    of_gone = select(RELEASE.c.name).join(EVENT).where(gone, RELEASE.c.name.is_not(None))
    names = set(_scalars(connection, of_gone))
    tables = LISTING.join(RELEASE).join(EVENT)
    for release_id in _scalars(
        connection, select(LISTING.c.release_id).select_from(tables).where(gone)
    ):
        listing.unlist(connection, release_id)
    connection.execute(delete(EVENT).where(gone))  # releases, yanks, deprecations go with it
    names |= _flag_again(connection, yanked)
    last = select(EVENT.c.sequence, EVENT.c.log_head).order_by(EVENT.c.sequence.desc()).limit(1)
    row = connection.execute(last).first()
    return _head(row) if row else LogHead(), names


def decode_again(connection: Connection, deployment: Deployment, now: float) -> set[str]:
    """Let count what an older decoder could make nothing of; the names yanked.

    What it did decode means the same today, and an event that joins in late is told by its sequence
    where it stood.
    """
    yanked: set[str] = set()
    chain_id, registry = deployment.chain_id, bytes.fromhex(deployment.registry[2:])
    failed = select(EVENT).where(EVENT.c.error.is_not(None)).order_by(EVENT.c.sequence)
    after: int | None = 0
    while after is not None:
        some = connection.execute(failed.where(EVENT.c.sequence > after).limit(CHUNK)).all()
        after = some[-1].sequence if some else None
        consequences = _Consequences()
        for row in some:
            error = consequences.take(rows.decoded(_log(row, registry), _head(row), chain_id))
            one = update(EVENT).where(EVENT.c.sequence == row.sequence)
            connection.execute(one.values(error=rows.shown(error)))
        consequences.write(connection, chain_id, now)
        yanked |= _flag_again(connection, {x["cap_uri"] for x in consequences.yanks})
    return yanked


def _write_releases(
    connection: Connection, claims: Sequence[tuple[int, Claim]], chain_id: int, now: float
) -> None:
    """Write what was announced: queued, or rejected at once; of two for one version one stands."""
    taken: set[str] = set()
    for some in chunks([x.event.announcement.cap_uri for _, x in claims if x.stands]):
        standing = select(RELEASE.c.cap_uri).where(STANDS, RELEASE.c.cap_uri.in_(some))
        taken.update(_scalars(connection, standing))
    new: list[Row] = []
    rejected: dict[int, RejectedPackage] = {}
    for sequence, claim in claims:
        cap_uri, stands = claim.event.announcement.cap_uri, claim.stands
        if stands and cap_uri in taken:
            claim, stands = rows.repeated(claim), False
        elif stands:
            taken.add(cap_uri)
        if claim.rejected is not None:
            rejected[sequence] = claim.rejected
        new.append(rows.release_row(claim, sequence, now, stands=stands))
    connection.execute(insert(RELEASE), new)
    for sequences in chunks(list(rejected)):
        ids = select(RELEASE.c.id, RELEASE.c.sequence).where(RELEASE.c.sequence.in_(sequences))
        found = {row.id: rejected[row.sequence] for row in connection.execute(ids)}
        write_packages(connection, chain_id, found)


def _flag_again(connection: Connection, cap_uris: set[str]) -> set[str]:
    """Set the yank flags of these releases by the latest yank that is left; the names concerned."""
    names: set[str] = set()
    for cap_uri in sorted(cap_uris):
        standing = select(RELEASE.c.id, RELEASE.c.name, RELEASE.c.sequence)
        release = connection.execute(standing.where(STANDS, RELEASE.c.cap_uri == cap_uri)).first()
        if release is None:
            continue
        latest = connection.execute(
            select(YANK.c.yanked, YANK.c.reason)
            .where(YANK.c.cap_uri == cap_uri, YANK.c.sequence > release.sequence)
            .order_by(YANK.c.sequence.desc())
            .limit(1)
        ).first()
        yanked, reason = (latest.yanked, latest.reason) if latest else (False, "")
        connection.execute(
            update(RELEASE)
            .where(RELEASE.c.id == release.id)
            .values(yanked=yanked, yank_reason=reason)
        )
        names.add(release.name)
    return names


def _log(row: Any, registry: bytes) -> RawLog:
    topics = tuple(row.topics[i : i + 32] for i in range(0, len(row.topics), 32))
    at = LogPosition(row.block_number, row.block_hash, row.tx_hash, row.log_index)
    return RawLog(registry, topics, row.data, at)


def _head(row: Any) -> LogHead:
    return LogHead(row.log_head, row.sequence)


def _scalars(connection: Connection, query: Any) -> list[Any]:
    return list(connection.execute(query).scalars())
