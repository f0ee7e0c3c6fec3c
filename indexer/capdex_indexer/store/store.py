"""The store, the one writer of the index: rows and cursor change in one transaction.

After a crash work is repeated, never skipped or doubled. Every method is synchronous and may be
called from any thread; asynchronous callers use `asyncio.to_thread`. All raise Unavailable if the
database is locked or unreachable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from filelock import FileLock
from sqlalchemy import Connection, Engine, update

from capdex.package import RULES_VERSION
from capdex.problems import Verdict
from capdex.registry.logs import BlockRef, LogHead
from capdex_indexer.db import denylist
from capdex_indexer.db.columns import Lane
from capdex_indexer.db.engine import bound_idleness, open_writer, transaction
from capdex_indexer.db.heartbeat import Heartbeat, write_heartbeat
from capdex_indexer.db.models import DEPLOYMENT, REGISTRY, VOTES
from capdex_indexer.db.revision import create_tables
from capdex_indexer.projection.block_range import BlockRange
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.store import changes, events, fetch_queue, listing
from capdex_indexer.store import cursor as cursors
from capdex_indexer.store import deployment as deployments
from capdex_indexer.store.cursor import Cursor
from capdex_indexer.store.deployment import Deployment
from capdex_indexer.store.fetch_queue import Delay, Job
from capdex_indexer.store.operator import read_accepted


class Store:
    """The writer of the index of one contract, `deployment`; made by `open`."""

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
        keep_start_block: bool = False,
        serve: frozenset[Verdict] = frozenset({Verdict.VERIFIED}),
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open the database at `url` for writing; check its registry and bring it up to date.

        With `keep_start_block` an existing index keeps its own start block, unless `deployment`
        names an earlier one. `serve` are the verdicts that search lists. Raises Unavailable
        DATABASE_LOCKED if there is another writer, UsageError FOREIGN_DATABASE if it indexes
        another registry.
        """
        engine, lock = open_writer(url)
        store = cls(engine, lock, deployment, serve, clock)
        try:
            with store._write() as connection:
                store._prepare(connection, keep_start_block)
            bound_idleness(engine)
        except BaseException:
            store.close()
            raise
        return store

    def locate(self, deployment: Deployment, *, keep_start_block: bool) -> None:
        """Store where the chain has the registry, now that an endpoint told it; as `open` does."""
        with self._write() as connection:
            self._check(connection, deployment, keep_start_block)

    def votes_store(self, votes: Deployment) -> Store:
        """Return the store of the votes contract, in the same database and on its connection.

        It has its own cursor and ring, so that either may be ahead. Events of another votes
        contract are deleted.
        """
        store = Store(self._engine, None, votes, self._serve, self._clock, self._turn, VOTES)
        with self._write() as connection:
            deployments.adopt(connection, VOTES, votes)
        return store

    def close(self) -> None:
        """Close the database and release the writer lease."""
        with self._turn:
            self._engine.dispose()
            if self._file_lock is not None:
                self._file_lock.release()

    def cursor(self) -> Cursor | None:
        """Return the cursor; None before the first step."""
        with self._read() as connection:
            return cursors.read_cursor(connection, self._id)

    def ring(self) -> list[BlockRef]:
        """Return the newest applied blocks, lowest first, among which the reader finds a fork."""
        with self._read() as connection:
            return cursors.read_ring(connection, self._id)

    def append(self, step: BlockRange, heads: Sequence[LogHead]) -> None:
        """Apply one step: write its events, releases, flags and blocks, move the cursor.

        `heads` are the log heads after each log of the step. A step already applied is ignored.
        Raises Unavailable STALLED if the step does not follow the cursor.
        """
        with self._write() as connection:
            before = cursors.read_cursor(connection, self._id)
            if before is not None and before.block == step.upto:
                return
            cursors.check_step(before, step, heads)
            changed, relisted = events.apply(
                connection,
                self._id,
                step.log_rows,
                heads,
                times=step.times,
                chain_id=self.deployment.chain_id,
                now=self._clock(),
            )
            listing.refresh(connection, relisted, self._serve)
            changes.mark(connection, changed)
            log = before.log_head if before else LogHead()
            cursors.advance(connection, self._id, step, heads[-1] if heads else log)

    def rollback(self, fork: BlockRef) -> None:
        """Delete everything above `fork`, as if it had never been applied.

        Raises Unavailable STALLED if `fork` is not a block of the applied chain.
        """
        with self._write() as connection:
            before = cursors.read_cursor(connection, self._id)
            if before is None or before.block == fork:
                return
            # Blocks below the first one were not read, and the genesis of a development chain does
            # not last: their hashes cannot be checked.
            lowest = max(self.deployment.start_block, 0 if any(self.deployment.genesis) else 1)
            if fork.number >= lowest:
                cursors.check_fork(connection, self._id, before, fork)
            log, changed, relisted = events.undo(connection, self._id, above=fork.number)
            listing.refresh(connection, relisted, self._serve)
            changes.mark(connection, changed)
            cursors.retreat(connection, self._id, fork, log)

    def beat(self, beat: Heartbeat) -> None:
        """Write the heartbeat for readers; raise SessionLost if this is no longer the writer."""
        with self._read() as connection:
            write_heartbeat(connection, beat)

    def accepted(self) -> bytes | None:
        """Return the hash of the block that an operator accepted last, or None."""
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
        """Return the releases to fetch now, of all lanes or of one (`fetch_queue.read_due`)."""
        with self._read() as connection:
            chain_id = self.deployment.chain_id
            return fetch_queue.read_due(
                connection, chain_id, now, limit, lane=lane, after=after, known=known
            )

    def verified(self, after: int, limit: int) -> list[Job]:
        """Return verified releases with ids above `after`, the lowest first."""
        with self._read() as connection:
            chain_id = self.deployment.chain_id
            return fetch_queue.read_verified(connection, chain_id, after, limit)

    def denials(self) -> denylist.Denials:
        """Return what the operator refuses to serve."""
        with self._read() as connection:
            return denylist.read_denials(connection)

    def record_many(self, judgements: Sequence[tuple[int, Judgement]]) -> list[bool]:
        """Store verdicts in one transaction; False for a release that was rolled back meanwhile."""
        with self._write() as connection:
            alive = fetch_queue.write_judgements(connection, dict(judgements))
            names = {name for name in alive.values() if name is not None}
            listing.refresh(connection, names, self._serve)
            changes.mark(connection, names | changes.later_claimants(connection, alive))
            return [release_id in alive for release_id, _ in judgements]

    def reset_skewed_delays(self) -> None:
        """Make retries due that a wrong clock has put off; to be called after a clock change."""
        with self._write() as connection:
            fetch_queue.reset_skewed_delays(connection, self._clock())

    def delay_many(self, delays: Sequence[Delay]) -> None:
        """Postpone or park releases that could not be judged, in one transaction."""
        with self._write() as connection:
            fetch_queue.write_delays(connection, delays)
            changes.mark(connection, fetch_queue.names_of(connection, delays))

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._turn, transaction(self._engine) as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._read() as connection:
            yield connection
            connection.execute(update(DEPLOYMENT).values(revision=DEPLOYMENT.c.revision + 1))

    def _prepare(self, connection: Connection, keep_start_block: bool) -> None:
        create_tables(connection)
        rules = listing.listing_rules(self._serve)
        row = self._check(connection, self.deployment, keep_start_block)
        if row is None:
            return
        if row["rules_version"] < RULES_VERSION:
            fetch_queue.judge_again(connection, self._clock())
        if row["listing_rules"] != rules:
            listing.rebuild(connection, self._serve)
            changes.mark_all(connection)
        deployments.bring_up_to_date(connection, rules)

    def _check(
        self, connection: Connection, deployment: Deployment, keep_start_block: bool
    ) -> Mapping[Any, Any] | None:
        self.deployment = deployments.fill_in(connection, deployment, keep_start_block)
        rules = listing.listing_rules(self._serve)
        return deployments.check(connection, self.deployment, rules)
