"""The digests of an index (P14), out of its rows.

A tree over what happened up to some block never changes but by a reorganisation. So a reader keeps
its tree up to the finalised block (`Digests`), and reads only what has come since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from capdex.errors import InvalidInput, Unavailable
from capdex.proof.index_digest import Frontier
from capdex.registry.logs import LogHead
from indexer.db.models import (
    REGISTRY,
    VOTES,
    BlockRow,
    CursorRow,
    DeploymentRow,
    EventRow,
    base,
    table,
)
from indexer.query.digest_leaves import (
    PLACED,
    event_leaves,
    first_leaf,
    last_event,
    read_events,
    release_leaves,
    unjudged,
)

DEPLOYMENT, CURSOR, BLOCK = table(DeploymentRow), table(CursorRow), table(BlockRow)
EVENT = table(EventRow)

Leaves = Callable[[Connection, Any, int, int], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Digest:
    """What an index holds of one contract up to a block, as hashes of 32 bytes.

    `block_hash` is None where the index no longer keeps it, `content` (the registry's alone) while
    a release at or below the block is pending or parked. `log` is the contract's slot there.
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


@dataclass(frozen=True, slots=True)
class _Trunk:
    """A tree up to an event that no reorganisation should reach, by the event's key and hashes."""

    rules: bytes  # by which it was made, and of which contract
    frontier: Frontier
    key: int
    mark: bytes


@dataclass(frozen=True, slots=True)
class _Place:
    """A block of one deployment: its row with the cursor, and the last event up to the block."""

    row: Any
    number: int
    last: int  # the key of that event; where there is none, the key before the first
    log: LogHead

    @property
    def below(self) -> int:
        """The key before the deployment's first event."""
        return base(self.row.id)

    @classmethod
    def find(cls, connection: Connection, deployment_id: int, block: int | None) -> _Place | None:
        """At the cursor, or at an older block; None for what is not indexed at all."""
        row = connection.execute(_CURSOR.where(DEPLOYMENT.c.id == deployment_id)).first()
        if row is None:
            return None
        number = row.number if block is None else block
        last = last_event(connection, deployment_id, min(number, row.number))
        below = base(deployment_id)
        if last is None:
            return cls(row, number, below, LogHead())
        return cls(row, number, last.sequence, LogHead(last.log_head, last.sequence - below))


_CURSOR: Final = select(DEPLOYMENT, CURSOR.c.number, CURSOR.c.hash, CURSOR.c.finalized).select_from(
    DEPLOYMENT.join(CURSOR, CURSOR.c.deployment_id == DEPLOYMENT.c.id)
)


class Digests:
    """The digests at the cursor, for a reader that asks for them again and again.

    Any thread may ask: what is kept is only ever replaced whole.
    """

    def __init__(self) -> None:
        self._held: tuple[int, Digest] | None = None
        self._events: _Trunk | None = None
        self._releases: _Trunk | None = None

    def read(self, connection: Connection) -> Digest | None:
        """Those of the registry; None before its first block."""
        query = select(DEPLOYMENT.c.revision).where(DEPLOYMENT.c.id == REGISTRY)
        revision: int | None = connection.execute(query).scalar()
        held = self._held
        if held is not None and held[0] == revision:
            return held[1]
        found = self._read(connection)
        if found is not None and revision is not None:
            self._held = revision, found
        return found

    def _read(self, connection: Connection) -> Digest | None:
        place = _Place.find(connection, REGISTRY, None)
        if place is None:
            return None
        final = last_event(connection, REGISTRY, min(place.row.finalized, place.number))
        self._events, index = _grow(connection, self._events, event_leaves, place, final)
        content = None
        if not unjudged(connection, place.last):
            self._releases, content = _grow(
                connection, self._releases, release_leaves, place, final
            )
        return _digest(connection, place, index, content)


def read_digest(connection: Connection, block: int | None = None) -> Digest:
    """The digests of the registry at an indexed block, at the cursor if none is named.

    Reads every event. Raises InvalidInput for a block that is not indexed, Unavailable before the
    first one.
    """
    place = _Place.find(connection, REGISTRY, block)
    if place is None:
        raise Unavailable("the index holds no block yet", fix="wait until the node has read some")
    check_indexed(place.number, place.row.start_block, place.row.number)
    content = None
    if not unjudged(connection, place.last):
        content = Frontier(release_leaves(connection, place.row, place.below, place.last)).root()
    return _digest(connection, place, _index_root(connection, place), content)


def check_indexed(block: int, first: int, newest: int) -> None:
    """Refuse a block outside of those that are indexed (InvalidInput)."""
    if not first <= block <= newest:
        raise InvalidInput(
            f"block {block} is not in the index",
            why=f"it holds blocks {first} to {newest}",
            fix="ask for one of these, or wait until the node has come that far",
        )


def read_votes_digest(connection: Connection, block: int | None = None) -> Digest | None:
    """The digest of the votes contract at a block, or where its own log ends before it.

    None where no votes are read, or none of its blocks is indexed yet.
    """
    newest = _Place.find(connection, VOTES, None)
    if newest is None or (block is not None and block < newest.row.start_block):
        return None
    earlier = block is not None and block < newest.number
    place = (_Place.find(connection, VOTES, block) if earlier else None) or newest
    return _digest(connection, place, _index_root(connection, place), None)


def read_leaves(
    connection: Connection, digest: Digest, deployment_id: int
) -> Iterator[tuple[bytes, int]]:
    """The leaf of each event that a digest is of, in order, with the timestamp of its block."""
    below = base(deployment_id)
    return read_events(connection, deployment_id, below, below + digest.log.count)


def _index_root(connection: Connection, place: _Place) -> bytes:
    return Frontier(event_leaves(connection, place.row, place.below, place.last)).root()


# trees --------------------------------------------------------------------------------------


def _grow(
    connection: Connection,
    trunk: _Trunk | None,
    leaves: Leaves,
    place: _Place,
    final: Any,
) -> tuple[_Trunk, bytes]:
    """The trunk, grown up to the `final` event, and the root of the whole tree."""
    rules = first_leaf(place.row) + place.row.rules_version.to_bytes(4, "big")
    if trunk is None or trunk.rules != rules or not _holds(connection, trunk):
        trunk = _Trunk(rules, Frontier(), place.below, b"")
    if final is not None and final.sequence > trunk.key:
        firm = trunk.frontier.copy()
        firm.extend(leaves(connection, place.row, trunk.key, final.sequence))
        trunk = _Trunk(rules, firm, final.sequence, _mark(final))
    whole = trunk.frontier.copy()
    whole.extend(leaves(connection, place.row, trunk.key, place.last))
    return trunk, whole.root()


def _holds(connection: Connection, trunk: _Trunk) -> bool:
    """Whether the last event of a trunk still stands where it stood; then all before it do."""
    if not trunk.mark:
        return True
    found = connection.execute(PLACED.where(EVENT.c.sequence == trunk.key)).first()
    return found is not None and _mark(found) == trunk.mark


def _mark(event: Any) -> bytes:
    return bytes(event.block_hash) + bytes(event.log_head)


def _digest(connection: Connection, place: _Place, index: bytes, content: bytes | None) -> Digest:
    row = place.row
    return Digest(
        chain_id=row.chain_id,
        contract=row.contract,
        start_block=row.start_block,
        genesis=bytes(row.genesis),
        block_number=place.number,
        block_hash=_block_hash(connection, row, place.number),
        log=place.log,
        index=index,
        content=content,
        decoder_version=row.decoder_version,
        rules_version=row.rules_version,
    )


def _block_hash(connection: Connection, row: Any, number: int) -> bytes | None:
    """The hash of an indexed block: of the cursor's, of one in the ring, or of one with events."""
    if number == row.number:
        return bytes(row.hash)
    ring = BLOCK.c.deployment_id == row.id
    for query in (
        select(BLOCK.c.hash).where(ring, BLOCK.c.number == number),
        select(EVENT.c.block_hash).where(EVENT.c.block_number == number).limit(1),
    ):
        found = connection.execute(query).scalar()
        if found is not None:
            return bytes(found)
    return None
