"""The loop that keeps the index in step with the chain: read, check, apply, publish progress.

The next steps are read and checked while one is stored; `recovery` decides the reaction to a
failure.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from capdex.errors import Unavailable
from capdex.net.tasks import end, run_to_completion
from capdex.registry.logs import BlockRef, LogHead
from capdex_indexer.chain.reader import ChainReader
from capdex_indexer.projection.block_range import BlockRange, Reorg
from capdex_indexer.store.store import Store
from capdex_indexer.sync.log_completeness import (
    Checkpoint,
    MissingLogs,
    check_logs,
    rollback_target,
)
from capdex_indexer.sync.recovery import Recovery

AHEAD = 4  # steps
MAX_JOINED_LOGS = 2_000  # a step with as many is joined with no more

CheckedStep = tuple[BlockRange | Reorg, list[LogHead]]  # a step, and the log head after each log


async def read_ahead(reader: ChainReader, log_head: LogHead) -> AsyncGenerator[CheckedStep, None]:
    """Iterate over the checked steps after `log_head`; end after a reorg.

    Block ranges that are at hand are joined: a transaction costs as much as hundreds of events.
    An error of the reader is raised after the steps that were read before it.
    """
    ready: asyncio.Queue[CheckedStep | Exception] = asyncio.Queue(AHEAD)
    reading = asyncio.create_task(_read(reader, log_head, ready))
    following: CheckedStep | Exception | None = None
    try:
        while True:
            current, following = following or await ready.get(), None
            if isinstance(current, Exception):
                raise current
            step, heads = current
            if isinstance(step, Reorg):
                yield step, heads
                return  # the log head after it is read from the store
            while len(heads) < MAX_JOINED_LOGS and not ready.empty():
                following = ready.get_nowait()
                if isinstance(following, Exception) or isinstance(following[0], Reorg):
                    break
                step, heads = step.then(following[0]), heads + following[1]
                following = None
            yield step, heads
    finally:
        await end([reading])


async def _read(
    reader: ChainReader, log_head: LogHead, ready: asyncio.Queue[CheckedStep | Exception]
) -> None:
    try:
        async with aclosing(reader.steps()) as steps:
            async for step in steps:
                heads: list[LogHead] = []
                if isinstance(step, BlockRange):
                    heads = await run_to_completion(check_logs, step, log_head)
                    log_head = heads[-1] if heads else log_head
                await ready.put((step, heads))
                if isinstance(step, Reorg):
                    return
    except Exception as error:  # noqa: BLE001 - raised by `read_ahead`
        await ready.put(error)


@dataclass(frozen=True, slots=True)
class SyncProgress:
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
    report: Callable[[SyncProgress], None] = lambda progress: None,
) -> None:
    """Follow the chain until cancelled; `committed` is set after each transaction.

    An endpoint that is down, a stalled chain or a busy database is reported as trouble and tried
    again. Cancellation never leaves half a transaction.
    """

    progress, recovery = SyncProgress(), Recovery()

    def report_idle(head: int, finalized: int) -> None:
        nonlocal progress
        stored = progress.block is None or progress.block.number >= head  # all that was read
        trouble = None if stored else progress.trouble
        progress = replace(progress, head=head, finalized=finalized, undone=0, trouble=trouble)
        report(progress)

    recheck: Checkpoint | None = None
    reader.on_idle = report_idle
    while True:
        try:
            if recheck is not None:
                await _undo_wrong_rows(reader, store, recheck)
                recheck = None
            progress, ring, finalized = await asyncio.to_thread(_resume, store, progress)
            recovery = recovery.resumed(progress.block, progress.log_head)
            reader.reorgs.resume(ring, finalized)
            async with aclosing(read_ahead(reader, progress.log_head)) as checked_steps:
                async for step, log_heads in checked_steps:
                    progress = await run_to_completion(_apply, store, step, log_heads, progress)
                    confirmed = isinstance(step, BlockRange) and step.log_head is not None
                    recovery = recovery.applied(progress.block, progress.log_head, confirmed)
                    committed.set()
                    report(progress)
        except Unavailable as error:
            progress = replace(progress, undone=0, trouble=error)
            report(progress)
            recovery, action = recovery.failed(
                error,
                has_other_endpoints=not reader.rpc.alone,
                jitter=random.random(),  # noqa: S311
            )
            if action.blame:
                reader.rpc.blame(error.why)
            if isinstance(error, MissingLogs):  # long replies are cut without a word, too
                reader.narrow_ranges(error.upto)
            recheck = action.recheck
            await asyncio.sleep(action.pause_s)


async def _undo_wrong_rows(reader: ChainReader, store: Store, checkpoint: Checkpoint) -> None:
    cursor = await asyncio.to_thread(store.cursor)
    fork = await rollback_target(reader, cursor, checkpoint) if cursor else None
    if fork:
        await run_to_completion(store.rollback, fork)


def _resume(store: Store, progress: SyncProgress) -> tuple[SyncProgress, list[BlockRef], int]:
    """The progress by the stored cursor, the newest stored blocks, and the finalised block."""
    cursor, ring = store.cursor(), store.ring()
    if cursor is None:
        return replace(progress, block=None, log_head=LogHead()), ring, 0
    at_cursor = replace(progress, block=cursor.block, log_head=cursor.log_head)
    return at_cursor, ring, cursor.finalized


def _apply(
    store: Store,
    step: BlockRange | Reorg,
    log_heads: Sequence[LogHead],
    progress: SyncProgress,
) -> SyncProgress:
    """Store one checked step; runs in a thread."""
    if isinstance(step, Reorg):
        store.rollback(step.fork)
        undone = progress.block.number - step.fork.number if progress.block else 0
        return replace(_resume(store, progress)[0], undone=undone, trouble=None)
    store.append(step, log_heads)
    log_head = log_heads[-1] if log_heads else progress.log_head
    return SyncProgress(step.upto, step.head, step.finalized, log_head)
