"""Read the leaves of an index's digests (P14) from its rows, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, case, exists, func, select

from capdex.problems import Availability
from capdex.proof.index_digest import Counts, deployment_leaf, event_leaf, release_leaf
from capdex.registry.logs import LogPosition, RawLog, split
from indexer.db.models import EVENT, PACKAGE, RELEASE, base

PAGE: Final = 5_000  # rows of one statement: a few megabytes, and far from a reader's time limit
UNJUDGED: Final = (Availability.PENDING.value, Availability.PARKED.value)


EVENT_HASHES: Final = select(EVENT.c.sequence, EVENT.c.block_hash, EVENT.c.log_head)


def leaf_of_deployment(row: Any) -> bytes:
    """Return the leaf of a deployment's row."""
    contract = bytes.fromhex(row.contract.removeprefix("0x"))
    return deployment_leaf(row.chain_id, contract, bytes(row.genesis), row.decoder_version)


def event_leaves(connection: Connection, row: Any, after: int, last: int) -> Iterator[bytes]:
    """Iterate over the leaves with `after` < key <= `last`, starting with the deployment's."""
    if after == base(row.id):
        yield leaf_of_deployment(row)
    for leaf, _ in read_events(connection, row.id, after, last):
        yield leaf


def read_events(
    connection: Connection, deployment_id: int, after: int, last: int
) -> Iterator[tuple[bytes, int]]:
    """Iterate over the leaves of events with `after` < key <= `last`, with block timestamps."""
    columns = ("sequence", "block_number", "block_hash", "tx_hash", "log_index", "topics", "data")
    query = select(
        *(EVENT.c[x] for x in columns),
        case(
            (EVENT.c.error.is_not(None), int(Counts.NOTHING)),
            (RELEASE.c.stands, int(Counts.RELEASE)),
            else_=int(Counts.EVENT),
        ).label("counts"),
        EVENT.c.timestamp,
    ).select_from(EVENT.outerjoin(RELEASE, RELEASE.c.sequence == EVENT.c.sequence))
    offset = base(deployment_id)
    for sequence, number, hash_, tx_hash, at, topics, data, counts, timestamp in _pages(
        connection, query, EVENT.c.sequence, after, last
    ):
        position = LogPosition(number, bytes(hash_), bytes(tx_hash), at)
        log = RawLog(b"", split(topics), bytes(data), position)
        yield event_leaf(sequence - offset, log, Counts(counts)), timestamp


def release_leaves(connection: Connection, row: Any, after: int, last: int) -> Iterator[bytes]:
    """Iterate over the leaves of releases with `after` < key <= `last`; all must be judged."""
    # A release rejected by its event alone has no package row: the current rules count.
    rules = case(
        (RELEASE.c.availability.is_(None), row.rules_version),
        else_=func.coalesce(PACKAGE.c.rules_version, row.rules_version),
    )
    query = select(RELEASE.c.sequence, RELEASE.c.sha256, rules, RELEASE.c.verdict).select_from(
        RELEASE.outerjoin(PACKAGE, PACKAGE.c.release_id == RELEASE.c.id)
    )
    for sequence, digest, version, verdict in _pages(
        connection, query, RELEASE.c.sequence, after, last
    ):
        yield release_leaf(sequence - base(row.id), bytes(digest), version, verdict)


def last_event(connection: Connection, deployment_id: int, block: int) -> Any:
    """Return the last event up to a block; the keys of a contract's events ascend with blocks."""
    # "+ 0" keeps the primary key from being used, so that the index of blocks is.
    ours = (EVENT.c.sequence + 0).between(base(deployment_id) + 1, base(deployment_id + 1))
    query = EVENT_HASHES.where(EVENT.c.block_number <= block, ours)
    order = (EVENT.c.block_number.desc(), EVENT.c.sequence.desc())
    return connection.execute(query.order_by(*order).limit(1)).first()


def has_unjudged(connection: Connection, last: int) -> bool:
    """True if a release up to this event is pending or parked."""
    waits = RELEASE.c.availability.in_(UNJUDGED) & (RELEASE.c.sequence <= last)
    return bool(connection.execute(select(exists().where(waits))).scalar())


def _pages(connection: Connection, query: Any, key: Any, after: int, last: int) -> Iterator[Any]:
    """Iterate over the rows with `after` < key <= `last` in order; the key is the first column."""
    while after < last:
        page = query.where(key > after, key <= last).order_by(key).limit(PAGE)
        rows = connection.execute(page).all()
        yield from rows
        after = rows[-1][0] if len(rows) == PAGE else last
