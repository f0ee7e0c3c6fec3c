"""From announced to judged: a durable queue, worked as fast as the sources of packages allow.

The queue is the store's: a crash repeats work and never skips it. One slow CID holds one place for
a second at most, not the head of the chain; absence is never final, only parked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.multi_source import File, Resting, Sources, Watcher
from capdex.net.ipfs.source import SLOW_S, Source
from capdex.package import RejectedPackage
from capdex.problems import Reason, Verdict
from indexer.fetch.fair_queue import Line
from indexer.fetch.result_writer import Recorder
from indexer.fetch.retry_schedule import Finding, Outcome, delay_s, fault, later, said
from indexer.projection.package_rows import Judgement
from indexer.store import Delay, Job, Lane, Store
from indexer.workers.pool import Parked, Verifier

__all__ = ["Fetcher", "delay_s"]

log = structlog.get_logger(part="fetch")

LOOK_S: Final = 1.0  # how often the queue is looked at for retries that fell due
PAUSE_S: Final = 0.05  # between two looks at least, however often the chain adds to it
AHEAD: Final = 1024  # jobs of a lane read at once; of a publisher no more wait in memory
HUNGRY: Final = AHEAD // 4  # jobs waiting in a lane that has more: reading takes less than they do
MIN_PLACES: Final = 8  # jobs at once while every source rests: what is here already is judged
MAX_SLOW: Final = 128  # jobs open for over a second; then whoever has most of them loses the oldest
MAX_UNJUDGED: Final = 128  # packages that wait for a worker; there is no hurry to fetch more
LINGER_S: Final = 0.02  # for outcomes of what is being worked on, to store them together
BACKLOG: Final = 64  # jobs waiting: freshness is no concern, and throughput is
BACKLOG_LINGER_S: Final = 0.2
FILE_S: Final = 120.0  # all blocks of one file; one alone may take half of that


# The file, and whether it was kept here already.
Fetching = Coroutine[Any, Any, tuple[File, bool]]


@dataclass(eq=False)
class _Waiter:
    """A job that waits for a file: what it does once a source was asked, and once that is late."""

    asked: Callable[[], None]
    late: Callable[[], None]


class _Shared:
    """A file that is being fetched, for all who wait for it; watches how that goes on.

    Nobody who waits is slow before a source was asked: those without a turn yet cost nobody any.
    """

    def __init__(self, fetch: Callable[[Watcher], Fetching]) -> None:
        self.waiters = list[_Waiter]()
        self._asked = self._late = False
        self.task = asyncio.create_task(fetch(self))

    def join(self, waiter: _Waiter) -> None:
        """Tell one more how it goes on, and how far it has gone."""
        self.waiters.append(waiter)
        if self._asked:
            waiter.asked()
        if self._late:
            waiter.late()

    def asked(self) -> None:
        """Tell those who wait that a source is asked from now on; once, for the first."""
        if not self._asked:
            self._asked = True
            for waiter in self.waiters:
                waiter.asked()

    def late(self) -> None:
        """Tell them that they keep nobody else waiting."""
        self._late = True
        for waiter in self.waiters:
            waiter.late()


class Fetcher:
    """Fetches and judges whatever the store has queued, until it is cancelled.

    `committed` is set by whoever queues more. `clock` gives seconds since the epoch.
    """

    def __init__(
        self,
        store: Store,
        sources: Sequence[Source],
        verifier: Verifier,
        blocks: BlockDirectory,
        *,
        committed: asyncio.Event,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._verifier, self._blocks = store, verifier, blocks
        self.sources, self._kept = Sources(sources), Sources([blocks])
        self._committed, self._clock = committed, clock
        self._line = Line(depth=AHEAD)
        self._after = dict.fromkeys(Lane, "")  # the publisher whose turn was last
        self._more: set[Lane] = set()  # that had more than was read the last time
        self._fetches: dict[str, _Shared] = {}
        self._slow: dict[int, tuple[str, asyncio.Timeout]] = {}  # by release, the oldest first
        self._unjudged = 0
        self._stirred = asyncio.Event()  # a job waits, or there is room for one
        self._recorder = Recorder(
            store,
            blocks,
            clock=clock,
            stored=self._forget,
            linger_s=self._linger_s,
        )

    async def run(self) -> None:
        """Work the queue for ever."""
        # A thread of its own: requests may have taken all others.
        with ThreadPoolExecutor(1, "fetch") as thread:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._fill(thread))
                tasks.create_task(self._recorder.run())
                while True:
                    self._stirred.clear()
                    while self._has_room() and (job := self._line.take()) is not None:
                        tasks.create_task(self._work(job))
                    if self._is_hungry():
                        self._committed.set()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):  # a source may have rested enough
                            await self._stirred.wait()

    def _linger_s(self) -> float:
        if sum(map(self._line.waiting, Lane)) >= BACKLOG:
            return BACKLOG_LINGER_S
        return LINGER_S if self._line.places + self._unjudged else 0.0

    def _has_room(self) -> bool:
        return (
            self._line.places < max(MIN_PLACES, self.sources.limit())
            and self._unjudged < MAX_UNJUDGED
            and not self._recorder.is_full
        )

    # from the store to the line ---------------------------------------------------------------

    async def _fill(self, thread: ThreadPoolExecutor) -> None:
        """Keep the line full of what is due."""
        while True:
            self._committed.clear()
            try:
                await self._look(thread)
            except Unavailable as error:
                log.warning("queue unreadable", why=error.message)
            if not self._is_hungry():
                await asyncio.sleep(PAUSE_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._committed.wait()

    async def _look(self, thread: ThreadPoolExecutor) -> None:
        """Add to the line what is due, of each lane from the publisher whose turn it is."""
        room = {lane: min(AHEAD, 2 * AHEAD - self._line.waiting(lane)) for lane in Lane}
        known = frozenset(self._line.known)

        def read() -> dict[Lane, list[Job]]:
            now = self._clock()
            return {
                lane: self._store.due(now, n, lane=lane, after=self._after[lane], known=known)
                for lane, n in room.items()
                if n > 0
            }

        due = await asyncio.get_running_loop().run_in_executor(thread, read)
        self._more.clear()
        for lane, jobs in due.items():
            new = self._line.add(jobs)
            if new < len(jobs) or len(jobs) == room[lane]:  # for some there is no room yet
                self._more.add(lane)
            if jobs:
                self._after[lane] = jobs[-1].announcement.publisher
        self._stirred.set()

    def _is_hungry(self) -> bool:
        return any(self._line.waiting(lane) < HUNGRY for lane in self._more)

    # one job ----------------------------------------------------------------------------------

    async def _work(self, job: Job) -> None:
        outcome: Outcome
        try:
            outcome = await self._settle(job)
        except Resting as error:
            wait_s = error.wait_s * random.uniform(1, 1.25)  # noqa: S311 - jitter
            outcome = Delay(job.release_id, said(error), self._clock() + wait_s, tried=False)
        except CapdexError as error:
            outcome = later(job, said(error), self._clock())
        except Exception as error:  # noqa: BLE001 - ours: it costs one package a try, not the queue
            outcome = fault(job, error, self._clock())
        self._recorder.put(job, outcome)  # known until it is stored

    async def _settle(self, job: Job) -> Outcome:
        """Fetch and judge one release; a Delay says why that could not be done."""
        try:
            file, kept = await self._file(job)
        except InvalidInput as error:  # of the blocks themselves: no source has others
            verdict, why = Verdict.MISMATCH, said(error)
            rejected = RejectedPackage(job.announcement, verdict, Reason.NOT_A_FILE, why)
            return Finding(Judgement.of(rejected))
        finally:
            self._leave(job)
        self._unjudged += 1
        try:
            found = await self._verifier.judge(job.announcement, file.data)
        finally:
            self._unjudged -= 1
            self._stirred.set()
        if isinstance(found, Parked):
            return Delay(job.release_id, found.message, reason=found.reason)
        new = found.verdict is Verdict.VERIFIED and not kept
        return Finding(found, file.blocks if new else {})

    async def _file(self, job: Job) -> tuple[File, bool]:
        """The file of a job's CID, and whether it is kept here; equal ones are fetched once."""
        cid = Cid.parse(job.announcement.cid)
        shared = self._fetches.get(cid.text)
        if shared is None:
            shared = self._fetches[cid.text] = _Shared(partial(self._fetch, cid))
        loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
        try:
            async with asyncio.timeout(None) as patience:

                def asked() -> None:
                    timers.append(loop.call_later(SLOW_S, self._is_slow, job, patience))

                shared.join(waiter := _Waiter(asked, partial(self._leave_place, job)))
                try:
                    return await asyncio.shield(shared.task)
                finally:
                    shared.waiters.remove(waiter)
                    for timer in timers:
                        timer.cancel()
        except TimeoutError:
            why = f"too many others of {job.announcement.publisher} are slow, too"
            raise Unavailable(f"{cid} did not come at once", Code.TIMEOUT, why) from None
        finally:
            if not shared.waiters:
                shared.task.cancel()
                self._fetches.pop(cid.text, None)

    async def _fetch(self, cid: Cid, watcher: Watcher) -> tuple[File, bool]:
        if self._blocks.holds(cid):
            with suppress(Unavailable):  # it may be spoilt, or a part of it be missing
                return await self._kept.file(cid), True
        try:
            async with asyncio.timeout(FILE_S):
                return await self.sources.file(cid, watcher), False
        except TimeoutError:
            raise Unavailable(
                f"the blocks of {cid} did not come within {FILE_S:.0f} s", Code.TIMEOUT
            ) from None

    def _is_slow(self, job: Job, patience: asyncio.Timeout) -> None:
        """Let a job go on that keeps nobody waiting; of too many, one is given up."""
        self._leave_place(job)
        self._slow[job.release_id] = (job.announcement.publisher, patience)
        if len(self._slow) > MAX_SLOW:
            most, _ = Counter(publisher for publisher, _ in self._slow.values()).most_common(1)[0]
            oldest = next(key for key, (publisher, _) in self._slow.items() if publisher == most)
            self._slow.pop(oldest)[1].reschedule(0.0)

    def _leave(self, job: Job) -> None:
        self._slow.pop(job.release_id, None)
        self._leave_place(job)

    def _leave_place(self, job: Job) -> None:
        self._line.leave(job)
        self._stirred.set()

    def _forget(self, job: Job) -> None:
        self._line.forget(job)
        self._stirred.set()
