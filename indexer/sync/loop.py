"""Chain to rows: the walk of every step, checked before it is stored.

Sequence numbers must be contiguous and the folded head must be the contract's own: whatever is
missing, doubled or out of place is a fault of the endpoint and is read again, never stored.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from capdex.errors import Unavailable
from capdex.net.rpc.errors import ELSEWHERE, RpcError
from capdex.net.tasks import end
from capdex.registry.events import LogHead
from indexer.chain.reader import ChainReader
from indexer.projection.block_range import BlockRef, Blocks, Reorg
from indexer.store import Store
from indexer.sync.log_completeness import Gap, Sure, follow, to_undo
from indexer.threads import whole

PAUSE_BASE_S = 0.25
PAUSE_CAP_S = 5.0  # a node is to be back within a minute of its endpoints
AHEAD = 4  # steps
MAX_TOGETHER = 2_000  # logs, from which on no more are joined
MAX_REREADS = 2  # then the rows already stored are compared with the contract, too
MAX_DOUBTED = 16  # and then those, too, that it once confirmed


Checked = tuple[Blocks | Reorg, list[LogHead]]  # a step, and the log slot after each log


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the walk is: the newest stored block, the chain's own, and all events so far.

    `undone` counts the blocks that a reorg has just taken away; `trouble` is what keeps the walk
    from going on, None once it does.
    """

    block: BlockRef | None = None
    head: int = 0
    finalized: int = 0
    log: LogHead = field(default_factory=LogHead)
    undone: int = 0
    trouble: Unavailable | None = None


async def index(
    reader: ChainReader,
    store: Store,
    *,
    committed: asyncio.Event,
    report: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Follow the chain for ever; `committed` is set after each transaction.

    Nothing that may pass ends it: an endpoint that is down, a stalled chain, a busy database are
    reported as trouble and tried again. Cancelling it never leaves a transaction half done.
    """

    def idle(head: int, finalized: int) -> None:
        report(replace(at, head=head, finalized=finalized, undone=0, trouble=None))

    reader.on_idle, failures, at = idle, 0, Progress()
    gaps, doubtful, sure = 0, False, Sure()
    while True:
        try:
            if doubtful:
                await _doubt(reader, store, sure if gaps % MAX_DOUBTED else Sure())
            at, ring, final = await asyncio.to_thread(_resume, store, at)
            sure = sure.at(at.block, at.log, told=False)
            reader.resume(ring, final)
            async with aclosing(_ahead(reader, store, at.log)) as checked:
                async for step, heads in checked:
                    at = await whole(_apply, store, step, heads, at)
                    told = isinstance(step, Blocks) and step.log is not None
                    sure = sure.at(at.block, at.log, told=told)
                    failures, gaps = 0, 0 if told else gaps
                    committed.set()
                    report(at)
        except Unavailable as error:
            failures, gaps = failures + 1, gaps + isinstance(error, Gap)
            report(replace(at, undone=0, trouble=error))
            doubtful = isinstance(error, Gap) and gaps % MAX_REREADS == 0
            refused = isinstance(error, RpcError) and error.fault not in ELSEWHERE
            if isinstance(error, Gap):
                reader.rpc.blame(error.message)
            elif refused and not reader.rpc.alone:  # the others were not asked for it
                reader.rpc.blame(error.why)
            ceiling_s = min(PAUSE_CAP_S, PAUSE_BASE_S * 2 ** min(failures, 16))
            await asyncio.sleep(random.uniform(0, ceiling_s))  # noqa: S311 - jitter


async def _ahead(reader: ChainReader, store: Store, log: LogHead) -> AsyncGenerator[Checked, None]:
    """The steps after `log`, read and checked while the one before is stored.

    A few are ahead, and become one where they follow each other: a transaction costs as much as
    hundreds of events. Whatever ends the reading is raised once they have been given.
    """
    ready: asyncio.Queue[Checked | Exception] = asyncio.Queue(AHEAD)
    reading = asyncio.create_task(_read(reader, store, log, ready))
    held: Checked | Exception | None = None
    try:
        while True:
            found, held = held or await ready.get(), None
            if isinstance(found, Exception):
                raise found
            step, heads = found
            taken = 1
            while isinstance(step, Blocks) and len(heads) < MAX_TOGETHER and not ready.empty():
                held = ready.get_nowait()
                if isinstance(held, Exception) or isinstance(held[0], Reorg):
                    break
                step, heads = step.then(held[0]), heads + held[1]
                taken, held = taken + 1, None
            yield step, heads
            for _ in range(taken):
                ready.task_done()
    finally:
        await end([reading])


async def _read(
    reader: ChainReader,
    store: Store,
    log: LogHead,
    ready: asyncio.Queue[Checked | Exception],
) -> None:
    try:
        async with aclosing(reader.steps()) as steps:
            async for step in steps:
                heads: list[LogHead] = []
                if isinstance(step, Blocks):
                    heads = await whole(follow, step, log)
                    log = heads[-1] if heads else log
                await ready.put((step, heads))
                if isinstance(step, Reorg):  # what the log was there, the store knows afterwards
                    await ready.join()
                    log = (await asyncio.to_thread(_resume, store, Progress()))[0].log
    except Exception as error:  # noqa: BLE001 - raised again where the steps are stored
        await ready.put(error)


async def _doubt(reader: ChainReader, store: Store, sure: Sure) -> None:
    cursor = await asyncio.to_thread(store.cursor)
    fork = await to_undo(reader, cursor, sure) if cursor else None
    if fork:
        await whole(store.rollback, fork)


def _resume(store: Store, at: Progress) -> tuple[Progress, list[BlockRef], int]:
    cursor, ring = store.cursor(), store.ring()
    if cursor is None:
        return Progress(None, at.head, at.finalized), ring, 0
    return Progress(cursor.block, at.head, at.finalized, cursor.log), ring, cursor.finalized


def _apply(store: Store, step: Blocks | Reorg, heads: Sequence[LogHead], at: Progress) -> Progress:
    """Store one step that was checked, in a worker thread."""
    if isinstance(step, Reorg):
        store.rollback(step.fork)
        undone = at.block.number - step.fork.number if at.block else 0
        return replace(_resume(store, at)[0], undone=undone)
    store.append(step, heads)
    log = heads[-1] if heads else at.log
    return Progress(step.upto, step.head, step.finalized, log)
