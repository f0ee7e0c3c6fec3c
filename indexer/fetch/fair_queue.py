"""Jobs waiting their turn: by lanes, and within one the publisher who holds the fewest places."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import cycle
from typing import Final

from indexer.store.fetch_queue import Job, Lane

# Whose turn it is first; a lane that has nothing leaves its turn to the others in their order. So
# neither a backlog of retries nor newer rules delay a new release, and yet none waits for ever.
TURNS: Final = (Lane.NEW, Lane.NEW, Lane.NEW, Lane.RETRY, Lane.NEW, Lane.NEW, Lane.NEW, Lane.AGAIN)


class Line:
    """A queue in memory of what is due; a release stands in it once, until `forget`.

    Of one publisher at most `depth` jobs of a lane wait here; the rest waits in the store. Who
    announces a thousand CIDs that nobody has slows down only their own.
    """

    def __init__(self, *, depth: int) -> None:
        self._depth = depth
        # by lane and publisher; whose turn is next stands first
        self._waiting: dict[Lane, dict[str, deque[Job]]] = {lane: {} for lane in Lane}
        self._sizes: Counter[Lane] = Counter()
        self._places: Counter[str] = Counter()
        self._holders: dict[int, str] = {}
        self._turns = cycle(TURNS)
        self.known: set[int] = set()

    def waiting(self, lane: Lane) -> int:
        """How many jobs of a lane nobody has taken yet."""
        return self._sizes[lane]

    @property
    def places(self) -> int:
        """How many are held: by jobs taken that did not `leave`."""
        return len(self._holders)

    def add(self, jobs: Iterable[Job]) -> int:
        """Let jobs wait that do not yet, in their order; how many were new."""
        new = 0
        for job in jobs:
            if job.release_id in self.known:
                continue
            queue = self._waiting[job.lane].setdefault(job.announcement.publisher, deque())
            if len(queue) < self._depth:
                self.known.add(job.release_id)
                self._sizes[job.lane] += 1
                queue.append(job)
                new += 1
        return new

    def take(self) -> Job | None:
        """The job whose turn it is, with a place to hold; None when nobody waits."""
        lane = next(self._turns)
        if not self._sizes[lane]:
            found = next((other for other in Lane if self._sizes[other]), None)
            if found is None:
                return None
            lane = found
        queues = self._waiting[lane]
        publisher = min(queues, key=lambda one: self._places[one])  # the first of equals
        queue = queues.pop(publisher)
        job = queue.popleft()
        if queue:
            queues[publisher] = queue  # to the end of the line
        self._sizes[lane] -= 1
        self._places[publisher] += 1
        self._holders[job.release_id] = publisher
        return job

    def leave(self, job: Job) -> None:
        """Give back the place of a job, if it still has one."""
        publisher = self._holders.pop(job.release_id, None)
        if publisher is not None:
            self._places[publisher] -= 1
            if not self._places[publisher]:
                del self._places[publisher]

    def forget(self, job: Job) -> None:
        """Let the release of a job come again, should the store still have it due."""
        self.leave(job)
        self.known.discard(job.release_id)
