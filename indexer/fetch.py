"""From announced to judged: a durable queue, worked by a few tasks.

The queue is the store's: a crash repeats work and never skips it. One slow CID holds one place, not
the head of the chain; absence is never final, only parked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import structlog

from capdex.cid import Cid
from capdex.errors import CapdexError, Unavailable
from capdex.net.blocks import BlockDirectory
from capdex.net.ipfs import Source, fetch
from capdex.package import RejectedPackage, VerifiedPackage
from capdex.problems import Reason
from indexer.line import Line
from indexer.store import Job, Store
from indexer.verifier import Parked, Verifier

log = structlog.get_logger(part="fetch")

WORKERS: Final = 32  # a local gateway is as fast with 4; one 50 ms away needs them
PER_PUBLISHER: Final = 16  # of the workers: whoever announces dead CIDs leaves the others half
AHEAD: Final = 256  # jobs taken from the store at once
LOOK_S: Final = 1.0  # how often the queue is looked at for retries that fell due
MAX_TRIES: Final = 20
# A fresh CID often arrives seconds later; one that does not may take its pinning service a day.
FIRST_DELAYS_S: Final = (1.0, 5.0, 15.0)
DELAY_S: Final = 60.0
MAX_DELAY_S: Final = 24 * 3600.0

Judged = VerifiedPackage | RejectedPackage


def delay_s(attempts: int) -> float:
    """How long to wait after that many failed tries and one more, before jitter."""
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
        self._line = Line(places=PER_PUBLISHER, depth=AHEAD)
        self._fetches: dict[str, asyncio.Task[bytes]] = {}
        self._judged: asyncio.Queue[tuple[int, Judged, asyncio.Future[bool]]] = asyncio.Queue()

    async def run(self) -> None:
        """Work the queue for ever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._fill())
                tasks.create_task(self._record())
                for _ in range(WORKERS):
                    tasks.create_task(self._work())
        finally:
            running = list(self._fetches.values())
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _fill(self) -> None:
        """Keep the line full of what is due."""
        while True:
            self._committed.clear()
            new = 0
            try:
                limit = AHEAD + len(self._line)
                due = await asyncio.to_thread(self._store.due, self._clock(), limit)
                new = await self._line.add(due)
            except Unavailable as error:
                log.warning("queue unreadable", why=error.message)
            if not new:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._committed.wait()
            await self._line.hungry.wait()

    async def _work(self) -> None:
        while True:
            job = await self._line.take()
            try:
                await self._settle(job)
            finally:
                await self._line.done(job)

    async def _settle(self, job: Job) -> None:
        """Fetch, judge and store one release; whatever goes wrong, its row says so."""
        uri = job.announcement.cap_uri
        try:
            data = await self._bytes(Cid.parse(job.announcement.cid))
            judged = await self._verifier.judge(job.announcement, data)
            if isinstance(judged, Parked):
                await self._park(job, judged.reason, judged.message)
                return
            if isinstance(judged, VerifiedPackage):
                await self._blocks.put(data)
            stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._judged.put_nowait((job.release_id, judged, stored))
            if not await stored:
                return  # its block was undone meanwhile
            if isinstance(judged, RejectedPackage):
                reason = str(judged.reason)
                log.warning("rejected", cap_uri=uri, reason=reason, why=judged.message)
            else:
                log.info("verified", cap_uri=uri)
        except CapdexError as error:
            await self._try_later(job, f"{error.message}: {error.why}".removesuffix(": "))
        except Exception as error:  # a fault of ours costs one package a try, not the queue
            log.exception("not judged", cap_uri=uri)
            await self._try_later(job, f"a fault of this node: {type(error).__name__}")

    async def _bytes(self, cid: Cid) -> bytes:
        """The block of a CID; equal ones are fetched once."""
        running = self._fetches.get(cid.text)
        if running is None:
            running = asyncio.create_task(fetch(cid, self._sources))
            running.add_done_callback(lambda _: self._fetches.pop(cid.text, None))
            self._fetches[cid.text] = running
        return await asyncio.shield(running)

    async def _record(self) -> None:
        """Store verdicts, as many in one transaction as have come meanwhile."""
        while True:
            batch = [await self._judged.get()]
            while not self._judged.empty():
                batch.append(self._judged.get_nowait())
            try:
                stored = await self._write(batch)
            except Exception:  # noqa: BLE001 - which of them it was shows one by one
                stored = []
                for one in batch:
                    try:
                        stored += await self._write([one])
                    except Exception as error:  # noqa: BLE001 - handed to whoever waits for it
                        stored.append(error)
            for (_, _, waiting), outcome in zip(batch, stored, strict=True):
                if waiting.cancelled():
                    continue
                if isinstance(outcome, Exception):
                    waiting.set_exception(outcome)
                else:
                    waiting.set_result(outcome)

    async def _write(
        self, batch: Sequence[tuple[int, Judged, asyncio.Future[bool]]]
    ) -> list[bool | Exception]:
        rows = [(release_id, judged) for release_id, judged, _ in batch]
        return [*await asyncio.to_thread(self._store.record_many, rows)]

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
