"""Fair queue in memory: lanes by weighted turns, then the publisher with the fewest fetches.

New releases get six turns of eight, retries and re-judged releases one each, so that no backlog
delays a new release and none waits without end.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import cycle
from typing import Final

from capdex_indexer.store import Job, Lane

# A lane without jobs leaves its turn to the others, in their order.
TURNS: Final = (Lane.NEW, Lane.NEW, Lane.NEW, Lane.RETRY, Lane.NEW, Lane.NEW, Lane.NEW, Lane.AGAIN)


class FairQueue:
    """Jobs read ahead of the store, at most `capacity` a lane; each release is in it once.

    In a full lane a job takes the place of the newest one of the publisher with the most jobs,
    which stays due in the store: a flood of one publisher keeps no other out.
    """

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        # by lane and publisher; the publisher whose turn is next comes first
        self._waiting: dict[Lane, dict[str, deque[Job]]] = {lane: {} for lane in Lane}
        self._sizes: Counter[Lane] = Counter()
        self._running: Counter[str] = Counter()  # by publisher
        self.running = 0  # jobs that were popped and not released
        self._turns = cycle(TURNS)
        self.known: set[int] = set()  # releases that wait here or were popped and not discarded

    def waiting(self, lane: Lane) -> int:
        """Return the number of jobs of a lane."""
        return self._sizes[lane]

    def add(self, jobs: Iterable[Job]) -> None:
        """Append the jobs that are not known yet."""
        for job in jobs:
            if job.release_id in self.known:
                continue
            queues, publisher = self._waiting[job.lane], job.announcement.publisher
            if self._sizes[job.lane] >= self._capacity and not self._evict(job.lane, publisher):
                continue
            queues.setdefault(publisher, deque()).append(job)
            self.known.add(job.release_id)
            self._sizes[job.lane] += 1

    def pop(self) -> Job | None:
        """Take the next job, which counts as running until it is released; None if none waits."""
        lane = next(self._turns)
        if not self._sizes[lane]:
            filled = next((other for other in Lane if self._sizes[other]), None)
            if filled is None:
                return None
            lane = filled
        queues = self._waiting[lane]
        publisher = min(queues, key=lambda x: self._running[x])  # the first of equals
        queue = queues.pop(publisher)
        job = queue.popleft()
        if queue:
            queues[publisher] = queue  # behind the others
        self._sizes[lane] -= 1
        self._running[publisher] += 1
        self.running += 1
        return job

    def release(self, job: Job) -> None:
        """Count a popped job as running no longer."""
        publisher = job.announcement.publisher
        self.running -= 1
        self._running[publisher] -= 1
        if not self._running[publisher]:
            del self._running[publisher]

    def discard(self, job: Job) -> None:
        """Forget the release of a job, so that it is added again if the store still has it due."""
        self.known.discard(job.release_id)

    def _evict(self, lane: Lane, publisher: str) -> bool:
        """Drop the newest job of the publisher with the most, if it has two more than this one."""
        queues = self._waiting[lane]
        largest = max(queues.values(), key=len)
        if len(largest) < len(queues.get(publisher, ())) + 2:
            return False
        self.known.discard(largest.pop().release_id)
        self._sizes[lane] -= 1
        return True
