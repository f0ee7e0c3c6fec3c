"""Fetch the files that verified packages name (P10c), for a node that keeps some of them.

It has its own places and its own health of the sources, so that no file delays a package. No
verdict depends on a file.

| case | behaviour |
|---|---|
| one publisher names many files | publishers take turns, as packages do (`fair_queue`) |
| files do not come | a turn of a package ends after MISSES of them, or TURN_S; MAX_TRIES turns |
| a file is another one than named, or no file of its size | not kept, and not requested again |
| the disk does not take a file, the database is away | the turn ends, and counts |
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from capdex.errors import CapdexError, InvalidInput, Unavailable, VerificationFailure
from capdex.ipld.cid import Cid
from capdex.manifest.resources import Resource, check_resource
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.multi_source import MultiSource
from capdex.net.ipfs.source import BlockSource
from capdex.package import VerifiedPackage, judge
from capdex.uri import CapabilityURI
from capdex_indexer.db.denylist import Denials
from capdex_indexer.fetch.fair_queue import FairQueue
from capdex_indexer.fetch.kept_files import KeptFiles
from capdex_indexer.fetch.result_writer import MAX_TRIES, delay_s
from capdex_indexer.store import Job, Lane, Store

log = structlog.get_logger(part="files")

PLACES: Final = 4  # packages whose files are fetched at once, one file each
FILE_S: Final = 30.0  # all blocks of one file
TURN_S: Final = 60.0  # files of one package, until another one has its place
MISSES: Final = 3  # files that did not come, after which a turn ends
CAPACITY: Final = 1024  # packages of a lane in memory
MAX_LATER: Final = 4096  # packages that wait for another turn
LOOK_S: Final = 2.0  # between two looks at denials, and at how many packages wait
SIGN: Final = b"resources"  # in every package that names files


@dataclass(slots=True)
class _Tried:
    """The turns that a package had, and its files that are not worth another request."""

    turns: int = 0
    wrong: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)  # in the last turn


class FileFetcher:
    """Fetches files of packages into `kept`; `add` takes a release that was just verified."""

    def __init__(
        self,
        store: Store,
        sources: Sequence[BlockSource],
        packages: BlockDirectory,
        kept: KeptFiles,
    ) -> None:
        self._store, self.kept = store, kept
        self._sources, self._packages = MultiSource(sources), MultiSource([packages])
        self._queue = FairQueue(capacity=CAPACITY)
        self._changed = asyncio.Event()
        self._tried: dict[int, _Tried] = {}  # by release
        self._later = 0

    @property
    def waiting(self) -> int:
        """The number of packages that have a turn now, or wait for one."""
        return self._queue.running + sum(map(self._queue.waiting, Lane)) + self._later

    def add(self, job: Job) -> None:
        """Queue the files of a verified release."""
        self._enqueue([replace(job, lane=Lane.NEW)])

    async def run(self) -> None:
        """Fetch until cancelled; a node without a budget removes what it kept before."""
        try:
            await asyncio.to_thread(self.kept.load)
        except CapdexError as error:
            log.warning("files not read", why=error.line)
            return
        if not self.kept.budget:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look())
            for _ in range(PLACES):
                tasks.create_task(self._work())

    async def _look(self) -> None:
        """Queue all releases verified before, a page at a time, and drop what is denied."""
        after: int | None = 0
        while True:
            try:
                denials = await asyncio.to_thread(self._store.denials)
                await asyncio.to_thread(
                    self.kept.drop,
                    lambda x: _denied(denials, x.name, Cid.parse(x.root), x.sha256),  # noqa: B023
                )
                if after is not None and self._queue.waiting(Lane.AGAIN) <= CAPACITY // 2:
                    page = await asyncio.to_thread(self._store.verified, after, CAPACITY // 2)
                    self._enqueue(page)
                    after = page[-1].release_id if page else None
            except CapdexError as error:
                log.warning("files not looked for", why=error.line)
            await asyncio.sleep(LOOK_S)

    def _enqueue(self, jobs: Sequence[Job]) -> None:
        self._queue.add(jobs)
        self._changed.set()

    async def _work(self) -> None:
        while True:
            while (job := self._queue.pop()) is None:
                self._changed.clear()
                await self._changed.wait()
            done = False
            tried = self._tried.setdefault(job.release_id, _Tried())
            try:
                async with asyncio.timeout(TURN_S):
                    done = await self._turn(job, tried)
            except (CapdexError, TimeoutError) as error:
                why = error.line if isinstance(error, CapdexError) else "it took too long"
                log.info("files later", cap_uri=job.announcement.cap_uri, why=why)
            except Exception as error:  # a fault of ours costs one package a turn
                log.error("files later", cap_uri=job.announcement.cap_uri, exc_info=error)
            self._queue.release(job)
            self._queue.discard(job)
            self._after(job, tried, done=done)

    def _after(self, job: Job, tried: _Tried, *, done: bool) -> None:
        tried.turns += 1
        if done or tried.turns >= MAX_TRIES or len(self._tried) > MAX_LATER:
            del self._tried[job.release_id]
            return
        self._later += 1
        lane = Lane.AGAIN if job.lane is Lane.AGAIN else Lane.RETRY
        loop, pause_s = asyncio.get_running_loop(), delay_s(tried.turns - 1)
        loop.call_later(pause_s, self._once_more, replace(job, lane=lane))

    def _once_more(self, job: Job) -> None:
        self._later -= 1
        self._enqueue([job])

    async def _turn(self, job: Job, tried: _Tried) -> bool:
        """Fetch files of one package; True if there is nothing left to request."""
        package = await self._package(job)
        if package is None:
            return True
        denials = await asyncio.to_thread(self._store.denials)
        said, name = job.announcement, CapabilityURI.parse(job.announcement.cap_uri).name
        files = package.manifest.resources
        if sum(x.size for x in files) > self.kept.budget or denials.of_release(
            name, said.cid, said.sha256
        ):
            return True
        order = sorted(files, key=lambda x: x.path in tried.absent)  # in the last turn
        tried.absent.clear()
        for file in order:
            refused = file.path in tried.wrong or _denied(denials, name, file.cid, file.sha256)
            if not refused and not await self._keep(job, name, file, tried):
                tried.absent.add(file.path)
                if len(tried.absent) >= MISSES:
                    break
        return not tried.absent

    async def _keep(self, job: Job, name: str, file: Resource, tried: _Tried) -> bool:
        """Fetch, check and keep a file; False if it did not come."""
        is_new = job.lane is not Lane.AGAIN  # what was there before drives nothing out
        fits = is_new or self.kept.bytes + file.size <= self.kept.budget
        if self.kept.holds(file.cid) or not fits:
            return True
        try:
            async with asyncio.timeout(FILE_S):
                content = await self._sources.file(file.cid, file.size)
            check_resource(file, content.data)
        except (Unavailable, TimeoutError):
            return False
        except (InvalidInput, VerificationFailure) as error:
            log.warning("another file", cap_uri=job.announcement.cap_uri, why=error.line)
            tried.wrong.add(file.path)
            return True
        if not content.blocks:  # they are much larger than the file
            tried.wrong.add(file.path)
            return True
        owner = job.announcement.publisher
        await asyncio.to_thread(self.kept.keep, owner, name, file, content.blocks, evict=is_new)
        return True

    async def _package(self, job: Job) -> VerifiedPackage | None:
        """Return a package from the blocks kept, if it names files."""
        data = (await self._packages.file(Cid.parse(job.announcement.cid))).data
        if SIGN not in data:
            return None
        judged = await asyncio.to_thread(judge, job.announcement, data)
        return judged if isinstance(judged, VerifiedPackage) else None


def _denied(denials: Denials, name: str, root: Cid, sha256: bytes) -> bool:
    return name in denials.by_name or bool(denials.by_digest.keys() & {root.digest, sha256})
