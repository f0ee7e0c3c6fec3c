"""Compute the digests of an index (P14) from its rows, of which a page is read at a time.

The hash tree over the events up to a block changes only in a reorg. So a reader caches the tree up
to the finalized block (`DigestCache`), and reads only later rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, case, exists, func, select

from capdex.encoding.abi import raw_address
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import InvalidInput, Unavailable
from capdex.problems import Availability
from capdex.proof.index_digest import Counts, Frontier, deployment_leaf, event_leaf, release_leaf
from capdex.registry.logs import LogHead, LogPosition, RawLog, split
from capdex_indexer.db.models import (
    BLOCK,
    CURSOR,
    DEPLOYMENT,
    EVENT,
    PACKAGE,
    REGISTRY,
    RELEASE,
    REVISION,
    VOTES,
    base,
)

PAGE: Final = 5_000  # rows of one statement: a few megabytes, and far from a reader's time limit

EVENT_HASHES: Final = select(EVENT.c.sequence, EVENT.c.block_hash, EVENT.c.log_head)


def leaf_of_deployment(row: Any) -> bytes:
    """Return the leaf of a deployment's row."""
    contract = raw_address(row.contract)
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
    unjudged = RELEASE.c.availability.in_((Availability.PENDING, Availability.PARKED))
    waits = unjudged & (RELEASE.c.sequence <= last)
    return bool(connection.execute(select(exists().where(waits))).scalar())


def _pages(connection: Connection, query: Any, key: Any, after: int, last: int) -> Iterator[Any]:
    """Iterate over the rows with `after` < key <= `last` in order; the key is the first column."""
    while after < last:
        page = query.where(key > after, key <= last).order_by(key).limit(PAGE)
        rows = connection.execute(page).all()
        yield from rows
        after = rows[-1][0] if len(rows) == PAGE else last


Leaves = Callable[[Connection, Any, int, int], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Digest:
    """The digests of one contract's events up to a block; hashes have 32 bytes.

    `block_hash` is None if the index no longer keeps it. `content` is None for other contracts than
    the registry, and while a release up to the block is pending or parked. `log` is the contract's
    log slot at the block.
    """

    chain_id: int
    contract: str
    start_block: int
    genesis: bytes
    block_number: int
    block_hash: bytes | None
    log: LogHead
    index: bytes
    content: bytes | None
    decoder_version: int
    rules_version: int

    def to_json(self) -> dict[str, Any]:
        """Return the digests as the command line prints them; hashes as 0x hex."""
        return {
            "chain_id": self.chain_id,
            "contract": self.contract,
            "block_number": self.block_number,
            "block_hash": None if self.block_hash is None else to_hex(self.block_hash),
            "log_count": self.log.count,
            "log_head": to_hex(self.log.head),
            "index_digest": to_hex(self.index),
            "content_digest": None if self.content is None else to_hex(self.content),
            "decoder_version": self.decoder_version,
            "rules_version": self.rules_version,
        }


@dataclass(frozen=True, slots=True)
class _FinalTree:
    """The cached tree up to the last finalized event, with that event's key and hashes."""

    rules: bytes  # versions of the rules and the contract; other ones need another tree
    frontier: Frontier
    key: int
    hashes: bytes


@dataclass(frozen=True, slots=True)
class _IndexedBlock:
    """A block of one deployment: the deployment's row, and its last event up to the block."""

    row: Any
    number: int
    last: int  # the key of that event; without one, `offset`
    log: LogHead

    @property
    def offset(self) -> int:
        """The key before the deployment's first event."""
        return base(self.row.id)

    @classmethod
    def find(
        cls, connection: Connection, deployment_id: int, block: int | None
    ) -> _IndexedBlock | None:
        """Return the cursor's block, or the given one; None before the first applied block."""
        row = connection.execute(AT_CURSOR.where(DEPLOYMENT.c.id == deployment_id)).first()
        if row is None:
            return None
        number = row.number if block is None else block
        last = last_event(connection, deployment_id, min(number, row.number))
        offset = base(deployment_id)
        if last is None:
            return cls(row, number, offset, LogHead())
        return cls(row, number, last.sequence, LogHead(last.log_head, last.sequence - offset))


AT_CURSOR: Final = select(
    DEPLOYMENT, CURSOR.c.number, CURSOR.c.hash, CURSOR.c.finalized
).select_from(DEPLOYMENT.join(CURSOR, CURSOR.c.deployment_id == DEPLOYMENT.c.id))


class DigestCache:
    """The registry's digests at the cursor, cached for repeated reads.

    Thread-safe: each cached value is immutable and replaced as a whole.
    """

    def __init__(self) -> None:
        self._cached: tuple[int, Digest] | None = None
        self._events: _FinalTree | None = None
        self._releases: _FinalTree | None = None

    def read(self, connection: Connection) -> Digest | None:
        """Return the digests of the registry; None before its first block."""
        revision: int | None = connection.execute(REVISION).scalar()
        cached = self._cached
        if cached is not None and cached[0] == revision:
            return cached[1]
        digest = self._compute(connection)
        if digest is not None and revision is not None:
            self._cached = revision, digest
        return digest

    def _compute(self, connection: Connection) -> Digest | None:
        block = _IndexedBlock.find(connection, REGISTRY, None)
        if block is None:
            return None
        final = last_event(connection, REGISTRY, min(block.row.finalized, block.number))
        self._events, index = _grow(connection, self._events, event_leaves, block, final)
        content = None
        if not has_unjudged(connection, block.last):
            self._releases, content = _grow(
                connection, self._releases, release_leaves, block, final
            )
        return _digest(connection, block, index, content)


def read_digest(connection: Connection, block: int | None = None) -> Digest:
    """Compute the registry's digests at an indexed block (default: the cursor) from all events.

    Raises InvalidInput for a block that is not indexed, Unavailable before the first one.
    """
    at = _IndexedBlock.find(connection, REGISTRY, block)
    if at is None:
        raise Unavailable("the index holds no block yet", fix="wait until the node has read some")
    check_indexed(at.number, at.row.start_block, at.row.number)
    content = None if has_unjudged(connection, at.last) else _root(connection, release_leaves, at)
    return _digest(connection, at, _root(connection, event_leaves, at), content)


def check_indexed(block: int, first: int, newest: int) -> None:
    """Raise InvalidInput for a block that is not indexed."""
    if not first <= block <= newest:
        raise InvalidInput(
            f"block {block} is not in the index",
            why=f"it holds blocks {first} to {newest}",
            fix="ask for one of these, or wait until the node has come that far",
        )


def read_votes_digest(connection: Connection, block: int | None = None) -> Digest | None:
    """Compute the digest of the votes contract at a block, or at its own cursor if that is lower.

    None if no votes contract is read, or none of its blocks is indexed yet.
    """
    newest = _IndexedBlock.find(connection, VOTES, None)
    if newest is None or (block is not None and block < newest.row.start_block):
        return None
    earlier = block is not None and block < newest.number
    at = (_IndexedBlock.find(connection, VOTES, block) if earlier else None) or newest
    return _digest(connection, at, _root(connection, event_leaves, at), None)


def read_leaves(
    connection: Connection, digest: Digest, deployment_id: int
) -> Iterator[tuple[bytes, int]]:
    """Iterate over the leaves of a digest's events, with the timestamps of their blocks."""
    offset = base(deployment_id)
    return read_events(connection, deployment_id, offset, offset + digest.log.count)


def _root(connection: Connection, leaves: Leaves, block: _IndexedBlock) -> bytes:
    return Frontier(leaves(connection, block.row, block.offset, block.last)).root()


def _grow(
    connection: Connection,
    tree: _FinalTree | None,
    leaves: Leaves,
    block: _IndexedBlock,
    final: Any,
) -> tuple[_FinalTree, bytes]:
    """Return the cached tree grown up to the `final` event, and the root of the whole tree."""
    rules = leaf_of_deployment(block.row) + block.row.rules_version.to_bytes(4, "big")
    if tree is None or tree.rules != rules or not _is_current(connection, tree):
        tree = _FinalTree(rules, Frontier(), block.offset, b"")
    if final is not None and final.sequence > tree.key:
        grown = tree.frontier.copy()
        grown.extend(leaves(connection, block.row, tree.key, final.sequence))
        tree = _FinalTree(rules, grown, final.sequence, _hashes(final))
    whole = tree.frontier.copy()
    whole.extend(leaves(connection, block.row, tree.key, block.last))
    return tree, whole.root()


def _is_current(connection: Connection, tree: _FinalTree) -> bool:
    """True if the last event of the tree is unchanged; the log head covers all before it."""
    if not tree.hashes:
        return True
    row = connection.execute(EVENT_HASHES.where(EVENT.c.sequence == tree.key)).first()
    return row is not None and _hashes(row) == tree.hashes


def _hashes(event: Any) -> bytes:
    return bytes(event.block_hash) + bytes(event.log_head)


def _digest(
    connection: Connection, block: _IndexedBlock, index: bytes, content: bytes | None
) -> Digest:
    row = block.row
    return Digest(
        chain_id=row.chain_id,
        contract=row.contract,
        start_block=row.start_block,
        genesis=bytes(row.genesis),
        block_number=block.number,
        block_hash=_block_hash(connection, row, block.number),
        log=block.log,
        index=index,
        content=content,
        decoder_version=row.decoder_version,
        rules_version=row.rules_version,
    )


def _block_hash(connection: Connection, row: Any, number: int) -> bytes | None:
    """Return the hash of the cursor's block, one in the ring, or one with events; else None."""
    if number == row.number:
        return bytes(row.hash)
    ours = BLOCK.c.deployment_id == row.id
    for query in (
        select(BLOCK.c.hash).where(ours, BLOCK.c.number == number),
        select(EVENT.c.block_hash).where(EVENT.c.block_number == number).limit(1),
    ):
        block_hash = connection.execute(query).scalar()
        if block_hash is not None:
            return bytes(block_hash)
    return None
