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

from capdex.errors import Code, Unavailable
from capdex.events import LogHead
from capdex.net.together import end
from indexer.chain import ChainReader, sequence_of
from indexer.rows import Decoded, decoded
from indexer.steps import BlockRef, Blocks, Reorg
from indexer.store import Store
from indexer.threads import whole

PAUSE_BASE_S = 0.25
PAUSE_CAP_S = 30.0
MAX_REREADS = 4  # then the rows already stored are compared with the contract, too


Checked = tuple[Blocks | Reorg, list[Decoded]]


class Gap(Unavailable):
    """What was read cannot be what the contract emitted: logs are missing or foreign."""


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
    chain_id: int,
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
    while True:
        try:
            at, ring = await asyncio.to_thread(_resume, store, at)
            reader.resume(ring)
            async with aclosing(_ahead(reader, store, at.log, chain_id)) as checked:
                async for step, entries in checked:
                    at = await whole(_apply, store, step, entries, at)
                    failures = 0
                    committed.set()
                    report(at)
        except Unavailable as error:
            failures += 1
            report(replace(at, undone=0, trouble=error))
            if isinstance(error, Gap):
                reader.rpc.blame(error.message)
                if failures % MAX_REREADS == 0:
                    await _doubt_the_store(reader, store)
            ceiling_s = min(PAUSE_CAP_S, PAUSE_BASE_S * 2 ** min(failures, 16))
            await asyncio.sleep(random.uniform(0, ceiling_s))  # noqa: S311 - jitter


async def _ahead(
    reader: ChainReader, store: Store, log: LogHead, chain_id: int
) -> AsyncGenerator[Checked, None]:
    """The steps after `log` with their events, read and checked while the one before is stored.

    Two at most are ahead; whatever ends the reading is raised once they have been given.
    """
    ready: asyncio.Queue[Checked | Exception] = asyncio.Queue(1)
    reading = asyncio.create_task(_read(reader, store, log, chain_id, ready))
    try:
        while True:
            found = await ready.get()
            if isinstance(found, Exception):
                raise found
            yield found
            ready.task_done()
    finally:
        await end([reading])


async def _read(
    reader: ChainReader,
    store: Store,
    log: LogHead,
    chain_id: int,
    ready: asyncio.Queue[Checked | Exception],
) -> None:
    try:
        async with aclosing(reader.steps()) as steps:
            async for step in steps:
                entries: list[Decoded] = []
                if isinstance(step, Blocks):
                    entries = await whole(follow, step, log, chain_id)
                    log = entries[-1].head if entries else log
                await ready.put((step, entries))
                if isinstance(step, Reorg):  # what the log was there, the store knows afterwards
                    await ready.join()
                    log = (await asyncio.to_thread(_resume, store, Progress()))[0].log
    except Exception as error:  # noqa: BLE001 - raised again where the steps are stored
        await ready.put(error)


def _resume(store: Store, at: Progress) -> tuple[Progress, list[BlockRef]]:
    cursor, ring = store.cursor(), store.ring()
    block, log = (cursor.block, cursor.log) if cursor else (None, LogHead())
    return Progress(block, at.head, at.finalized, log), ring


def _apply(
    store: Store, step: Blocks | Reorg, entries: Sequence[Decoded], at: Progress
) -> Progress:
    """Store one step that was checked, in a worker thread."""
    if isinstance(step, Reorg):
        store.rollback(step.fork)
        undone = at.block.number - step.fork.number if at.block else 0
        return replace(_resume(store, at)[0], undone=undone)
    store.append(step, entries)
    log = entries[-1].head if entries else at.log
    return Progress(step.upto, step.head, step.finalized, log)


def follow(step: Blocks, log: LogHead, chain_id: int) -> list[Decoded]:
    """The logs of a step that continues `log`, decoded; raises Gap when it does not."""
    found = []
    for raw in step.logs:
        sequence = sequence_of(raw)
        if sequence != log.count + 1:
            raise _gap(step, f"event {log.count + 1} is missing: {sequence} came in its place")
        log = log.fold(raw)
        found.append(decoded(raw, log, chain_id))
    if step.log is not None and step.log != log:
        raise _gap(step, f"the contract counts {step.log.count} events, the logs give {log.count}")
    return found


def _gap(step: Blocks, why: str) -> Gap:
    return Gap(
        f"the RPC endpoint left out or changed events up to block {step.upto.number}",
        Code.STALLED,
        why=why,
        fix="wait, or add another endpoint with --rpc-url",
    )


async def _doubt_the_store(reader: ChainReader, store: Store) -> None:
    """Undo what is stored where the chain itself says that it is wrong.

    Possible only where an endpoint that serves no old state left logs out of an earlier step.
    """
    cursor = await asyncio.to_thread(store.cursor)
    if cursor is None:
        return
    theirs = await reader.log_at(cursor.block.hash)
    if theirs is None:
        wrong = await reader.last_sequence() > cursor.log.count
    else:
        wrong = theirs != cursor.log
    if wrong:
        await whole(store.rollback, await reader.rewind())
