"""The reader of an index: resolve a URI, search, list a name's releases, report the status.

An `Index` only reads; any number of them, in any number of processes and threads, can run beside
the one writer. Every answer is of one state of the index.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.problems import Verdict
from capdex.search.semantic import Encoder
from capdex.uri import CapabilityURI, check_name
from capdex_indexer.db.denylist import DenialCache, Denials
from capdex_indexer.db.engine import open_reader, transaction
from capdex_indexer.db.heartbeat import Heartbeat, read_heartbeat
from capdex_indexer.query import resolution
from capdex_indexer.query.changes import CommitWatch
from capdex_indexer.query.digest import DigestCache
from capdex_indexer.query.release import IndexedRelease, read_name
from capdex_indexer.query.search.filters import SearchFilters
from capdex_indexer.query.search.follower import SearchFollower
from capdex_indexer.query.search.live import LiveSearch
from capdex_indexer.query.search.page import SearchResult, find
from capdex_indexer.query.search.processes import Progress
from capdex_indexer.query.search.route import Route, route
from capdex_indexer.query.search.snapshots import Snapshots
from capdex_indexer.query.search.state import State
from capdex_indexer.query.status import (
    POSITION,
    IndexStatus,
    Position,
    read_position,
    read_status,
)

SERVED: Final = frozenset({Verdict.VERIFIED})
ANSWER_S: Final = 10.0


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Bound how long a client waits for an answer; raises Unavailable TIMEOUT."""
    try:
        async with asyncio.timeout(ANSWER_S):
            yield
    except TimeoutError:
        late = "the index did not answer in time"
        raise Unavailable(late, Code.TIMEOUT, fix="try again") from None


class Index:
    """A reader of the index at a database URL.

    `status` counts again only after a pause, `recount_pause` times as long as it last took. There
    is no pause after a status from before the first block: the node may be ready a moment later.
    """

    def __init__(
        self,
        database: str,
        *,
        clock: Callable[[], float] = time.time,
        recount_pause: float = 0.0,
    ) -> None:
        self._engine = open_reader(database)
        self._clock, self._recount_pause = clock, recount_pause
        self._recount_at = 0.0
        self._cached: tuple[int, float, IndexStatus] | None = None
        self.denial_cache, self.digest_cache = DenialCache(), DigestCache()
        self.live = LiveSearch(database)
        self._follower: SearchFollower | None = None

    def close(self) -> None:
        """Close the connections, and end what `follow` began."""
        if self._follower is not None:
            self._follower.close()
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction, which sees one state of the index."""
        with transaction(self._engine) as connection:
            yield connection

    def resolve(self, uri: CapabilityURI, *, serve: frozenset[Verdict] = SERVED) -> IndexedRelease:
        """Return the release that a URI means (P2): latest, exact or the highest in a range.

        Raises InvalidInput NOT_FOUND or YANKED, VerificationFailure UNVERIFIED, Unavailable
        PENDING (P16).
        """
        with self.read() as connection:
            return resolution.resolve(connection, uri, serve, self.denial_cache.read(connection))

    def watch(self) -> CommitWatch:
        """Return a watch of the writer's commits; the caller closes it."""
        return CommitWatch(self._engine)

    def follow(self, snapshots: Path | None = None, encoder: Encoder | None = None) -> None:
        """Keep the search up with the writer in a thread, and save it on disk, until `close`.

        For a process that answers many queries: none of them then waits for a commit's changes.
        With an encoder it searches by meaning, too, as far as documents have been encoded.
        """
        self.live.encoder = encoder
        kept = None if snapshots is None else Snapshots(snapshots)
        self._follower = SearchFollower(self.live, self.read, self.watch(), kept)
        self._follower.start()

    def rebuild_search(self, directory: Path, progress: Progress = lambda *_: None) -> State:
        """Build search and routes from the database; return them as they are saved in a directory.

        Readers that run already go on with theirs. Raises Unavailable DATABASE_LOCKED if one of
        them is the one that saves there.
        """
        with closing(Snapshots(directory)) as snapshots:
            if not snapshots.lock():
                raise Unavailable(
                    f"another process saves its search in {directory}",
                    Code.DATABASE_LOCKED,
                    why="a node that runs on this index follows it by itself",
                    fix="stop the node, rebuild, and start it again",
                )
            with self.read() as connection:
                state = LiveSearch(self.live.database).catch_up(connection, progress)
            snapshots.save(state)
        return state

    def find(
        self,
        query: str,
        filters: SearchFilters | None = None,
        *,
        limit: int = 20,
        cursor: str | None = None,
        facets: Sequence[str] = (),
        revision: int | None = None,
    ) -> SearchResult:
        """Find the listed releases with any word of `query`, best first; an exact name leads.

        An empty query lists names in order; `facets` are filters to count. The database is read
        only if the search is older than `revision` (default: the newest). Raises InvalidInput for
        a query that is too long, or an invalid filter, limit or cursor, and Unavailable PENDING
        while the first engine is being built.
        """
        return find(
            self._searched(revision),
            query,
            filters or SearchFilters(),
            encoder=self.live.encoder,
            limit=limit,
            cursor=cursor,
            facets=facets,
        )

    def route(self, message: str, *, limit: int = 10, revision: int | None = None) -> Route:
        """Return the packages that a message is for: by their triggers, ranked with a search.

        `revision` as in `find`. Raises InvalidInput for an invalid message or limit, and
        Unavailable PENDING while the first engine is being built.
        """
        return route(self._searched(revision), message, limit, self.live.encoder)

    def _searched(self, revision: int | None) -> State:
        state = self.live.state
        if state is None or revision is None or state.revision < revision:
            with self.read() as connection:
                state = self.live.at(connection)
        return state

    def releases(self, name: str) -> list[IndexedRelease]:
        """Return every release of a name whatever its verdict, highest version first.

        Denied ones have `denied` set and lack the texts of their author. The list is empty for an
        unknown name.
        """
        try:
            check_name(name)
        except InvalidInput:
            return []
        with self.read() as connection:
            denials = self.denial_cache.read(connection)
            return [x.redacted(denials) for x in read_name(connection, name)]

    def denials(self) -> Denials:
        """Return what the operator of this node refuses to serve."""
        with self.read() as connection:
            return self.denial_cache.read(connection)

    def heartbeat(self) -> tuple[Position, Heartbeat | None]:
        """Return the position of the index with the writer's newest heartbeat."""
        with self.read() as connection:
            return read_position(connection.execute(POSITION).one()), read_heartbeat(connection)

    def status(self) -> IndexStatus:
        """Return the whole status; it may be of a moment ago while counting is paused."""
        now = self._clock()
        with self.read() as connection:
            row = connection.execute(POSITION).one()
            cached = self._cached
            started = time.monotonic()
            if cached is None or (cached[0] != row.revision and started >= self._recount_at):
                status = read_status(connection, row, now, self.digest_cache.read(connection))
                took_s = time.monotonic() - started
                pause = self._recount_pause if status.index_digest else 0.0
                self._recount_at = started + took_s * (1 + pause)
                cached = self._cached = (row.revision, now, status)
        _, then, status = cached
        age = status.oldest_pending_s
        if age is None:
            return status
        return replace(status, oldest_pending_s=max(0.0, age + now - then))
