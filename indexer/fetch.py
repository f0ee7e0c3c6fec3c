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
from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.net.blocks import BlockDirectory
from capdex.net.ipfs import Source, fetch_file
from capdex.package import RejectedPackage, VerifiedPackage
from capdex.problems import Reason, Verdict
from indexer.line import Line
from indexer.store import Job, Store
from indexer.verifier import Parked, Verifier

log = structlog.get_logger(part="fetch")

WORKERS: Final = 32  # a local gateway is as fast with 4; one 50 ms away needs them
PER_PUBLISHER: Final = 16  # of the workers: whoever announces dead CIDs leaves the others half
AHEAD: Final = 256  # jobs taken from the store at once
MAX_UNSTORED: Final = 256  # verdicts that wait for a transaction; each holds its package
LINGER_S: Final = 0.02
LOOK_S: Final = 1.0  # how often the queue is looked at for retries that fell due
FILE_S: Final = 120.0  # all blocks of one file; one alone may take half of that
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
        self._judged: asyncio.Queue[tuple[Job, Judged]] = asyncio.Queue(MAX_UNSTORED)

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
            judged = None
            try:
                judged = await self._settle(job)
            finally:
                if judged is None:
                    await self._line.done(job)
                else:
                    await self._line.leave(job)
            if judged is not None:
                await self._judged.put((job, judged))  # known until it is stored

    async def _settle(self, job: Job) -> Judged | None:
        """Fetch and judge one release; None when its row says why that could not be done."""
        try:
            try:
                data = await self._bytes(Cid.parse(job.announcement.cid))
            except InvalidInput as error:  # of the blocks themselves: no source has others
                why = f"{error.message}: {error.why}".removesuffix(": ")
                return RejectedPackage(job.announcement, Verdict.MISMATCH, Reason.NOT_A_FILE, why)
            judged = await self._verifier.judge(job.announcement, data)
            if isinstance(judged, Parked):
                await self._park(job, judged.reason, judged.message)
                return None
            if isinstance(judged, VerifiedPackage):
                await self._blocks.put(data)
        except CapdexError as error:
            await self._try_later(job, f"{error.message}: {error.why}".removesuffix(": "))
        except Exception as error:  # noqa: BLE001 - ours: it costs one package a try, not the queue
            await self._blame_us(job, error)
        else:
            return judged
        return None

    async def _blame_us(self, job: Job, error: Exception) -> None:
        log.error("not judged", cap_uri=job.announcement.cap_uri, exc_info=error)
        await self._try_later(job, f"a fault of this node: {type(error).__name__}")

    async def _bytes(self, cid: Cid) -> bytes:
        """The file of a CID; equal ones are fetched once."""
        running = self._fetches.get(cid.text)
        if running is None:
            running = asyncio.create_task(self._file(cid))
            running.add_done_callback(lambda _: self._fetches.pop(cid.text, None))
            self._fetches[cid.text] = running
        return await asyncio.shield(running)

    async def _file(self, cid: Cid) -> bytes:
        try:
            async with asyncio.timeout(FILE_S):
                return await fetch_file(cid, self._sources)
        except TimeoutError:
            raise Unavailable(
                f"the blocks of {cid} did not come within {FILE_S:.0f} s", Code.TIMEOUT
            ) from None

    async def _record(self) -> None:
        """Store verdicts, as many in one transaction as have come meanwhile."""
        while True:
            batch = [await self._judged.get()]
            if len(self._line) > len(batch):
                await asyncio.sleep(LINGER_S)  # in a backlog, fewer and larger transactions
            while not self._judged.empty():
                batch.append(self._judged.get_nowait())
            try:
                await self._write(batch)
            except Exception:  # noqa: BLE001 - which of them it was shows one by one
                for one in batch:
                    await self._write_one(one)
            self._line.forget(job for job, _ in batch)

    async def _write_one(self, one: tuple[Job, Judged]) -> None:
        job, _ = one
        try:
            await self._write([one])
        except CapdexError as error:
            await self._try_later(job, f"{error.message}: {error.why}".removesuffix(": "))
        except Exception as error:  # noqa: BLE001 - logged there
            await self._blame_us(job, error)

    async def _write(self, batch: Sequence[tuple[Job, Judged]]) -> None:
        rows = [(job.release_id, judged) for job, judged in batch]
        stored = await asyncio.to_thread(self._store.record_many, rows)
        for (job, judged), kept in zip(batch, stored, strict=True):
            uri = job.announcement.cap_uri
            if not kept:
                continue  # its block was undone meanwhile
            if isinstance(judged, RejectedPackage):
                reason = str(judged.reason)
                log.warning("rejected", cap_uri=uri, reason=reason, why=judged.message)
            else:
                log.info("verified", cap_uri=uri)

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
