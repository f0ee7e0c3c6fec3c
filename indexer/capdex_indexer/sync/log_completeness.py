"""Check that logs are exactly what the contract emitted: those of a step, and those stored.

The contract numbers its events and folds them into its log head. Endpoints without old state do not
serve that head, so a missing or changed log may show much later, or only by its number. The
checkpoint is the last block where the contract confirmed everything stored. Rows after it are read
again once the contract contradicts them, and undone only if it confirms other logs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from capdex.errors import Code, Unavailable
from capdex.net.tasks import run_to_completion
from capdex.registry.logs import BlockRef, LogHead
from capdex_indexer.chain.reader import ChainReader
from capdex_indexer.projection.block_range import BlockRange, ChainChanged
from capdex_indexer.store.cursor import Cursor


@dataclass(eq=False)
class MissingLogs(Unavailable):
    """The endpoint's logs cannot be what the contract emitted: some are missing or changed.

    `upto` is the number of the block up to which they were read.
    """

    upto: int = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last block whose log head the contract confirmed; None before the first one."""

    block: BlockRef | None = None
    log_head: LogHead = field(default_factory=LogHead)


def check_logs(step: BlockRange, log_head: LogHead) -> list[LogHead]:
    """Return the log head after each log of a step; raise MissingLogs unless it continues."""
    heads = log_head.through(step.log_rows.entries)
    # the first word of its data is the sequence number that a log claims (P13)
    for data, (_, count) in zip(step.log_rows.logs.data, heads, strict=True):
        if data[:32] != count.to_bytes(32, "big"):
            number = int.from_bytes(data[:32], "big")
            raise _missing(step, log_head, f"event {count} is missing: {number} came in its place")
    end = heads[-1] if heads else log_head
    if step.log_head is not None and step.log_head != end:
        why = f"the contract counts {step.log_head.count} events, the logs give {end.count}"
        raise _missing(step, log_head, why)
    return heads


async def rollback_target(
    reader: ChainReader, cursor: Cursor, checkpoint: Checkpoint
) -> BlockRef | None:
    """Return the block to roll back to if stored rows after `checkpoint` are wrong, else None.

    Endpoints are asked in turn until one can decide. Raises MissingLogs if what an endpoint shows
    now is not right either, RpcError if no endpoint answers.
    """
    try:
        for _ in reader.rpc.endpoints_state():
            start, contract_head = checkpoint, await reader.log_heads.read(cursor.block)
            if contract_head == cursor.log_head:
                return None
            if start.block == cursor.block and contract_head is not None:
                start = Checkpoint()  # the contract contradicts what it confirmed before
            if start.block != cursor.block:
                wrong = await _stored_logs_are_wrong(reader, cursor, start)
                if wrong is not None:
                    return (start.block or await reader.block_before_all()) if wrong else None
            if not reader.rpc.alone:
                reader.rpc.blame("it cannot tell what the contract's log is")
    except ChainChanged as changed:
        raise reader.rpc.blame(str(changed)) from None
    return None


async def _stored_logs_are_wrong(
    reader: ChainReader, cursor: Cursor, start: Checkpoint
) -> bool | None:
    """True if the contract confirms other logs than those stored after `start`.

    | contract's log head at the cursor | the logs shown now           | answer          |
    |-----------------------------------|------------------------------|-----------------|
    | served                            | lead to another head         | True            |
    | served                            | lead to the stored head      | False           |
    | not served                        | are those stored             | None: undecided |
    | not served                        | are more in the same blocks  | True            |
    | not served                        | other, continued by later    | True            |
    |                                   | logs or confirmed there      |                 |
    | not served                        | other, not continued         | None: undecided |
    """
    shown, confirmed, last = start.log_head, False, start.block
    async with aclosing(_reread(reader, start, cursor.block.number)) as steps:
        async for step, log_head in steps:
            shown, confirmed, last = log_head, step.log_head is not None, step.upto
    if last and last.hash != cursor.block.hash:
        raise ChainChanged(f"it shows another block {cursor.block.number}")
    if confirmed:
        return shown != cursor.log_head
    if shown == cursor.log_head:
        return None
    later = shown
    async with aclosing(_reread(reader, Checkpoint(cursor.block, shown))) as steps:
        async for step, log_head in steps:
            if step.log_head is not None:
                return True
            later = log_head
    more = shown.count > cursor.log_head.count
    continued = shown.count != cursor.log_head.count and later.count > shown.count
    return True if more or continued else None


async def _reread(
    reader: ChainReader, after: Checkpoint, last: int | None = None
) -> AsyncGenerator[tuple[BlockRange, LogHead], None]:
    """Iterate over checked steps as they are shown now, each with the log head after it."""
    log_head = after.log_head
    async with aclosing(reader.reread(after.block, last)) as steps:
        async for step in steps:
            log_head = (await run_to_completion(check_logs, step, log_head) or [log_head])[-1]
            yield step, log_head


def _missing(step: BlockRange, log_head: LogHead, why: str) -> MissingLogs:
    if not log_head.count:
        why += "; if the registry is older than the first block read, pass its --start-block"
    return MissingLogs(
        "the RPC endpoint left out or changed events",  # one line of the log, however far it reads
        Code.STALLED,
        why=f"up to block {step.upto.number}, {why}",
        fix="wait, or add another endpoint with --rpc-url",
        upto=step.upto.number,
    )
