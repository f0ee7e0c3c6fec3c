"""Fetch and judge every release that the store has queued; one loop, bounded in every direction.

The store holds the durable queue. A fair queue in memory (`fair_queue`) is filled from it by due
time; each release popped from it is one task: fetch, judge on a worker, store (`result_writer`).

| case | behaviour |
|---|---|
| a fetch runs for SLOT_S | it gives its slot back and goes on; every four such slow fetches take one slot away, down to MIN_SLOTS |
| one publisher floods the queue | the publisher with the fewest running fetches, slow ones included, is next |
| several releases have one CID | it is fetched once |
| no source gives the bytes | tried again by the schedule of `result_writer`, then parked: absence is never final |
| every source rests | postponed, and no try is counted |
| judging processes are killed or do not start | postponed, and no try is counted |
| the process crashes | the row is still due: work is repeated, never skipped |
"""  # noqa: E501 - a table

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.multi_source import AllResting, File, MultiSource
from capdex.net.ipfs.source import BlockSource
from capdex.net.log_lines import RareLines
from capdex.net.tasks import end
from capdex.package import RejectedPackage
from capdex.problems import Reason, Verdict
from capdex_indexer.fetch.fair_queue import FairQueue
from capdex_indexer.fetch.result_writer import (
    FetchResult,
    JudgedRelease,
    ResultWriter,
    retry_after_fault,
    retry_later,
)
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.store import Delay, Job, Lane, Store
from capdex_indexer.workers.pool import Parked, Verifier
from capdex_indexer.workers.process import WorkerLost

log = structlog.get_logger(part="fetch")

SLOTS: Final = 128  # fetches at once: they fill a gateway 50 ms away
MIN_SLOTS: Final = 4  # 8 slow fetches begin a second: of 15 s each, 120 are open at once
SLOT_S: Final = 0.5  # a source that has a block has usually given it by then
FILE_S: Final = 60.0  # all blocks of one file
WORKER_S: Final = 5.0  # until a release is judged again whose workers were killed
POLL_S: Final = 1.0  # how often the store is read for retries that fell due
MIN_POLL_S: Final = 0.05  # between two reads at least, however often the chain adds releases
CAPACITY: Final = 1024  # jobs of a lane in memory
MIN_READ: Final = CAPACITY // 4  # jobs of a lane read at least; the store is read below as many
MAX_UNJUDGED: Final = 128  # packages that wait for a worker
BACKLOG: Final = 64  # jobs waiting, from which on results are gathered for larger transactions


class Fetcher:
    """Fetches and judges what the store has queued; `committed` is set when more is queued.

    `verified` is called with each release that was found verified, once that is stored.
    """

    def __init__(
        self,
        store: Store,
        sources: Sequence[BlockSource],
        verifier: Verifier,
        blocks: BlockDirectory,
        *,
        committed: asyncio.Event,
        clock: Callable[[], float] = time.time,
        verified: Callable[[Job], None] = lambda _: None,
    ) -> None:
        self._store, self._verifier, self._blocks = store, verifier, blocks
        self.sources, self._kept = MultiSource(sources), MultiSource([blocks])
        self._committed, self._clock, self._verified = committed, clock, verified
        self._queue = FairQueue(capacity=CAPACITY)
        self._after = dict.fromkeys(Lane, "")  # the publisher read last
        self._more = False  # the store has more due than was read
        self._fetches: dict[str, asyncio.Task[tuple[File, bool]]] = {}  # by CID
        self._slow = self._unjudged = 0
        self._lines = RareLines()
        self._changed = asyncio.Event()  # jobs were added, or there is room to start one
        self._writer = ResultWriter(
            store, blocks, clock=clock, stored=self._stored, has_backlog=self._has_backlog
        )

    async def run(self) -> None:
        """Work on the queue until cancelled."""
        # A thread of its own, since requests may use all others.
        with ThreadPoolExecutor(1, "fetch") as thread:
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._fill(thread))
                    tasks.create_task(self._writer.run())
                    while True:
                        self._changed.clear()
                        while self._has_room() and (job := self._queue.pop()) is not None:
                            tasks.create_task(self._work(job))
                        if self._runs_low():
                            self._committed.set()
                        await self._changed.wait()
            finally:
                await end(self._fetches.values())

    def _has_room(self) -> bool:
        slots = max(MIN_SLOTS, SLOTS - self._slow // 4)
        fetching = self._queue.running - self._slow
        return fetching < slots and self._unjudged < MAX_UNJUDGED and not self._writer.is_full

    def _has_backlog(self) -> bool:
        return sum(map(self._queue.waiting, Lane)) >= BACKLOG

    def _runs_low(self) -> bool:
        return self._more and sum(map(self._queue.waiting, Lane)) < MIN_READ

    # from the store to the queue --------------------------------------------------------------

    async def _fill(self, thread: ThreadPoolExecutor) -> None:
        """Read the store when releases are committed, the queue runs low, or POLL_S has passed."""
        loop = asyncio.get_running_loop()
        while True:
            self._committed.clear()
            try:
                due = await loop.run_in_executor(
                    thread, self._read_due, frozenset(self._queue.known)
                )
            except Unavailable as error:
                if self._lines.due(error.code):
                    log.warning("queue unreadable", why=error.line)
            else:
                self._add(due)
            if not self._runs_low():
                await asyncio.sleep(MIN_POLL_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._committed.wait()

    def _read_due(self, known: frozenset[int]) -> dict[Lane, list[Job]]:
        """In a thread: read what is due in each lane, from the publisher after the last one."""
        now = self._clock()
        return {
            lane: self._store.due(
                now,
                max(MIN_READ, CAPACITY - self._queue.waiting(lane)),
                lane=lane,
                after=self._after[lane],
                known=known,
            )
            for lane in Lane
        }

    def _add(self, due: dict[Lane, list[Job]]) -> None:
        self._more = any(len(jobs) >= MIN_READ for jobs in due.values())
        for lane, jobs in due.items():
            self._queue.add(jobs)
            if jobs:
                self._after[lane] = jobs[-1].announcement.publisher
        self._changed.set()

    # one release ------------------------------------------------------------------------------

    async def _work(self, job: Job) -> None:
        result: FetchResult
        try:
            result = await self._judge(job)
        except (AllResting, WorkerLost) as error:
            rest_s = error.wait_s if isinstance(error, AllResting) else WORKER_S
            wait_s = rest_s * random.uniform(1, 1.25)  # noqa: S311 - jitter
            result = Delay(job.release_id, error.line, self._clock() + wait_s, tried=False)
        except CapdexError as error:
            result = retry_later(job, error.line, self._clock())
        except Exception as error:  # noqa: BLE001 - a fault of ours costs one release a try
            result = retry_after_fault(job, error, self._clock())
        self._writer.put(job, result)  # the release stays known until it is stored

    async def _judge(self, job: Job) -> FetchResult:
        """Fetch and judge one release; return a Delay if it could not be judged."""
        try:
            file, kept = await self._fetch_in_slot(job)
        except InvalidInput as error:  # the blocks themselves are wrong: no source has others
            rejected = RejectedPackage(
                job.announcement, Verdict.MISMATCH, Reason.NOT_A_FILE, error.line
            )
            return JudgedRelease(Judgement.of(rejected))
        self._unjudged += 1
        try:
            judgement = await self._verifier.judge(job.announcement, file.data)
        finally:
            self._unjudged -= 1
            self._changed.set()
        if isinstance(judgement, Parked):
            return Delay(job.release_id, judgement.message, reason=judgement.reason)
        keep = judgement.verdict is Verdict.VERIFIED and not kept
        return JudgedRelease(judgement, file.blocks if keep else {})

    async def _fetch_in_slot(self, job: Job) -> tuple[File, bool]:
        """Fetch the file of a job's CID in a slot, which is given back after SLOT_S at most."""
        is_slow = False

        def give_slot_back() -> None:
            nonlocal is_slow
            is_slow = True
            self._slow += 1
            self._changed.set()

        timer = asyncio.get_running_loop().call_later(SLOT_S, give_slot_back)
        try:
            return await self._fetch_once(Cid.parse(job.announcement.cid))
        finally:
            timer.cancel()
            self._slow -= is_slow
            self._queue.release(job)
            self._changed.set()

    async def _fetch_once(self, cid: Cid) -> tuple[File, bool]:
        """Return the file of a CID, and True if it is kept here; equal CIDs share a task."""
        fetch = self._fetches.get(cid.text)
        if fetch is None:
            fetch = self._fetches[cid.text] = asyncio.create_task(self._fetch(cid))
            fetch.add_done_callback(partial(self._fetched, cid.text))
        return await asyncio.shield(fetch)

    async def _fetch(self, cid: Cid) -> tuple[File, bool]:
        if self._blocks.holds(cid):
            with suppress(Unavailable):  # the file may be spoilt, or a block of it missing
                return await self._kept.file(cid), True
        try:
            async with asyncio.timeout(FILE_S):
                return await self.sources.file(cid), False
        except TimeoutError:
            raise Unavailable(
                f"the blocks of {cid} did not come within {FILE_S:.0f} s", Code.TIMEOUT
            ) from None

    def _fetched(self, cid: str, fetch: asyncio.Task[tuple[File, bool]]) -> None:
        del self._fetches[cid]
        if not fetch.cancelled():
            fetch.exception()  # retrieved, also if all who waited for it were cancelled

    def _stored(self, job: Job, result: FetchResult | None) -> None:
        self._queue.discard(job)
        if isinstance(result, JudgedRelease) and result.judgement.verdict is Verdict.VERIFIED:
            self._verified(job)
        self._changed.set()
