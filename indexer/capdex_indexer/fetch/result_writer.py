"""Write results of fetches in batches: blocks first, so that no verdict is stored without them.

A try is repeated after 1, 5 and 15 s, then from 1 min doubled up to 24 h; after MAX_TRIES the
release is parked until `capdex node queue --rearm`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import structlog

from capdex.errors import CapdexError, Code, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.log_lines import RareLines
from capdex.problems import Reason
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.store import Delay, Job, Store

log = structlog.get_logger(part="fetch")

MAX_TRIES: Final = 20
# A fresh CID often arrives seconds later; a pinning service may take a day.
FIRST_DELAYS_S: Final = (1.0, 5.0, 15.0)
DELAY_S: Final = 60.0
MAX_DELAY_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class JudgedRelease:
    """The judgement of one release, and its blocks that are to be kept."""

    judgement: Judgement
    blocks: Mapping[Cid, bytes] = field(default_factory=dict)


FetchResult = JudgedRelease | Delay


def delay_s(attempts: int) -> float:
    """Return the pause after `attempts` failed tries and one more, before jitter."""
    if attempts < len(FIRST_DELAYS_S):
        return FIRST_DELAYS_S[attempts]
    return float(min(DELAY_S * 2 ** (attempts - len(FIRST_DELAYS_S)), MAX_DELAY_S))


def retry_later(job: Job, why: str, now: float) -> Delay:
    """Return the delay until the next try, or park the release after MAX_TRIES."""
    if job.attempts + 1 >= MAX_TRIES:
        return Delay(job.release_id, why, reason=Reason.UNAVAILABLE)
    pause_s = delay_s(job.attempts) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
    return Delay(job.release_id, why, now + pause_s)


def retry_after_fault(job: Job, error: Exception, now: float) -> Delay:
    """Log an unexpected error with its traceback, and return the delay until the next try."""
    log.error("not judged", cap_uri=job.announcement.cap_uri, exc_info=error)
    return retry_later(job, f"a fault of this node: {type(error).__name__}", now)


def log_result(job: Job, result: FetchResult) -> None:
    """Log the result of a try."""
    uri = job.announcement.cap_uri
    if isinstance(result, JudgedRelease):
        reason, why = result.judgement.reason, result.judgement.message
        if reason is not None:
            log.warning("rejected", cap_uri=uri, reason=str(reason), why=why)
        else:
            log.info("verified", cap_uri=uri)
    elif result.reason is not None:
        log.warning("parked", cap_uri=uri, reason=str(result.reason), why=result.error)
    elif result.tried:
        log.info("not available yet", cap_uri=uri, why=result.error)


WRITERS: Final = 2  # one waits for the disk while the other writes rows
MAX_BATCH: Final = 256  # results in one transaction; each may hold its package
GATHER_S: Final = 0.2  # wait for more results while there is a backlog, for larger transactions
DATABASE_RETRY_S: Final = 1.0
DISK_RETRY_S: Final = 60.0  # until a package is fetched again that the disk did not take
DATABASE_AWAY: Final = (Code.DATABASE_LOCKED, Code.DATABASE_UNAVAILABLE)

Batch = Sequence[tuple[Job, FetchResult]]


class ResultWriter:
    """Stores results; `stored` is called with each job and the result that its row has now.

    That result is None if none was stored, as of a release that a reorg removed meanwhile. While
    `has_backlog` is true, results are gathered for GATHER_S before they are written.
    """

    def __init__(
        self,
        store: Store,
        blocks: BlockDirectory,
        *,
        clock: Callable[[], float],
        stored: Callable[[Job, FetchResult | None], None],
        has_backlog: Callable[[], bool],
    ) -> None:
        self._store, self._blocks, self._clock = store, blocks, clock
        self._stored, self._has_backlog = stored, has_backlog
        self._results: asyncio.Queue[tuple[Job, FetchResult]] = asyncio.Queue()
        self._full = asyncio.Event()
        self._lines = RareLines()
        self._gathering = asyncio.Lock()

    @property
    def is_full(self) -> bool:
        """True if a whole transaction waits."""
        return self._results.qsize() >= MAX_BATCH

    def put(self, job: Job, result: FetchResult) -> None:
        """Queue the result of a job for writing."""
        self._results.put_nowait((job, result))
        if self.is_full:
            self._full.set()

    async def run(self) -> None:
        """Write results until cancelled."""
        # Threads of its own, since requests may use all others.
        with ThreadPoolExecutor(WRITERS, "write") as threads:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(WRITERS):
                    tasks.create_task(self._write_batches(threads))

    async def _write_batches(self, threads: ThreadPoolExecutor) -> None:
        while True:
            async with self._gathering:  # one writer at a time gathers
                batch = await self._gather()
            await self._write(batch, threads)

    async def _gather(self) -> Batch:
        """Return the next results, up to MAX_BATCH."""
        batch = [await self._results.get()]
        if self._has_backlog():
            with suppress(TimeoutError):
                async with asyncio.timeout(GATHER_S):
                    await self._full.wait()
        while not self._results.empty() and len(batch) < MAX_BATCH:
            batch.append(self._results.get_nowait())
        if not self.is_full:
            self._full.clear()
        return batch

    async def _write(self, batch: Batch, threads: ThreadPoolExecutor) -> None:
        """Write a batch; a result that cannot be stored costs its own release a try."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                alive = await loop.run_in_executor(threads, self._store_all, batch)
                break
            except Exception as error:  # the batch is tried again, or its results one by one
                if isinstance(error, Unavailable) and error.code in DATABASE_AWAY:
                    if self._lines.due(error.code):
                        log.warning("queue not written", why=error.line)
                    await asyncio.sleep(DATABASE_RETRY_S)
                    continue
                if len(batch) > 1:
                    for entry in batch:
                        await self._write([entry], threads)
                    return
                job, result = batch[0]
                if isinstance(result, Delay):
                    log.error("not stored", cap_uri=job.announcement.cap_uri, exc_info=error)
                    alive = [False]
                    break
                if isinstance(error, UsageError):  # of the block directory: the disk may be full
                    await asyncio.sleep(DATABASE_RETRY_S)
                batch = [(job, self._failed(job, error))]
        for (job, result), is_alive in zip(batch, alive, strict=True):
            if is_alive:
                log_result(job, result)
            self._stored(job, result if is_alive else None)

    def _store_all(self, batch: Batch) -> list[bool]:
        """In a thread: keep blocks, then store judgements and delays."""
        judged = [(job.release_id, x) for job, x in batch if isinstance(x, JudgedRelease)]
        delays = [x for _, x in batch if isinstance(x, Delay)]
        self._blocks.keep_many([block for _, result in judged for block in result.blocks.items()])
        alive = set[int]()
        if judged:
            stored = self._store.record_many([(key, x.judgement) for key, x in judged])
            alive = {key for (key, _), is_alive in zip(judged, stored, strict=True) if is_alive}
        if delays:
            self._store.delay_many(delays)
        return [isinstance(result, Delay) or job.release_id in alive for job, result in batch]

    def _failed(self, job: Job, error: Exception) -> Delay:
        if isinstance(error, UsageError):  # of the block directory: no try of the package
            due_at = self._clock() + DISK_RETRY_S
            return Delay(job.release_id, error.line, due_at, tried=False)
        if isinstance(error, CapdexError):
            return retry_later(job, error.line, self._clock())
        return retry_after_fault(job, error, self._clock())
