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
from capdex.problems import Verdict
from capdex.registry.block import BlockRef
from capdex.registry.events import LogHead
from indexer.db.engine import bound_idleness, open_writer, transaction
from indexer.db.heartbeat import Heartbeat, write_heartbeat
from indexer.db.models import REGISTRY, VOTES, DeploymentRow, table
from indexer.projection.block_range import BlockRange
from indexer.projection.package_rows import Judgement
from indexer.store import cursor as cursors
from indexer.store import deployment as deployments
from indexer.store import events, fetch_queue, listing
from indexer.store.cursor import Cursor
from indexer.store.deployment import Deployment
from indexer.store.fetch_queue import Delay, Job, Lane
from indexer.store.operator import read_accepted

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
            return cursors.read_cursor(connection, self._id)

    def ring(self) -> list[BlockRef]:
        """The newest applied blocks, lowest first: where the reader looks for a fork."""
        with self._read() as connection:
            return cursors.read_ring(connection, self._id)

    def append(self, step: BlockRange, heads: Sequence[LogHead]) -> None:
        """Apply one step: its events, releases, flags and blocks, and the cursor.

        `heads` has the log head after each log of the step, in order. A step already applied is
        left alone; raises Unavailable STALLED when the step does not follow the cursor.
        """
        with self._write() as connection:
            before = cursors.read_cursor(connection, self._id)
            if before is not None and before.block == step.upto:
                return
            cursors.check_step(before, step, heads)
            names = events.apply(
                connection,
                self._id,
                step.log_rows,
                heads,
                times=step.times,
                chain_id=self.deployment.chain_id,
                now=self._clock(),
            )
            listing.refresh(connection, names, self._serve)
            log = before.log_head if before else LogHead()
            cursors.advance(connection, self._id, step, heads[-1] if heads else log)

    def rollback(self, fork: BlockRef) -> None:
        """Forget everything above `fork`: what is left is as if it had never been applied.

        Raises Unavailable STALLED when `fork` is no block of the chain applied here.
        """
        with self._write() as connection:
            before = cursors.read_cursor(connection, self._id)
            if before is None or before.block == fork:
                return
            # Below its first block nothing was read, and the genesis of a development chain does
            # not last: what stands there says where, not what.
            lowest = max(self.deployment.start_block, 0 if any(self.deployment.genesis) else 1)
            if fork.number >= lowest:
                cursors.check_fork(connection, self._id, before, fork)
            log, names = events.undo(connection, self._id, above=fork.number)
            listing.refresh(connection, names, self._serve)
            cursors.retreat(connection, self._id, fork, log)

    def beat(self, beat: Heartbeat) -> None:
        """Tell the processes that only read how the writer is.

        Raises SessionLost when this is no longer the writer.
        """
        with self._read() as connection:
            write_heartbeat(connection, beat)

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
        """The releases to fetch now, of all lanes or of one; see `fetch_queue.read_due`."""
        with self._read() as connection:
            chain_id = self.deployment.chain_id
            return fetch_queue.read_due(
                connection, chain_id, now, limit, lane=lane, after=after, known=known
            )

    def record_many(self, judgements: Sequence[tuple[int, Judgement]]) -> list[bool]:
        """Store verdicts in one transaction; False for a release that was rolled back meanwhile."""
        with self._write() as connection:
            alive = fetch_queue.write_judgements(connection, dict(judgements))
            listing.refresh(connection, filter(None, alive.values()), self._serve)
            return [release_id in alive for release_id, _ in judgements]

    def reset_skewed_delays(self) -> None:
        """Make due at once what a wrong clock has put off; to be called after a clock change."""
        with self._write() as connection:
            fetch_queue.reset_skewed_delays(connection, self._clock())

    def delay_many(self, delays: Sequence[Delay]) -> None:
        """Postpone or park releases that could not be judged, in one transaction."""
        with self._write() as connection:
            fetch_queue.write_delays(connection, delays)

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
        if row["rules_version"] < RULES_VERSION:
            fetch_queue.judge_again(connection, self._clock())
        if row["listing_rules"] != rules:
            listing.rebuild(connection, self._serve)
        deployments.bring_up_to_date(connection, rules_version=RULES_VERSION, listing_rules=rules)
