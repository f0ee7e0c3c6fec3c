"""Jobs waiting their turn: one publisher after another, and no publisher holding every place."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable

from indexer.store import Job


class Line:
    """A queue in memory of what is due; a release stands in it once, until `done`.

    At most `places` jobs of one publisher are worked at a time, and `depth` of them wait: somebody
    who announces a thousand CIDs that nobody has slows down only their own.
    """

    def __init__(self, *, places: int, depth: int) -> None:
        self._places, self._depth = places, depth
        self._waiting: dict[str, deque[Job]] = {}  # by publisher; whose turn is next stands first
        self._working: Counter[str] = Counter()
        self._known: set[int] = set()
        self._changed = asyncio.Condition()
        self.hungry = asyncio.Event()  # somebody looked for a job and found none

    def __len__(self) -> int:
        return len(self._known)

    async def add(self, jobs: Iterable[Job]) -> int:
        """Let jobs wait that do not yet, in their order; how many were new."""
        new = 0
        async with self._changed:
            self.hungry.clear()
            for job in jobs:
                queue = self._waiting.setdefault(job.announcement.publisher, deque())
                if job.release_id not in self._known and len(queue) < self._depth:
                    self._known.add(job.release_id)
                    queue.append(job)
                    new += 1
            self._changed.notify_all()
        return new

    async def take(self) -> Job:
        """The job whose turn it is; waits for one."""
        async with self._changed:
            while (job := self._next()) is None:
                self.hungry.set()
                await self._changed.wait()
            return job

    async def leave(self, job: Job) -> None:
        """Give back the place of a job; its release does not come again until `forget`."""
        publisher = job.announcement.publisher
        async with self._changed:
            self._working[publisher] -= 1
            if not self._working[publisher]:
                del self._working[publisher]
            self._changed.notify_all()

    def forget(self, jobs: Iterable[Job]) -> None:
        """Let the releases of these jobs come again, should the store still have them due."""
        self._known.difference_update(job.release_id for job in jobs)

    async def done(self, job: Job) -> None:
        """Give back the place of a job, and let its release come again."""
        self.forget([job])
        await self.leave(job)

    def _next(self) -> Job | None:
        for publisher, queue in list(self._waiting.items()):
            if not queue:
                del self._waiting[publisher]
            elif self._working[publisher] < self._places:
                del self._waiting[publisher]  # to the end of the line
                self._waiting[publisher] = queue
                self._working[publisher] += 1
                return queue.popleft()
        return None
