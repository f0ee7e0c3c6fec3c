"""The store: the one writer of the index. Rows and cursor change in one transaction.

A crash repeats work, never skips or doubles it. Every method is synchronous and may be called from
any thread; asynchronous callers use `asyncio.to_thread`. All raise Unavailable when the database is
locked or away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from filelock import FileLock
from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, update

from capdex.errors import Code, Unavailable, UsageError
from capdex.events import Announcement, LogHead, Published, YankChanged
from capdex.package import RULES_VERSION, RejectedPackage, VerifiedPackage
from capdex.problems import Availability, Reason, Verdict
from indexer import listing, rows
from indexer.database import open_writer, transaction
from indexer.models import (
    DECODER_VERSION,
    PENDING,
    STANDS,
    BlockRow,
    CursorRow,
    Deployment,
    DeploymentRow,
    EventRow,
    PackageRow,
    ReleaseRow,
    YankRow,
    table,
)
from indexer.rows import Decoded
from indexer.steps import BlockRef, Blocks

__all__ = ["Cursor", "Decoded", "Deployment", "Job", "Store"]

RING_BLOCKS: Final = 1024  # deeper than any reorg a node follows by itself
CHUNK: Final = 500  # values in one IN list, far below every database's limit

Judged = VerifiedPackage | RejectedPackage

DEPLOYMENT, CURSOR, BLOCK = table(DeploymentRow), table(CursorRow), table(BlockRow)
EVENT, RELEASE, YANK, PACKAGE = (
    table(EventRow),
    table(ReleaseRow),
    table(YankRow),
    table(PackageRow),
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last applied block, and the registry's log slot after it."""

    block: BlockRef
    log: LogHead


@dataclass(frozen=True, slots=True)
class Job:
    """A release whose bytes are to be fetched and judged."""

    release_id: int
    announcement: Announcement
    attempts: int


class Store:
    """The writer of one index; made by `open`."""

    def __init__(
        self,
        engine: Engine,
        lock: FileLock | None,
        deployment: Deployment,
        serve: frozenset[Verdict],
        clock: Callable[[], float],
    ) -> None:
        self._engine, self._file_lock, self._clock = engine, lock, clock
        self._deployment, self._serve = deployment, serve
        self._turn = Lock()

    @classmethod
    def open(
        cls,
        url: str,
        deployment: Deployment,
        *,
        serve: frozenset[Verdict] = frozenset({Verdict.VERIFIED}),
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open the database at `url` for writing, bring its tables up to date, check whose it is.

        `serve` are the verdicts that search lists. Raises Unavailable DATABASE_LOCKED when there is
        another writer, UsageError FOREIGN_DATABASE when it indexes another registry.
        """
        engine, lock = open_writer(url)
        store = cls(engine, lock, deployment, serve, clock)
        try:
            with store._write() as connection:
                store._prepare(connection)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Let go of the database and of the writer's lock."""
        with self._turn:
            self._engine.dispose()
            if self._file_lock is not None:
                self._file_lock.release()

    def cursor(self) -> Cursor | None:
        """How far the chain is applied; None before the first step."""
        with self._write(changes=False) as connection:
            return _cursor(connection)

    def ring(self) -> list[BlockRef]:
        """The newest applied blocks, lowest first: where the reader looks for a fork."""
        with self._write(changes=False) as connection:
            found = connection.execute(select(BLOCK).order_by(BLOCK.c.number))
            return [BlockRef(x.number, x.hash, x.parent, x.timestamp) for x in found]

    def append(self, step: Blocks, decoded: Sequence[Decoded]) -> None:
        """Apply one step: its events, releases, flags and blocks, and the cursor.

        `decoded` has one entry for each log of the step, in order. A step already applied is left
        alone; raises Unavailable STALLED when the step does not follow the cursor.
        """
        with self._write() as connection:
            before = _cursor(connection)
            if before is not None and before.block == step.upto:
                return
            _check_step(before, step, decoded)
            log = self._append_events(
                connection, before.log if before else LogHead(), step, decoded
            )
            newest = sorted({*step.blocks, step.upto}, key=lambda x: x.number)[-RING_BLOCKS:]
            connection.execute(insert(BLOCK), [_block_row(block) for block in newest])
            keep = select(BLOCK.c.number).order_by(BLOCK.c.number.desc()).limit(1)
            edge = keep.offset(RING_BLOCKS).scalar_subquery()
            connection.execute(delete(BLOCK).where(BLOCK.c.number <= edge))
            _set_cursor(connection, step.upto, log, head=step.head, finalized=step.finalized)

    def rollback(self, fork: BlockRef) -> None:
        """Forget everything above `fork`: what is left is as if it had never been applied."""
        with self._write() as connection:
            before = _cursor(connection)
            if before is None or before.block == fork:
                return
            _check_fork(connection, before, fork)
            gone = EVENT.c.block_number > fork.number
            yanked = _scalars(connection, select(YANK.c.cap_uri).join(EVENT).where(gone))
            of_gone = select(RELEASE.c.name).join(EVENT).where(gone, RELEASE.c.name.is_not(None))
            names = set(_scalars(connection, of_gone))
            listed = (
                select(listing.LISTING.c.release_id)
                .select_from(listing.LISTING.join(RELEASE).join(EVENT))
                .where(gone)
            )
            for release_id in _scalars(connection, listed):
                listing.unlist(connection, release_id)
            connection.execute(delete(EVENT).where(gone))  # releases and yanks go with it
            names |= _reflag(connection, set(yanked))
            listing.refresh(connection, names, self._serve)
            connection.execute(delete(BLOCK).where(BLOCK.c.number >= fork.number))
            connection.execute(insert(BLOCK), _block_row(fork))
            last = select(EVENT.c.sequence, EVENT.c.log_head).order_by(EVENT.c.sequence.desc())
            row = connection.execute(last.limit(1)).first()
            log = LogHead(row.log_head, row.sequence) if row else LogHead()
            _set_cursor(connection, fork, log)
            # what the chain takes back was never final, whatever an endpoint had said
            over = CURSOR.c.finalized > fork.number
            connection.execute(update(CURSOR).where(over).values(finalized=fork.number))

    def due(self, now: float, limit: int) -> list[Job]:
        """The releases to fetch now, one publisher after another so that none waits for a flood."""
        turn = func.row_number().over(
            partition_by=RELEASE.c.publisher, order_by=(RELEASE.c.due_at, RELEASE.c.id)
        )
        ranked = (
            select(RELEASE.c.id, turn.label("turn")).where(PENDING, RELEASE.c.due_at <= now)
        ).subquery()
        chosen = (
            select(RELEASE)
            .join(ranked, RELEASE.c.id == ranked.c.id)
            .order_by(ranked.c.turn, RELEASE.c.id)
            .limit(limit)
        )
        with self._write(changes=False) as connection:
            return [self._job(row) for row in connection.execute(chosen)]

    def record(self, release_id: int, judged: Judged) -> bool:
        """Store what judging a release found; False when it was rolled back meanwhile."""
        return self.record_many([(release_id, judged)])[0]

    def record_many(self, judgements: Sequence[tuple[int, Judged]]) -> list[bool]:
        """`record` for several releases in one transaction."""
        ids = [release_id for release_id, _ in judgements]
        with self._write() as connection:
            alive: dict[int, str | None] = {}
            for some in _chunks(ids):
                found = select(RELEASE.c.id, RELEASE.c.name).where(RELEASE.c.id.in_(some))
                alive |= {row.id: row.name for row in connection.execute(found)}
            kept = {release_id: x for release_id, x in judgements if release_id in alive}
            if kept:
                connection.execute(_JUDGED, [_verdict(k, v) for k, v in kept.items()])
                self._put_packages(connection, kept)
                names = {name for name in alive.values() if name is not None}
                listing.refresh(connection, names, self._serve)
            return [release_id in alive for release_id in ids]

    def retry_later(self, release_id: int, error: str, at: float) -> None:
        """Fetch a release again at `at` (seconds since the epoch), remembering why it failed."""
        with self._write() as connection:
            connection.execute(
                update(RELEASE)
                .where(RELEASE.c.id == release_id, RELEASE.c.verdict.is_(None))
                .values(attempts=RELEASE.c.attempts + 1, due_at=at, message=_message(error))
            )

    def park(self, release_id: int, reason: Reason, error: str) -> None:
        """Stop trying to judge a release until `rearm`; it keeps no verdict (P6)."""
        parked = {"availability": Availability.PARKED.value, "reason": reason.value}
        with self._write() as connection:
            connection.execute(
                update(RELEASE)
                .where(RELEASE.c.id == release_id, RELEASE.c.verdict.is_(None))
                .values(attempts=RELEASE.c.attempts + 1, message=_message(error), **parked)
            )

    def rearm(self, name: str | None = None) -> int:
        """Queue parked releases (of one name, or all) again from their first try; how many."""
        parked = RELEASE.c.availability == Availability.PARKED.value
        waiting = {"availability": Availability.PENDING.value, "reason": None}
        with self._write() as connection:
            done = connection.execute(
                update(RELEASE)
                .where(parked if name is None else parked & (RELEASE.c.name == name))
                .values(attempts=0, due_at=0.0, **waiting)
            )
            return int(done.rowcount)

    @contextmanager
    def _write(self, *, changes: bool = True) -> Iterator[Connection]:
        with self._turn, transaction(self._engine) as connection:
            yield connection
            if changes:
                connection.execute(update(DEPLOYMENT).values(revision=DEPLOYMENT.c.revision + 1))

    def _prepare(self, connection: Connection) -> None:
        from indexer.migrations import migrate  # alembic takes a while; readers never need it

        migrate(connection)
        ours = {
            "chain_id": self._deployment.chain_id,
            "contract": self._deployment.registry,
            "start_block": self._deployment.start_block,
            "genesis": self._deployment.genesis,
            "decoder_version": DECODER_VERSION,
        }
        rules = listing.listing_rules(self._serve)
        row = connection.execute(select(DEPLOYMENT)).mappings().first()
        if row is None:
            connection.execute(
                insert(DEPLOYMENT), {"id": 1, **ours, "listing_rules": rules, "revision": 0}
            )
            return
        other = [key for key, value in ours.items() if row[key] != value]
        if other:
            raise _foreign(other, row, ours)
        if row["listing_rules"] != rules:
            listing.rebuild(connection, self._serve)
            connection.execute(update(DEPLOYMENT).values(listing_rules=rules))

    def _append_events(
        self, connection: Connection, log: LogHead, step: Blocks, decoded: Sequence[Decoded]
    ) -> LogHead:
        """Insert the rows of a step's logs; returns the log slot after them."""
        times = {block.number: block.timestamp for block in (*step.blocks, step.upto)}
        events: list[rows.Row] = []
        claims: list[tuple[int, rows.Claim]] = []
        yanks: list[rows.Row] = []
        names: set[str] = set()
        for one in decoded:
            log, event, error = log.fold(one.log), one.event, None
            if isinstance(event, Published):
                claims.append((log.count, rows.claim(event)))
            elif isinstance(event, YankChanged):
                uri = rows.yanked_uri(event)
                if uri is None:
                    error = f"it names no release: {event.name!r} {event.semver!r}"
                else:
                    yanks.append(rows.yank_row(event, uri, log.count))
                    names.add(uri.name)
            else:
                error = event.message
            timestamp = times[one.log.position.block_number]
            events.append(rows.event_row(one, log.count, timestamp, log, error))
        if events:
            connection.execute(insert(EVENT), events)
        if claims:
            self._append_releases(connection, claims)
        if yanks:
            connection.execute(insert(YANK), yanks)
            connection.execute(_FLAGGED, [{f"new_{k}": v for k, v in x.items()} for x in yanks])
            listing.refresh(connection, names, self._serve)
        return log

    def _append_releases(
        self, connection: Connection, claims: Sequence[tuple[int, rows.Claim]]
    ) -> None:
        now = self._clock()
        taken: set[str] = set()
        for some in _chunks([x.event.announcement.cap_uri for _, x in claims if x.stands]):
            standing = select(RELEASE.c.cap_uri).where(STANDS, RELEASE.c.cap_uri.in_(some))
            taken.update(_scalars(connection, standing))
        new: list[rows.Row] = []
        rejected: dict[int, RejectedPackage] = {}
        for sequence, claimed in claims:
            cap_uri, stands = claimed.event.announcement.cap_uri, claimed.stands
            if stands and cap_uri in taken:
                claimed, stands = rows.repeated(claimed), False
            elif stands:
                taken.add(cap_uri)
            if claimed.rejected is not None:
                rejected[sequence] = claimed.rejected
            new.append(rows.release_row(claimed, sequence, now, stands=stands))
        connection.execute(insert(RELEASE), new)
        for some in _chunks(list(rejected)):
            ids = select(RELEASE.c.id, RELEASE.c.sequence).where(RELEASE.c.sequence.in_(some))
            found = {row.id: rejected[row.sequence] for row in connection.execute(ids)}
            self._put_packages(connection, found)

    def _put_packages(self, connection: Connection, judged: dict[int, Any]) -> None:
        for some in _chunks(list(judged)):
            connection.execute(delete(PACKAGE).where(PACKAGE.c.release_id.in_(some)))
        chain_id = self._deployment.chain_id
        connection.execute(
            insert(PACKAGE), [_package_row(k, v, chain_id) for k, v in judged.items()]
        )

    def _job(self, row: Any) -> Job:
        announcement = Announcement(
            self._deployment.chain_id,
            row.publisher,
            row.cap_uri,
            row.semver,
            row.cid,
            bytes(row.sha256),
        )
        return Job(row.id, announcement, row.attempts)


_JUDGED: Final = (
    update(RELEASE)
    .where(RELEASE.c.id == bindparam("release_id"))
    .values(
        availability=Availability.AVAILABLE.value,
        verdict=bindparam("new_verdict"),
        reason=bindparam("new_reason"),
        message=bindparam("new_message"),
    )
)

# A yank concerns the release that stood before it.
_FLAGGED: Final = (
    update(RELEASE)
    .where(STANDS, RELEASE.c.cap_uri == bindparam("new_cap_uri"))
    .where(RELEASE.c.sequence < bindparam("new_sequence"))
    .values(yanked=bindparam("new_yanked"), yank_reason=bindparam("new_reason"))
)


def _cursor(connection: Connection) -> Cursor | None:
    row = connection.execute(select(CURSOR)).first()
    if row is None:
        return None
    block = BlockRef(row.number, row.hash, row.parent, row.timestamp)
    return Cursor(block, LogHead(row.log_head, row.log_count))


def _set_cursor(connection: Connection, block: BlockRef, log: LogHead, **chain: int) -> None:
    row = _block_row(block) | {"log_head": log.head, "log_count": log.count} | chain
    if not connection.execute(update(CURSOR).values(row)).rowcount:
        connection.execute(insert(CURSOR), {"id": 1, **row})


def _reflag(connection: Connection, cap_uris: set[str]) -> set[str]:
    """Set the yank flags of these releases by the latest yank that is left; the names concerned."""
    names: set[str] = set()
    for cap_uri in sorted(cap_uris):
        release = connection.execute(
            select(RELEASE.c.id, RELEASE.c.name, RELEASE.c.sequence).where(
                STANDS, RELEASE.c.cap_uri == cap_uri
            )
        ).first()
        if release is None:
            continue
        latest = connection.execute(
            select(YANK.c.yanked, YANK.c.reason)
            .where(YANK.c.cap_uri == cap_uri, YANK.c.sequence > release.sequence)
            .order_by(YANK.c.sequence.desc())
            .limit(1)
        ).first()
        yanked, reason = (latest.yanked, latest.reason) if latest else (False, "")
        connection.execute(
            update(RELEASE)
            .where(RELEASE.c.id == release.id)
            .values(yanked=yanked, yank_reason=reason)
        )
        names.add(release.name)
    return names


def _check_step(before: Cursor | None, step: Blocks, decoded: Sequence[Decoded]) -> None:
    """Refuse a step that would leave a hole or apply something twice."""
    hashes = {block.number: block.hash for block in (*step.blocks, step.upto)}
    after = before.block.number if before else -1
    first = min(hashes)
    why = ""
    if tuple(one.log for one in decoded) != step.logs:
        why = "its logs are not the decoded ones"
    elif first <= after:
        why = f"it begins at block {first}, the cursor stands at {after}"
    elif before and first == after + 1 and _parent(step, first) != before.block.hash:
        why = f"block {first} is not a child of the block at the cursor"
    elif any(hashes.get(x.position.block_number) != x.position.block_hash for x in step.logs):
        why = "a log stands in a block that the step does not have"
    if why:
        raise _astray(why)


def _check_fork(connection: Connection, before: Cursor, fork: BlockRef) -> None:
    """Refuse a fork that is not a block of the chain applied here."""
    kept = connection.execute(select(BLOCK.c.hash).where(BLOCK.c.number == fork.number)).scalar()
    if fork.number >= before.block.number or (kept is not None and kept != fork.hash):
        raise _astray(f"block {fork.number} was not applied with this hash")


def _astray(why: str) -> Unavailable:
    return Unavailable(
        "a step of the chain does not follow the index",
        Code.STALLED,
        why,
        "read again from the cursor",
    )


def _parent(step: Blocks, number: int) -> bytes:
    return next(x.parent for x in (*step.blocks, step.upto) if x.number == number)


def _block_row(block: BlockRef) -> rows.Row:
    return {
        "number": block.number,
        "hash": block.hash,
        "parent": block.parent,
        "timestamp": block.timestamp,
    }


def _verdict(release_id: int, judged: Judged) -> rows.Row:
    rejected = judged if isinstance(judged, RejectedPackage) else None
    return {
        "release_id": release_id,
        "new_verdict": judged.verdict.value,
        "new_reason": rejected.reason.value if rejected else None,
        "new_message": _message(rejected.message) if rejected else "",
    }


def _package_row(release_id: int, judged: Judged, chain_id: int) -> rows.Row:
    manifest, publisher = judged.manifest, judged.announcement.publisher
    return {
        "release_id": release_id,
        "acp_metadata": manifest.metadata if manifest else None,
        "signer": judged.signer,
        "checks": [check.to_json() for check in judged.checks],
        "problems": [problem.to_json() for problem in judged.problems],
        "document": listing.document(manifest, publisher, chain_id) if manifest else None,
        "rules_version": RULES_VERSION,
    }


def _message(text: str) -> str:
    return rows.visible(text, rows.MAX_REASON_CHARS)


def _foreign(other: list[str], found: Any, ours: dict[str, Any]) -> UsageError:
    def show(value: Any) -> str:
        return "0x" + value.hex() if isinstance(value, bytes) else str(value)

    words = (f"its {k} is {show(found[k])}, not {show(ours[k])}" for k in other)
    return UsageError(
        "the database belongs to another chain or registry",
        Code.FOREIGN_DATABASE,
        why="; ".join(words).replace("contract", "registry"),
        fix="name another database, or index into a new one",
    )


def _scalars(connection: Connection, query: Any) -> list[Any]:
    return list(connection.execute(query).scalars())


def _chunks(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[i : i + CHUNK] for i in range(0, len(values), CHUNK))
