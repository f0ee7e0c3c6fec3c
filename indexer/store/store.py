"""The store: the one writer of the index. Rows and cursor change in one transaction.

A crash repeats work, never skips or doubles it. Every method is synchronous and may be called from
any thread; asynchronous callers use `asyncio.to_thread`. All raise Unavailable when the database is
locked or away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from filelock import FileLock
from sqlalchemy import Connection, Engine, update

from capdex.package import RULES_VERSION
from capdex.problems import Reason, Verdict
from capdex.registry.events import LogHead
from indexer.db.engine import bound_idleness, open_writer, transaction
from indexer.db.heartbeat import Beat, write_beat
from indexer.db.models import DECODER_VERSION, REGISTRY, VOTES, DeploymentRow, table
from indexer.projection.block_range import BlockRef, Blocks
from indexer.projection.package_rows import Report
from indexer.store import (
    cursor as place,
)
from indexer.store import (
    deployment as deployments,
)
from indexer.store import (
    events as journal,
)
from indexer.store import (
    fetch_queue as judgements,
)
from indexer.store import (
    listing,
)
from indexer.store.cursor import RING_BLOCKS, Cursor
from indexer.store.deployment import Deployment
from indexer.store.fetch_queue import Delay, Job, Lane
from indexer.store.haste import hasten
from indexer.store.operator import read_accepted

__all__ = ["RING_BLOCKS", "Cursor", "Delay", "Deployment", "Job", "Lane", "Store"]

DEPLOYMENT = table(DeploymentRow)


class Store:
    """The writer of one index; made by `open`. `deployment` is the contract that it is of."""

    def __init__(
        self,
        engine: Engine,
        lock: FileLock | None,
        deployment: Deployment,
        serve: frozenset[Verdict],
        clock: Callable[[], float],
        turn: Lock | None = None,
        deployment_id: int = REGISTRY,
    ) -> None:
        self._engine, self._file_lock, self._clock = engine, lock, clock
        self.deployment, self._serve = deployment, serve
        self._turn, self._id = turn or Lock(), deployment_id

    @classmethod
    def open(
        cls,
        url: str,
        deployment: Deployment,
        *,
        sought: bool = False,
        serve: frozenset[Verdict] = frozenset({Verdict.VERIFIED}),
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open the database at `url` for writing, bring it up to date, check whose it is.

        `sought` says that the first block was looked for: where the index began at another one, it
        goes on with that. `serve` are the verdicts that search lists. Raises Unavailable
        DATABASE_LOCKED when there is another writer, UsageError FOREIGN_DATABASE when it indexes
        another registry.
        """
        engine, lock = open_writer(url)
        store = cls(engine, lock, deployment, serve, clock)
        try:
            with store._write() as connection:
                store._prepare(connection, sought)
            bound_idleness(engine)
        except BaseException:
            store.close()
            raise
        return store

    def beside(self, votes: Deployment) -> Store:
        """The log of the votes contract, in the same database and over the same connection.

        It has a cursor and a ring of its own, so that either may be ahead. What was read of another
        votes contract before is forgotten.
        """
        log = Store(
            self._engine,
            None,
            votes,
            self._serve,
            self._clock,
            turn=self._turn,
            deployment_id=VOTES,
        )
        with self._write() as connection:
            deployments.adopt(connection, VOTES, votes)
        return log

    def close(self) -> None:
        """Let go of the database and of the writer's lock."""
        with self._turn:
            self._engine.dispose()
            if self._file_lock is not None:
                self._file_lock.release()

    def cursor(self) -> Cursor | None:
        """How far the chain is applied; None before the first step."""
        with self._read() as connection:
            return place.read_cursor(connection, self._id)

    def ring(self) -> list[BlockRef]:
        """The newest applied blocks, lowest first: where the reader looks for a fork."""
        with self._read() as connection:
            return place.read_ring(connection, self._id)

    def append(self, step: Blocks, heads: Sequence[LogHead]) -> None:
        """Apply one step: its events, releases, flags and blocks, and the cursor.

        `heads` has the log slot after each log of the step, in order. A step already applied is
        left alone; raises Unavailable STALLED when the step does not follow the cursor.
        """
        with self._write() as connection:
            before = place.read_cursor(connection, self._id)
            if before is not None and before.block == step.upto:
                return
            place.check_step(before, step, heads)
            names = journal.apply(
                connection,
                self._id,
                step.drafts,
                heads,
                times=step.times,
                chain_id=self.deployment.chain_id,
                now=self._clock(),
            )
            listing.refresh(connection, names, self._serve)
            log = before.log if before else LogHead()
            place.advance(connection, self._id, step, heads[-1] if heads else log)

    def rollback(self, fork: BlockRef) -> None:
        """Forget everything above `fork`: what is left is as if it had never been applied.

        Raises Unavailable STALLED when `fork` is no block of the chain applied here.
        """
        with self._write() as connection:
            before = place.read_cursor(connection, self._id)
            if before is None or before.block == fork:
                return
            # Below its first block nothing was read, and the genesis of a development chain does
            # not last: what stands there says where, not what.
            lowest = max(self.deployment.start_block, 0 if any(self.deployment.genesis) else 1)
            if fork.number >= lowest:
                place.check_fork(connection, self._id, before, fork)
            log, names = journal.undo(connection, self._id, above=fork.number)
            listing.refresh(connection, names, self._serve)
            place.retreat(connection, self._id, fork, log)

    def beat(self, beat: Beat) -> None:
        """Tell the processes that only read how the writer is.

        Raises SessionLost when this is no longer the writer.
        """
        with self._read() as connection:
            write_beat(connection, beat)

    def accepted(self) -> bytes | None:
        """The hash of the block that an operator has accepted, the newest if there are several."""
        with self._read() as connection:
            return read_accepted(connection)

    def due(
        self,
        now: float,
        limit: int,
        *,
        lane: Lane | None = None,
        after: str = "",
        known: Collection[int] = (),
    ) -> list[Job]:
        """The releases to fetch now, of all lanes or of one; see `judgements.read_due`."""
        with self._read() as connection:
            chain_id = self.deployment.chain_id
            return judgements.read_due(
                connection, chain_id, now, limit, lane=lane, after=after, known=known
            )

    def record(self, release_id: int, report: Report) -> bool:
        """Store what judging a release found; False when it was rolled back meanwhile."""
        return self.record_many([(release_id, report)])[0]

    def record_many(self, reports: Sequence[tuple[int, Report]]) -> list[bool]:
        """`record` for several releases in one transaction."""
        with self._write() as connection:
            alive = judgements.write_judgements(connection, dict(reports))
            listing.refresh(connection, filter(None, alive.values()), self._serve)
            return [release_id in alive for release_id, _ in reports]

    def hasten(self, latest_s: Callable[[int], float]) -> None:
        """Make due what cannot have been put off so far by a clock that was right.

        `latest_s` gives the longest delay after a number of tries.
        """
        with self._write() as connection:
            hasten(connection, self._clock(), latest_s)

    def retry_later(self, release_id: int, error: str, at: float) -> None:
        """Fetch a release again at `at` (seconds since the epoch), remembering why it failed."""
        with self._write() as connection:
            judgements.postpone(connection, release_id, error, due_at=at)

    def park(self, release_id: int, reason: Reason, error: str) -> None:
        """Stop trying to judge a release until `rearm`; it keeps no verdict (P6)."""
        with self._write() as connection:
            judgements.park(connection, release_id, reason, error)

    def delay_many(self, delays: Sequence[Delay]) -> None:
        """`retry_later` and `park` for several releases in one transaction."""
        with self._write() as connection:
            judgements.write_delays(connection, delays)

    def rearm(self, name: str | None = None) -> int:
        """Queue parked releases (of one name, or all) again from their first try; how many."""
        with self._write() as connection:
            return judgements.rearm(connection, name)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._turn, transaction(self._engine) as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._read() as connection:
            yield connection
            connection.execute(update(DEPLOYMENT).values(revision=DEPLOYMENT.c.revision + 1))

    def _prepare(self, connection: Connection, sought: bool) -> None:
        from indexer.db.migrations import migrate  # alembic takes a while; readers never need it

        migrate(connection)
        rules = listing.listing_rules(self._serve)
        if sought:
            self.deployment = deployments.begun(connection, self.deployment)
        row = deployments.check(connection, self.deployment, rules)
        if row is None:
            return
        if row["decoder_version"] < DECODER_VERSION:
            names = journal.decode_again(connection, self.deployment, self._clock())
            listing.refresh(connection, names, self._serve)
        if row["rules_version"] < RULES_VERSION:
            judgements.judge_again(connection, self._clock())
        if row["listing_rules"] != rules:
            listing.rebuild(connection, self._serve)
        deployments.bring_up_to_date(connection, rules_version=RULES_VERSION, listing_rules=rules)
