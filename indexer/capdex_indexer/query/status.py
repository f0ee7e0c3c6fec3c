"""The status of an index: its position, the number of its releases, the newest rejections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, select

from capdex.encoding.hexadecimal import to_hex
from capdex.problems import Reason
from capdex_indexer.db.columns import PARKED, PENDING, REJECTED
from capdex_indexer.db.models import CURSOR, DEPLOYMENT, EVENT, LISTING, REGISTRY, RELEASE
from capdex_indexer.query.digest import Digest

RECENT_REJECTIONS: Final = 20


@dataclass(frozen=True, slots=True)
class Position:
    """The last applied block; all None before the first step. `block_hash` is 0x hex.

    `head` and `finalized` are the chain's block numbers at that step; `log_count` and `log_head`
    (0x hex, 24 bytes) are the registry's log slot there.
    """

    block_number: int | None
    block_hash: str | None
    timestamp: int | None
    head: int | None
    finalized: int | None
    log_count: int
    log_head: str


@dataclass(frozen=True, slots=True)
class IndexStatus(Position):
    """The position, the registry it is of, and what the index holds.

    `by_verdict` leaves out releases without a verdict, `by_availability` those rejected by their
    event alone. `undecodable` counts logs that are no events; `rejections` are the newest, as JSON.
    The digests (P14) are 0x hex, by the rules of these versions: `index_digest` is None before the
    first step, `content_digest` while a release is pending or parked.
    """

    chain_id: int
    registry: str
    start_block: int
    releases: int
    listed: int
    by_verdict: dict[str, int]
    by_availability: dict[str, int]
    rejected_by_reason: dict[str, int]
    undecodable: int
    oldest_pending_s: float | None
    rejections: list[dict[str, Any]]
    index_digest: str | None = None
    content_digest: str | None = None
    decoder_version: int = 0
    rules_version: int = 0
    oldest_parked_s: float | None = None


def read_position(row: Row[Any]) -> Position:
    """Return the position in a row of `POSITION`."""
    if row.number is None:
        return Position(None, None, None, None, None, 0, to_hex(bytes(24)))
    block_hash, log_head = to_hex(bytes(row.hash)), to_hex(bytes(row.log_head))
    chain = (row.timestamp, row.head, row.finalized, row.log_count, log_head)
    return Position(row.number, block_hash, *chain)


# One row: the registry's deployment with its cursor, if it has one yet.
POSITION: Final = (
    select(DEPLOYMENT, *(x for x in CURSOR.c if x.name != "deployment_id"))
    .select_from(DEPLOYMENT.outerjoin(CURSOR, CURSOR.c.deployment_id == DEPLOYMENT.c.id))
    .where(DEPLOYMENT.c.id == REGISTRY)
)


def read_revision(connection: Connection) -> tuple[int, Position]:
    """Return the revision of the index, which every commit raises, and its position."""
    row = connection.execute(POSITION).one()
    return row.revision, read_position(row)


def read_status(
    connection: Connection, row: Row[Any], now: float, digest: Digest | None
) -> IndexStatus:
    """Count everything (a scan: cache it until the index changes); `row` is of `POSITION`."""
    kinds = (RELEASE.c.verdict, RELEASE.c.availability, RELEASE.c.reason)
    groups = connection.execute(select(*kinds, func.count().label("n")).group_by(*kinds)).all()
    undecodable = select(func.count()).select_from(EVENT).where(EVENT.c.error.is_not(None))
    oldest = func.min(RELEASE.c.queued_at)
    pending = connection.execute(select(oldest).where(PENDING)).scalar()
    parked = connection.execute(select(oldest).where(PARKED)).scalar()
    return IndexStatus(
        **asdict(read_position(row)),
        chain_id=row.chain_id,
        registry=row.contract,
        start_block=row.start_block,
        releases=sum(x.n for x in groups),
        listed=_count(connection, select(func.count()).select_from(LISTING)),
        by_verdict=_sums((x.verdict, x.n) for x in groups),
        by_availability=_sums((x.availability, x.n) for x in groups),
        rejected_by_reason=_sums((x.reason, x.n) for x in groups if x.verdict),
        undecodable=_count(connection, undecodable),
        oldest_pending_s=None if pending is None else max(0.0, now - pending),
        oldest_parked_s=None if parked is None else max(0.0, now - parked),
        rejections=_rejections(connection),
        index_digest=to_hex(digest.index) if digest else None,
        content_digest=to_hex(digest.content) if digest and digest.content else None,
        decoder_version=row.decoder_version,
        rules_version=row.rules_version,
    )


def _sums(counts: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for key, n in counts:
        if key is not None:
            sums[key] += n
    return dict(sums)


def _rejections(connection: Connection) -> list[dict[str, Any]]:
    """The newest rejected releases and broken logs together, newest first."""
    where = (EVENT.c.sequence, EVENT.c.block_number, EVENT.c.tx_hash)
    claims = ("cap_uri", "semver", "publisher", "verdict", "reason", "message")
    refused = (
        select(*where, *(RELEASE.c[x] for x in claims))
        .join(RELEASE, EVENT.c.sequence == RELEASE.c.sequence)
        .where(REJECTED)
    )
    broken = select(*where, EVENT.c.error).where(EVENT.c.error.is_not(None))
    rejections: list[dict[str, Any]] = []
    for query in (refused, broken):
        newest = query.order_by(EVENT.c.sequence.desc()).limit(RECENT_REJECTIONS)
        for row in connection.execute(newest).mappings():
            place = dict(row) | {"tx_hash": to_hex(bytes(row["tx_hash"]))}
            if "error" in place:
                broken_log = dict.fromkeys(claims) | {"reason": Reason.BAD_EVENT.value}
                place |= broken_log | {"message": place.pop("error")}
            rejections.append(place)
    return sorted(rejections, key=lambda x: -x["sequence"])[:RECENT_REJECTIONS]


def _count(connection: Connection, query: Select[Any]) -> int:
    return int(connection.execute(query).scalar_one())
