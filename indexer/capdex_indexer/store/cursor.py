"""The cursor of a contract's index, and the ring of the newest blocks that were applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, case, delete, insert, select, update

from capdex.errors import Code, Unavailable
from capdex.registry.logs import BlockRef, LogHead
from capdex_indexer.db.bulk_insert import insert_rows
from capdex_indexer.db.models import BLOCK, CURSOR
from capdex_indexer.projection.block_range import BlockRange
from capdex_indexer.projection.event_rows import Row

RING_BLOCKS: Final = 1024  # deeper than any reorg a node follows by itself


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last applied block, the log head after it, and the number that was final then."""

    block: BlockRef
    log_head: LogHead
    finalized: int


def read_cursor(connection: Connection, deployment_id: int) -> Cursor | None:
    """Return the cursor; None before the first step."""
    row = connection.execute(select(CURSOR).where(CURSOR.c.deployment_id == deployment_id)).first()
    if row is None:
        return None
    block = BlockRef(row.number, row.hash, row.parent, row.timestamp)
    return Cursor(block, LogHead(row.log_head, row.log_count), row.finalized)


def advance(connection: Connection, deployment_id: int, step: BlockRange, log: LogHead) -> None:
    """Move the cursor and the ring to the end of a step."""
    newest = sorted({*step.blocks, step.upto}, key=lambda x: x.number)[-RING_BLOCKS:]
    ours = BLOCK.c.deployment_id == deployment_id
    if len(newest) == RING_BLOCKS:
        connection.execute(delete(BLOCK).where(ours))
    insert_rows(connection, BLOCK, [_block_row(deployment_id, block) for block in newest])
    edge = select(BLOCK.c.number).where(ours).order_by(BLOCK.c.number.desc())
    oldest = edge.limit(1).offset(RING_BLOCKS).scalar_subquery()
    connection.execute(delete(BLOCK).where(ours, BLOCK.c.number <= oldest))
    chain = {"head": step.head, "finalized": step.finalized}
    _set_cursor(connection, deployment_id, step.upto, log, chain)


def retreat(connection: Connection, deployment_id: int, fork: BlockRef, log_head: LogHead) -> None:
    """Move the cursor back to `fork`, where the log head was `log_head`."""
    ours = BLOCK.c.deployment_id == deployment_id
    connection.execute(delete(BLOCK).where(ours, BLOCK.c.number >= fork.number))
    insert_rows(connection, BLOCK, [_block_row(deployment_id, fork)])
    # blocks that were reorganised were never final, even if an endpoint reported so
    final = case((CURSOR.c.finalized > fork.number, fork.number), else_=CURSOR.c.finalized)
    _set_cursor(connection, deployment_id, fork, log_head, {"finalized": final})


def read_ring(connection: Connection, deployment_id: int) -> list[BlockRef]:
    """Return the blocks of the ring, lowest first."""
    ring = select(BLOCK).where(BLOCK.c.deployment_id == deployment_id).order_by(BLOCK.c.number)
    return [BlockRef(x.number, x.hash, x.parent, x.timestamp) for x in connection.execute(ring)]


def check_step(before: Cursor | None, step: BlockRange, heads: Sequence[LogHead]) -> None:
    """Raise Unavailable STALLED for a step that leaves a gap or repeats stored logs."""
    after, log = (before.block.number, before.log_head) if before else (-1, LogHead())
    first = min((*step.blocks, step.upto), key=lambda block: block.number)
    begins = min([first.number, *step.times])
    if [head.count - log.count for head in heads] != list(range(1, len(step.log_rows) + 1)):
        raise _does_not_follow(f"its events do not continue the {log.count} that are stored")
    if begins <= after:
        raise _does_not_follow(f"it begins at block {begins}, the cursor stands at {after}")
    if before and first.number == after + 1 and first.parent != before.block.hash:
        raise _does_not_follow(f"block {first.number} is not a child of the block at the cursor")
    if step.times and max(step.times) > step.upto.number:
        raise _does_not_follow(f"it goes beyond its last block {step.upto.number}")
    hashes = {block.number: block.hash for block in (*step.blocks, step.upto)}
    for number, hash_ in step.log_rows.logs.blocks():
        if number not in step.times or hashes.setdefault(number, hash_) != hash_:
            raise _does_not_follow(f"a log stands in another block {number} than the step's")


def check_fork(connection: Connection, deployment_id: int, before: Cursor, fork: BlockRef) -> None:
    """Raise Unavailable STALLED for a fork that is not a block of the applied chain."""
    ours = BLOCK.c.deployment_id == deployment_id
    block = select(BLOCK.c.hash).where(ours, BLOCK.c.number == fork.number)
    kept = connection.execute(block).scalar()
    if fork.number >= before.block.number or (kept is not None and kept != fork.hash):
        raise _does_not_follow(f"block {fork.number} was not applied with this hash")


def _set_cursor(
    connection: Connection, deployment_id: int, block: BlockRef, log: LogHead, chain: dict[str, Any]
) -> None:
    row = {
        "number": block.number,
        "hash": block.hash,
        "parent": block.parent,
        "timestamp": block.timestamp,
        "log_head": log.head,
        "log_count": log.count,
        **chain,
    }
    ours = update(CURSOR).where(CURSOR.c.deployment_id == deployment_id)
    if not connection.execute(ours.values(row)).rowcount:
        connection.execute(insert(CURSOR), {"deployment_id": deployment_id, **row})


def _block_row(deployment_id: int, block: BlockRef) -> Row:
    return (deployment_id, block.number, block.hash, block.parent, block.timestamp)


def _does_not_follow(why: str) -> Unavailable:
    what, fix = "a step of the chain does not follow the index", "read again from the cursor"
    return Unavailable(what, Code.STALLED, why, fix)
