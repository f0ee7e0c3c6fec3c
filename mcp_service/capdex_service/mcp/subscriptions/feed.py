"""The changes of the index, followed once in a process and handed to every open stream.

A stream keeps at most one event of each URI: however much changes, and however slowly its client
reads, it takes no more memory, and no more than one notification a second of each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Final

import structlog
from mcp.shared.subscriptions import ResourceUpdated
from starlette.types import Scope

from capdex.errors import CapdexError, Code, Unavailable
from capdex.net.log_lines import RareLines
from capdex.net.tasks import end
from capdex_indexer.query.changes import NameChange, read_changes
from capdex_service.limits.streams import StreamPlaces
from capdex_service.mcp.subscriptions.interest import Interest
from capdex_service.queries.reader import LAST, Reader

MAX_STREAMS: Final = 512  # of a process; each holds a connection
MAX_STREAMS_PER_CLIENT: Final = 64  # many hosts can share an address
BATCH: Final = 1000  # changes read at once
MAX_MISSED: Final = 10_000  # changes that a returning client is told of one by one
PAUSE_S: Final = 1.0  # between two deliveries on a stream
RETRY_S: Final = 1.0  # after the database failed

log = structlog.get_logger(part="mcp")


class FeedFollower:
    """One stream: what it follows, and the events that are due.

    `taken` is the revision up to which all events were taken when it was last asked.
    """

    def __init__(self, feed: Feed, interest: Callable[[], Interest]) -> None:
        self._feed, self._interest = feed, interest
        self._due: dict[ResourceUpdated, None] = {}
        self._not_before = 0.0
        self._wake = asyncio.Event()
        self._ended = False
        self.taken = 0

    @property
    def revision(self) -> int:
        """The revision up to which all events were taken."""
        if not self._due:
            self.taken = self._feed.seen
        return self.taken

    def notice(self, names: Iterable[str]) -> None:
        """Note that answers about these names have changed."""
        for event in self._interest().events(names):
            self._due[event] = None
        if self._due:
            self._wake.set()

    def end(self) -> None:
        """End the stream."""
        self._ended = True
        self._wake.set()

    async def next(self) -> list[ResourceUpdated]:
        """Wait for events and return them; an empty list means that the stream is to end."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._wake.wait()
            if self._ended:
                return []
            if (now := clock()) >= self._not_before:
                ready, self._due = list(self._due), {}
                self._not_before = now + PAUSE_S
                self._wake.clear()
                return ready
            self._wake.clear()
            try:  # an event may go out then, if nothing new is due before
                async with asyncio.timeout(self._not_before - now):
                    await self._wake.wait()
            except TimeoutError:
                self._wake.set()


class Feed:
    """Follows the changes of a reader's index while there are streams; `close` ends them.

    `seen` is the revision up to which all changes were handed on.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._followers: set[FeedFollower] = set()
        self._places = StreamPlaces(MAX_STREAMS, MAX_STREAMS_PER_CLIENT)
        self.seen = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._lines = RareLines()

    @asynccontextmanager
    async def follow(
        self,
        interest: Callable[[], Interest],
        scope: Scope | None = None,
        *,
        since: int | None = None,
    ) -> AsyncIterator[FeedFollower]:
        """Open a stream for the client of `scope`, or of the one connection.

        `interest` is asked at each change; `since` is the revision that the client has seen, if it
        was here before. Raises Unavailable RATE_LIMITED if it, or all clients, have too many.
        """
        if self._closed:
            raise Unavailable("this node is stopping", Code.TIMEOUT, fix="ask another node")
        with self._places.take(scope or {}):
            follower = FeedFollower(self, interest)
            self._followers.add(follower)
            try:
                await self._start(follower, since)
                yield follower
            finally:
                self._followers.discard(follower)
                if not self._followers and self._task is not None:
                    task, self._task = self._task, None
                    await end([task])

    def close(self) -> None:
        """End all streams, and refuse new ones."""
        self._closed = True
        for follower in self._followers:
            follower.end()

    def tell(self, names: Collection[str]) -> None:
        """Tell all streams that answers about these names have changed."""
        for follower in self._followers:
            follower.notice(names)

    async def _start(self, follower: FeedFollower, since: int | None) -> None:
        now = (await self.reader.moment()).revision
        if self._task is None:
            self.seen = now
            self._task = asyncio.create_task(self._run())
        follower.taken = self.seen if since is None else min(since, self.seen)
        if since is not None:
            async for changes in self._changes(since, now, MAX_MISSED):
                follower.notice(change.name for change in changes)

    async def _run(self) -> None:
        while True:
            try:
                moment = await self.reader.wait(self.seen)
                if moment.revision < self.seen:  # of another index: each answer may be another
                    self.seen = 0
                async for changes in self._changes(self.seen, moment.revision):
                    self.tell([change.name for change in changes])
                    self.seen = max(self.seen, changes[-1].revision - 1)
                self.seen = max(self.seen, moment.revision)
            except (CapdexError, OSError) as error:
                if self._lines.due("changes"):
                    log.warning("changes cannot be followed now", why=str(error))
                await asyncio.sleep(RETRY_S)

    async def _changes(
        self, since: int, upto: int, most: int | None = None
    ) -> AsyncIterator[list[NameChange]]:
        """Iterate over the changes after a revision, in batches.

        `upto` is the revision of the reader's moment: a client that is told of a later change, and
        asks at once, could be given the answer from before it.
        """
        after, count = (since, LAST), BATCH
        while count == BATCH and (most is None or most > 0):
            batch = await self.reader.read(read_changes, after, BATCH)
            changes = [change for change in batch if change.revision <= upto]
            if count := len(changes):
                yield changes
                after = (changes[-1].revision, changes[-1].name)
            most = None if most is None else most - count
