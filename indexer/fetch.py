"""From announced to judged: a durable queue, worked by a few tasks.

The queue is the store's: a crash repeats work and never skips it. One slow CID holds one place, not
the head of the chain; absence is never final, only parked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from capdex.cid import Cid
from capdex.errors import CapdexError, Unavailable
from capdex.net.blocks import BlockDirectory
from capdex.net.ipfs import Source, fetch
from capdex.package import RejectedPackage, VerifiedPackage
from capdex.problems import Reason
from indexer.store import Job, Store
from indexer.verifier import Parked, Verifier

log = structlog.get_logger(part="fetch")

WORKERS: Final = 16
AHEAD: Final = 256  # jobs taken from the store at once
LOOK_S: Final = 1.0  # how often the queue is looked at for retries that fell due
MAX_TRIES: Final = 20
# A fresh CID often arrives seconds later; one that does not may take its pinning service a day.
FIRST_DELAYS_S: Final = (1.0, 5.0, 15.0)
DELAY_S: Final = 60.0
MAX_DELAY_S: Final = 24 * 3600.0


def delay_s(attempts: int) -> float:
    """How long to wait after that many failed tries, before jitter."""
    if attempts < len(FIRST_DELAYS_S):
        return FIRST_DELAYS_S[attempts]
    return float(min(DELAY_S * 2 ** (attempts - len(FIRST_DELAYS_S)), MAX_DELAY_S))


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
        self._sources = [blocks, *sources]
        self._committed, self._clock = committed, clock
        self._places = asyncio.Semaphore(WORKERS)
        self._taken: set[int] = set()  # releases in work, or judged and not yet stored
        self._tasks: set[asyncio.Task[None]] = set()
        self._fetches: dict[str, asyncio.Task[bytes]] = {}
        self._judged: list[tuple[int, VerifiedPackage | RejectedPackage]] = []
        self._recordable = asyncio.Event()

    async def run(self) -> None:
        """Work the queue for ever."""
        recorder = asyncio.create_task(self._record())
        try:
            while True:
                if not await self._start_some():
                    await self._wait()
        finally:
            tasks = [recorder, *self._tasks, *self._fetches.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _start_some(self) -> bool:
        """Take what is due and work it off; False when nothing was due."""
        self._committed.clear()
        limit = AHEAD + len(self._taken)
        try:
            due = await asyncio.to_thread(self._store.due, self._clock(), limit)
        except Unavailable as error:
            log.warning("queue unreadable", why=error.message)
            return False
        jobs = [job for job in due if job.release_id not in self._taken]
        for job in jobs:
            await self._places.acquire()
            self._taken.add(job.release_id)
            task = asyncio.create_task(self._work(job))
            self._tasks.add(task)
            task.add_done_callback(self._leave)
        return bool(jobs)

    def _leave(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._places.release()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._committed.wait()
        except TimeoutError:
            pass

    async def _work(self, job: Job) -> None:
        try:
            data = await self._bytes(Cid.parse(job.announcement.cid))
            judged = await self._verifier.judge(job.announcement, data)
            if isinstance(judged, VerifiedPackage):
                await self._blocks.put(data)
            if not isinstance(judged, Parked):
                self._judged.append((job.release_id, judged))
                self._recordable.set()
                return  # taken until it is stored
            await self._park(job, judged.reason, judged.message)
        except CapdexError as error:
            await self._try_later(job, f"{error.message}: {error.why}".removesuffix(": "))
        except Exception as error:  # a fault of ours costs one package a try, not the queue
            log.exception("not judged", cap_uri=job.announcement.cap_uri)
            await self._try_later(job, f"a fault of this node: {type(error).__name__}")
        self._taken.discard(job.release_id)

    async def _bytes(self, cid: Cid) -> bytes:
        """The block of a CID; equal ones are fetched once."""
        running = self._fetches.get(cid.text)
        if running is None:
            running = asyncio.create_task(fetch(cid, self._sources))
            running.add_done_callback(lambda _: self._fetches.pop(cid.text, None))
            self._fetches[cid.text] = running
        return await asyncio.shield(running)

    async def _try_later(self, job: Job, why: str) -> None:
        if job.attempts + 1 >= MAX_TRIES:
            await self._park(job, Reason.UNAVAILABLE, why)
            return
        pause_s = delay_s(job.attempts) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
        uri = job.announcement.cap_uri
        log.info("not had yet", cap_uri=uri, again_in_s=round(pause_s), why=why)
        await self._note(self._store.retry_later, job.release_id, why, self._clock() + pause_s)

    async def _park(self, job: Job, reason: Reason, why: str) -> None:
        log.warning("parked", cap_uri=job.announcement.cap_uri, reason=str(reason), why=why)
        await self._note(self._store.park, job.release_id, reason, why)

    async def _note(self, write: Callable[..., None], *arguments: object) -> None:
        try:
            await asyncio.to_thread(write, *arguments)
        except Unavailable as error:
            log.warning("queue not written", why=error.message)  # it is due again at once
            await asyncio.sleep(LOOK_S)

    async def _record(self) -> None:
        """Store verdicts, as many in one transaction as have come meanwhile."""
        while True:
            await self._recordable.wait()
            self._recordable.clear()
            batch, self._judged = self._judged, []
            if not batch:
                continue
            try:
                await asyncio.to_thread(self._store.record_many, batch)
            except Unavailable as error:
                # Still queued in the store: they are judged again.
                log.warning("verdicts not stored", why=error.message)
                await asyncio.sleep(LOOK_S)
                self._taken.difference_update(release_id for release_id, _ in batch)
                continue
            for release_id, judged in batch:
                if isinstance(judged, RejectedPackage):
                    log.warning(
                        "rejected",
                        cap_uri=judged.announcement.cap_uri,
                        reason=str(judged.reason),
                        why=judged.message,
                    )
                else:
                    log.info("verified", cap_uri=judged.announcement.cap_uri)
                self._taken.discard(release_id)
