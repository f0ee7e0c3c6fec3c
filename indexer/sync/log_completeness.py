"""Whether logs are what the contract emitted: those of a step, and those that are stored already.

The contract numbers its events and folds them into its log slot. Where no state is kept that is
not served, and logs that were left out or changed show much later, if at all by their numbers. So
it is known how far the contract itself has said that all is right; what lies beyond is read again
once it says otherwise, and rows are undone only for logs that it confirms, by slot or by number.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

from capdex.errors import Code, Unavailable
from capdex.registry.events import LogHead
from indexer.chain.reader import ChainReader
from indexer.projection.block_range import BlockRef, Blocks, Moved
from indexer.store.cursor import Cursor
from indexer.threads import whole


class Gap(Unavailable):
    """What was read cannot be what the contract emitted: logs are missing or foreign."""


@dataclass(frozen=True, slots=True)
class Sure:
    """A place up to which the contract has said that what is stored is right; None: nowhere yet."""

    block: BlockRef | None = None
    log: LogHead = field(default_factory=LogHead)

    def at(self, block: BlockRef | None, log: LogHead, *, told: bool) -> Sure:
        """It, once the cursor is at `block`; `told` says that the contract gave `log` there."""
        undone = self.block and (block is None or self.block.number > block.number)
        return Sure(block, log) if told or undone else self


def follow(step: Blocks, log: LogHead) -> list[LogHead]:
    """The log slot after each log of a step that continues `log`; raises Gap when it does not."""
    heads = log.through(step.drafts.entries)
    # the first word of its data is the sequence number that a log claims (P13)
    for data, (_, count) in zip(step.drafts.logs.data, heads, strict=True):
        if data[:32] != count.to_bytes(32, "big"):
            found = int.from_bytes(data[:32], "big")
            raise _gap(step, log, f"event {count} is missing: {found} came in its place")
    end = heads[-1] if heads else log
    if step.log is not None and step.log != end:
        why = f"the contract counts {step.log.count} events, the logs give {end.count}"
        raise _gap(step, log, why)
    return heads


async def to_undo(reader: ChainReader, cursor: Cursor, sure: Sure) -> BlockRef | None:
    """The block to go back to where rows between `sure` and the cursor are wrong, else None.

    Endpoints are asked in turn until one can tell. Raises Gap where what is shown now cannot be
    right either, RpcError when nobody answers.
    """
    try:
        for _ in reader.rpc.endpoints_state():
            since, theirs = sure, await reader.slot_at(cursor.block)
            if theirs == cursor.log:
                return None
            if since.block == cursor.block and theirs is not None:
                since = Sure()  # the contract said one thing then, and another one now
            if since.block != cursor.block:
                others = await _are_others_true(reader, cursor, since)
                if others is not None:
                    return (since.block or await reader.bottom()) if others else None
            if not reader.rpc.alone:
                reader.rpc.blame("it cannot tell what the contract's log is")
    except Moved as moved:
        raise reader.rpc.blame(str(moved)) from None
    return None


async def _are_others_true(reader: ChainReader, cursor: Cursor, sure: Sure) -> bool | None:
    """Whether other logs than those stored are shown now, which the contract confirms.

    By its log slot; where that is not served by the numbers it gave them, if there are more in the
    same blocks, or if later ones continue them and not those stored. None: nothing tells.
    """
    shown, told, upto = sure.log, False, sure.block
    async with aclosing(reader.again(sure.block, cursor.block.number)) as steps:
        async for step in steps:
            shown = (await whole(follow, step, shown) or [shown])[-1]
            told, upto = step.log is not None, step.upto
    if upto and upto.hash != cursor.block.hash:
        raise Moved(f"it shows another block {cursor.block.number}")
    if told:
        return shown != cursor.log
    if shown == cursor.log:
        return None
    count = shown.count
    async with aclosing(reader.again(cursor.block)) as steps:
        async for step in steps:
            shown = (await whole(follow, step, shown) or [shown])[-1]
            if step.log is not None:
                return True
    continued = count != cursor.log.count and shown.count > count
    return True if count > cursor.log.count or continued else None


def _gap(step: Blocks, log: LogHead, why: str) -> Gap:
    if not log.count:
        why += "; if the registry is older than the first block read, pass its --start-block"
    return Gap(
        f"the RPC endpoint left out or changed events up to block {step.upto.number}",
        Code.STALLED,
        why=why,
        fix="wait, or add another endpoint with --rpc-url",
    )
