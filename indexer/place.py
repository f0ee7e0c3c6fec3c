"""Where an index stands on its chain: the cursor, and the ring of blocks it came by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select, update

from capdex.errors import Code, Unavailable
from capdex.events import LogHead
from indexer.models import BlockRow, CursorRow, table
from indexer.rows import Decoded, Row
from indexer.steps import BlockRef, Blocks

RING_BLOCKS: Final = 1024  # deeper than any reorg a node follows by itself

CURSOR, BLOCK = table(CursorRow), table(BlockRow)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last applied block, and the registry's log slot after it."""

    block: BlockRef
    log: LogHead


def read_cursor(connection: Connection) -> Cursor | None:
    """How far the chain is applied; None before the first step."""
    row = connection.execute(select(CURSOR)).first()
    if row is None:
        return None
    block = BlockRef(row.number, row.hash, row.parent, row.timestamp)
    return Cursor(block, LogHead(row.log_head, row.log_count))


def advance(connection: Connection, step: Blocks, log: LogHead) -> None:
    """Move the cursor to the end of a step, and the ring with it."""
    newest = sorted({*step.blocks, step.upto}, key=lambda x: x.number)[-RING_BLOCKS:]
    connection.execute(insert(BLOCK), [_block_row(block) for block in newest])
    edge = select(BLOCK.c.number).order_by(BLOCK.c.number.desc()).limit(1).offset(RING_BLOCKS)
    connection.execute(delete(BLOCK).where(BLOCK.c.number <= edge.scalar_subquery()))
    _set_cursor(connection, step.upto, log, {"head": step.head, "finalized": step.finalized})


def retreat(connection: Connection, fork: BlockRef, log: LogHead) -> None:
    """Move the cursor back to `fork`, where the log slot was `log`."""
    connection.execute(delete(BLOCK).where(BLOCK.c.number >= fork.number))
    connection.execute(insert(BLOCK), _block_row(fork))
    _set_cursor(connection, fork, log, {})
    # what the chain takes back was never final, whatever an endpoint had said
    over = CURSOR.c.finalized > fork.number
    connection.execute(update(CURSOR).where(over).values(finalized=fork.number))


def read_ring(connection: Connection) -> list[BlockRef]:
    """The blocks of the ring, lowest first."""
    found = connection.execute(select(BLOCK).order_by(BLOCK.c.number))
    return [BlockRef(x.number, x.hash, x.parent, x.timestamp) for x in found]


def check_step(before: Cursor | None, step: Blocks, decoded: Sequence[Decoded]) -> None:
    """Refuse a step that would leave a hole or apply something twice (Unavailable STALLED)."""
    blocks = {block.number: block for block in (*step.blocks, step.upto)}
    after = before.block.number if before else -1
    first = blocks[min(blocks)]
    if tuple(one.log for one in decoded) != step.logs:
        raise _astray("its logs are not the decoded ones")
    log = before.log if before else LogHead()
    if [one.head.count - log.count for one in decoded] != list(range(1, len(decoded) + 1)):
        raise _astray(f"its events do not continue the {log.count} that are stored")
    if first.number <= after:
        raise _astray(f"it begins at block {first.number}, the cursor stands at {after}")
    if before and first.number == after + 1 and first.parent != before.block.hash:
        raise _astray(f"block {first.number} is not a child of the block at the cursor")
    for place in (log.position for log in step.logs):
        block = blocks.get(place.block_number)
        if block is None or block.hash != place.block_hash:
            raise _astray(f"a log stands in another block {place.block_number} than the step's")


def check_fork(connection: Connection, before: Cursor, fork: BlockRef) -> None:
    """Refuse a fork that is not a block of the chain applied here (Unavailable STALLED)."""
    kept = connection.execute(select(BLOCK.c.hash).where(BLOCK.c.number == fork.number)).scalar()
    if fork.number >= before.block.number or (kept is not None and kept != fork.hash):
        raise _astray(f"block {fork.number} was not applied with this hash")


def timestamps(step: Blocks) -> dict[int, int]:
    """The timestamps of a step's blocks by number."""
    return {block.number: block.timestamp for block in (*step.blocks, step.upto)}


def _set_cursor(
    connection: Connection, block: BlockRef, log: LogHead, chain: dict[str, int]
) -> None:
    row = _block_row(block) | {"log_head": log.head, "log_count": log.count} | chain
    if not connection.execute(update(CURSOR).values(row)).rowcount:
        connection.execute(insert(CURSOR), {"id": 1, **row})


def _block_row(block: BlockRef) -> Row:
    return {
        "number": block.number,
        "hash": block.hash,
        "parent": block.parent,
        "timestamp": block.timestamp,
    }


def _astray(why: str) -> Unavailable:
    return Unavailable(
        "a step of the chain does not follow the index",
        Code.STALLED,
        why,
        "read again from the cursor",
    )
