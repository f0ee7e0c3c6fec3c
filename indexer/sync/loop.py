"""The loop that keeps the index in step with the chain: read, check, apply, publish progress.

Steps are read and checked in `read_ahead`, the reaction to a failure is decided in `recovery`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from capdex.errors import Unavailable
from capdex.net.tasks import run_to_completion
from capdex.registry.logs import BlockRef, LogHead
from indexer.chain.reader import ChainReader
from indexer.projection.block_range import BlockRange, Reorg
from indexer.store.store import Store
from indexer.sync.log_completeness import Checkpoint, rollback_target
from indexer.sync.read_ahead import read_ahead
from indexer.sync.recovery import Recovery, classify


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest stored block with the log head after it, and the chain's own head.

    `undone` counts the blocks that a reorg has just removed; `trouble` is the error that stops
    the loop at present, None while it goes on.
    """

    block: BlockRef | None = None
    head: int = 0
    finalized: int = 0
    log_head: LogHead = field(default_factory=LogHead)
    undone: int = 0
    trouble: Unavailable | None = None


async def follow_chain(
    reader: ChainReader,
    store: Store,
    *,
    committed: asyncio.Event,
    report: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Follow the chain until cancelled; `committed` is set after each transaction.

    An endpoint that is down, a stalled chain or a busy database is reported as trouble and tried
    again. Cancellation never leaves half a transaction.
    """

    def report_idle(head: int, finalized: int) -> None:
        report(replace(progress, head=head, finalized=finalized, undone=0, trouble=None))

    progress, recovery = Progress(), Recovery()
    recheck: Checkpoint | None = None
    reader.on_idle = report_idle
    while True:
        try:
            if recheck is not None:
                await _undo_wrong_rows(reader, store, recheck)
                recheck = None
            progress, ring, finalized = await asyncio.to_thread(_resume, store, progress)
            recovery = recovery.resumed(progress.block, progress.log_head)
            reader.resume(ring, finalized)
            async with aclosing(read_ahead(reader, progress.log_head)) as checked_steps:
                async for step, log_heads in checked_steps:
                    progress = await run_to_completion(_apply, store, step, log_heads, progress)
                    confirmed = isinstance(step, BlockRange) and step.log_head is not None
                    recovery = recovery.applied(progress.block, progress.log_head, confirmed)
                    committed.set()
                    report(progress)
        except Unavailable as error:
            report(replace(progress, undone=0, trouble=error))
            failure = classify(error, has_other_endpoints=not reader.rpc.alone)
            recovery, action = recovery.failed(failure, jitter=random.random())  # noqa: S311
            if action.blame:
                reader.rpc.blame(error.why)
            recheck = action.recheck
            await asyncio.sleep(action.pause_s)


async def _undo_wrong_rows(reader: ChainReader, store: Store, checkpoint: Checkpoint) -> None:
    cursor = await asyncio.to_thread(store.cursor)
    fork = await rollback_target(reader, cursor, checkpoint) if cursor else None
    if fork:
        await run_to_completion(store.rollback, fork)


def _resume(store: Store, progress: Progress) -> tuple[Progress, list[BlockRef], int]:
    """The progress by the stored cursor, the newest stored blocks, and the finalised block."""
    cursor, ring = store.cursor(), store.ring()
    if cursor is None:
        return Progress(None, progress.head, progress.finalized), ring, 0
    at_cursor = Progress(cursor.block, progress.head, progress.finalized, cursor.log_head)
    return at_cursor, ring, cursor.finalized


def _apply(
    store: Store, step: BlockRange | Reorg, log_heads: Sequence[LogHead], progress: Progress
) -> Progress:
    """Store one checked step; runs in a thread."""
    if isinstance(step, Reorg):
        store.rollback(step.fork)
        undone = progress.block.number - step.fork.number if progress.block else 0
        return replace(_resume(store, progress)[0], undone=undone)
    store.append(step, log_heads)
    log_head = log_heads[-1] if log_heads else progress.log_head
    return Progress(step.upto, step.head, step.finalized, log_head)
