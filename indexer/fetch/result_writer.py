"""From outcomes to rows: in batches, and no verdict before its blocks are durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import structlog

from capdex.errors import CapdexError, Code, Unavailable, UsageError
from capdex.net.ipfs.block_store import BlockDirectory
from indexer.fetch.retry_schedule import Finding, Outcome, fault, later, said, tell
from indexer.store import Delay, Job, Store

log = structlog.get_logger(part="fetch")

RECORDERS: Final = 2  # one waits for the disk while the other writes rows
MAX_UNSTORED: Final = 256  # outcomes in one transaction; each may hold its package
AWAY_S: Final = 1.0  # before a database that is away is tried again
DISK_S: Final = 60.0  # before a package is fetched again that the disk did not take
AWAY: Final = (Code.DATABASE_LOCKED, Code.DATABASE_UNAVAILABLE)

Batch = Sequence[tuple[Job, Outcome]]


class Recorder:
    """Stores what becomes of jobs; `stored` is called with each job whose row says so.

    `linger_s` tells how long to wait for more outcomes, for fewer and larger transactions.
    """

    def __init__(
        self,
        store: Store,
        blocks: BlockDirectory,
        *,
        clock: Callable[[], float],
        stored: Callable[[Job], None],
        linger_s: Callable[[], float],
    ) -> None:
        self._store, self._blocks, self._clock = store, blocks, clock
        self._stored, self._linger_s = stored, linger_s
        self._outcomes: asyncio.Queue[tuple[Job, Outcome]] = asyncio.Queue()
        self._full = asyncio.Event()  # there is no use in lingering
        self._gathering = asyncio.Lock()

    @property
    def is_full(self) -> bool:
        """Whether as much waits here as one transaction takes."""
        return self._outcomes.qsize() >= MAX_UNSTORED

    def put(self, job: Job, outcome: Outcome) -> None:
        """Store what has become of a job, soon."""
        self._outcomes.put_nowait((job, outcome))
        if self.is_full:
            self._full.set()

    async def run(self) -> None:
        """Store for ever."""
        # Threads of its own: requests may have taken all others.
        with ThreadPoolExecutor(RECORDERS, "record") as threads:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(RECORDERS):
                    tasks.create_task(self._record(threads))

    async def _record(self, threads: ThreadPoolExecutor) -> None:
        """Store outcomes, as many in one transaction as have come meanwhile."""
        while True:
            async with self._gathering:  # two that linger at once share what comes meanwhile
                batch = await self._gather()
            await self._write(batch, threads)
            for job, _ in batch:
                self._stored(job)

    async def _gather(self) -> Batch:
        """The next outcomes: what came while lingering, or as many as a transaction takes."""
        batch = [await self._outcomes.get()]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._linger_s()):
                await self._full.wait()
        while not self._outcomes.empty() and len(batch) < MAX_UNSTORED:
            batch.append(self._outcomes.get_nowait())
        if not self.is_full:
            self._full.clear()
        return batch

    async def _write(self, batch: Batch, threads: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                alive = await loop.run_in_executor(threads, self._store_all, batch)
                break
            except Exception as error:  # ours: it costs its package a try, or a minute
                if isinstance(error, Unavailable) and error.code in AWAY:
                    log.warning("queue not written", why=error.message)
                    await asyncio.sleep(AWAY_S)
                    continue
                if len(batch) > 1:  # which of them it was shows one by one
                    for one in batch:
                        await self._write([one], threads)
                    return
                job, outcome = batch[0]
                if isinstance(outcome, Delay):
                    log.error("not stored", cap_uri=job.announcement.cap_uri, exc_info=error)
                    return
                if isinstance(error, UsageError):  # no haste to fetch what the disk does not take
                    await asyncio.sleep(AWAY_S)
                batch = [(job, self._failed(job, error))]
        for (job, outcome), there in zip(batch, alive, strict=True):
            if there:  # else its block was undone meanwhile
                tell(job, outcome)

    def _store_all(self, batch: Batch) -> list[bool]:
        """In a thread: keep blocks, then store verdicts, so that no verdict lacks its block."""
        found = [(job.release_id, one) for job, one in batch if isinstance(one, Finding)]
        delays = [one for _, one in batch if isinstance(one, Delay)]
        self._blocks.keep_many([block for _, one in found for block in one.blocks.items()])
        alive = set[int]()
        if found:
            stored = self._store.record_many([(key, one.judgement) for key, one in found])
            alive = {key for (key, _), there in zip(found, stored, strict=True) if there}
        if delays:
            self._store.delay_many(delays)
        return [isinstance(one, Delay) or job.release_id in alive for job, one in batch]

    def _failed(self, job: Job, error: Exception) -> Delay:
        if isinstance(error, UsageError):  # of the block directory: the package had no try
            return Delay(job.release_id, said(error), self._clock() + DISK_S, tried=False)
        if isinstance(error, CapdexError):
            return later(job, said(error), self._clock())
        return fault(job, error, self._clock())
