"""Restore a verified snapshot into an index: the events in one transaction, then the packages.

Events are decoded and written as if read from the chain (`store.events`), and the index
must have the snapshot's digest. Packages are kept if they verify; the node judges them again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, select, update

from capdex.errors import InvalidInput, Unavailable, UsageError, VerificationFailure
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex.registry.events import Announcement
from capdex_indexer.db.engine import open_reader, open_writer, transaction
from capdex_indexer.db.models import DEPLOYMENT, EVENT, REGISTRY, RELEASE, VOTES
from capdex_indexer.db.revision import create_tables
from capdex_indexer.projection.block_range import BlockRange, LogRows
from capdex_indexer.query.digest import Digest, read_digest, read_votes_digest
from capdex_indexer.snapshot.archive import LogPart, damaged
from capdex_indexer.snapshot.reader import Progress, SnapshotReader, untrue
from capdex_indexer.snapshot.verify import VerifiedSnapshot
from capdex_indexer.store import cursor as cursors
from capdex_indexer.store import deployment as deployments
from capdex_indexer.store import events
from capdex_indexer.store.listing import listing_rules
from capdex_indexer.workers.pool import Verifier

AT_ONCE: Final = 64  # packages in memory
SERVED: Final = (Verdict.VERIFIED,)  # listed verdicts until a node with other options starts


def restore_events(
    path: Path, checked: VerifiedSnapshot, db: str, *, progress: Progress = lambda *_: None
) -> None:
    """Write the events of a snapshot into an empty database, all or none.

    A database that has them already is left unchanged: an import was interrupted at its packages.
    Raises UsageError if the database holds another index, VerificationFailure if the events have
    another digest than the manifest, and the errors of `open_writer`.
    """
    engine, lock = open_writer(db)
    try:
        with SnapshotReader.open(path) as snapshot, transaction(engine) as connection:
            if snapshot.manifest != checked.manifest:
                raise damaged("the file changed after it was verified")
            _fill(connection, snapshot, checked.parts, progress)
    finally:
        engine.dispose()
        if lock is not None:
            lock.release()


async def restore(
    path: Path,
    checked: VerifiedSnapshot,
    db: str,
    blocks: BlockDirectory,
    *,
    progress: Progress = lambda *_: None,
) -> int:
    """Write the events of a snapshot, then keep its packages that verify for a release.

    Returns how many are kept. If cancelled while events are written, their transaction is rolled
    back.
    """
    cancelled = threading.Event()

    def report_or_stop(what: str, done: int, total: int) -> None:
        if cancelled.is_set():
            raise InterruptedError  # leaves the transaction, in its thread
        progress(what, done, total)

    try:
        await asyncio.to_thread(restore_events, path, checked, db, progress=report_or_stop)
    except asyncio.CancelledError:
        cancelled.set()
        raise
    engine, kept, done = open_reader(db), 0, 0
    try:
        with SnapshotReader.open(path) as snapshot:
            for part in snapshot.manifest.parts.values():
                await asyncio.to_thread(snapshot.skip, part)
            async with Verifier() as verifier:
                packages = snapshot.packages()
                while some := list(islice(packages, AT_ONCE)):
                    outcomes = await asyncio.gather(
                        *(_verifies(engine, checked, verifier, *package) for package in some)
                    )
                    for (cid, data), verified in zip(some, outcomes, strict=True):
                        if verified:
                            await asyncio.to_thread(blocks.keep, cid, data)
                            kept += 1
                    done += len(some)
                    progress("packages", done, checked.manifest.packages)
    finally:
        engine.dispose()
    return kept


def _fill(
    connection: Connection, snapshot: SnapshotReader, parts: dict[int, LogPart], progress: Progress
) -> None:
    manifest = snapshot.manifest
    create_tables(connection)
    deployments.check(connection, manifest.deployment(manifest.registry), listing_rules(SERVED))
    if connection.execute(select(EVENT.c.sequence).limit(1)).first() or cursors.read_cursor(
        connection, REGISTRY
    ):
        if _holds(connection, manifest.block.number, parts):
            return
        raise UsageError(
            "the database holds an index already",
            why="a snapshot is restored into an empty database only",
            fix="name an empty database with --db",
        )
    if (votes := parts.get(VOTES)) is not None:
        deployments.adopt(connection, VOTES, manifest.deployment(votes))
    total = sum(part.log.count for part in parts.values())
    done, block = 0, manifest.block
    for deployment_id, part in manifest.parts.items():
        if deployment_id not in parts:
            snapshot.skip(part)
            continue
        for entries in snapshot.events(part):
            # Without verdicts no release is listed yet: no name that this returns needs a refresh.
            events.apply(
                connection,
                deployment_id,
                LogRows.of(record.log for record, _ in entries),
                [head for _, head in entries],
                times={record.log.position.block_number: record.timestamp for record, _ in entries},
                chain_id=manifest.chain_id,
                now=time.time(),
            )
            done += len(entries)
            progress("events", done, total)
        # 0: the node learns from the chain which block is final
        end = BlockRange(LogRows(), {}, (block,), block, block.number, 0)
        cursors.advance(connection, deployment_id, end, part.log)
    _check_digests(parts, read_digest(connection), read_votes_digest(connection))
    connection.execute(update(DEPLOYMENT).values(revision=DEPLOYMENT.c.revision + 1))


def _holds(connection: Connection, block: int, parts: dict[int, LogPart]) -> bool:
    """True if an index has the events of a snapshot, and perhaps later ones."""
    try:
        _check_digests(parts, read_digest(connection, block), read_votes_digest(connection, block))
    except (InvalidInput, Unavailable, VerificationFailure):
        return False
    return True


def _check_digests(parts: dict[int, LogPart], registry: Digest, votes: Digest | None) -> None:
    digests = {REGISTRY: registry.index} | ({VOTES: votes.index} if votes else {})
    if digests != {x: part.index_digest for x, part in parts.items()}:
        raise untrue("its events give another index digest than its manifest names")


async def _verifies(
    engine: Engine, checked: VerifiedSnapshot, verifier: Verifier, cid: Cid, data: bytes
) -> bool:
    """True if the bytes verify for any release that announces them."""
    sequences = checked.announced[cid.digest]
    for announcement in await asyncio.to_thread(_announcements, engine, checked, sequences):
        if (await verifier.judge(announcement, data)).verdict is Verdict.VERIFIED:
            return True
    return False


def _announcements(
    engine: Engine, checked: VerifiedSnapshot, sequences: list[int]
) -> list[Announcement]:
    query = select(RELEASE).where(RELEASE.c.sequence.in_(sequences))
    with transaction(engine) as connection:
        rows = connection.execute(query).all()
    chain_id = checked.manifest.chain_id
    return [
        Announcement(chain_id, row.publisher, row.cap_uri, row.semver, row.cid, bytes(row.sha256))
        for row in rows
    ]
