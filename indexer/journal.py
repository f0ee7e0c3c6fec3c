"""The registry's events as rows: written in canonical order, and taken back to a fork.

What else depends on an event (its release, the yank flags of others) follows in the same
transaction; the caller lists the names that `apply` and `undo` return.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from capdex.events import LogHead, Published, YankChanged
from capdex.package import RejectedPackage
from indexer import listing, rows
from indexer.judgements import chunks, write_packages
from indexer.models import STANDS, EventRow, ListingRow, ReleaseRow, YankRow, table
from indexer.rows import Claim, Decoded, Row

EVENT, RELEASE, YANK = table(EventRow), table(ReleaseRow), table(YankRow)
LISTING = table(ListingRow)

# A yank concerns the release that stood before it.
_FLAGGED: Final = (
    update(RELEASE)
    .where(STANDS, RELEASE.c.cap_uri == bindparam("new_cap_uri"))
    .where(RELEASE.c.sequence < bindparam("new_sequence"))
    .values(yanked=bindparam("new_yanked"), yank_reason=bindparam("new_reason"))
)


def apply(
    connection: Connection,
    decoded: Iterable[Decoded],
    log: LogHead,
    *,
    timestamps: dict[int, int],
    chain_id: int,
    now: float,
) -> tuple[LogHead, set[str]]:
    """Write the events that follow the slot `log`; the slot after them, and the names yanked."""
    events: list[Row] = []
    claims: list[tuple[int, Claim]] = []
    yanks: list[Row] = []
    names: set[str] = set()
    for one in decoded:
        log, event, error = log.fold(one.log), one.event, None
        if isinstance(event, Published):
            claims.append((log.count, rows.claim(event)))
        elif isinstance(event, YankChanged):
            uri = rows.yanked_uri(event)
            if uri is None:
                error = f"it names no release: {event.name!r} {event.semver!r}"
            else:
                yanks.append(rows.yank_row(event, uri, log.count))
                names.add(uri.name)
        else:
            error = event.message
        timestamp = timestamps[one.log.position.block_number]
        events.append(rows.event_row(one, log.count, timestamp, log, error))
    if events:
        connection.execute(insert(EVENT), events)
    if claims:
        _write_releases(connection, claims, chain_id, now)
    if yanks:
        connection.execute(insert(YANK), yanks)
        connection.execute(_FLAGGED, [{f"new_{k}": v for k, v in x.items()} for x in yanks])
    return log, names


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
    connection.execute(delete(EVENT).where(gone))  # releases and yanks go with it
    names |= _flag_again(connection, yanked)
    last = select(EVENT.c.sequence, EVENT.c.log_head).order_by(EVENT.c.sequence.desc()).limit(1)
    row = connection.execute(last).first()
    return LogHead(row.log_head, row.sequence) if row else LogHead(), names


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


def _scalars(connection: Connection, query: Any) -> list[Any]:
    return list(connection.execute(query).scalars())
