"""An index node: chain and IPFS in, rows and blocks out, until it is cancelled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import structlog

from capdex.encoding.abi import parse_address
from capdex.errors import CapdexError, Code, Unavailable
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.open import open_ipfs
from capdex.net.rpc.aiohttp_transport import AiohttpTransport
from capdex.net.rpc.client import Rpc
from capdex.net.tasks import end, run_to_completion
from capdex_indexer.db.engine import SessionLost
from capdex_indexer.db.heartbeat import BEAT_S
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.monitoring.metrics import Counters, FilesState
from capdex_indexer.node.fault_log import FaultLog
from capdex_indexer.node.writer import NodeResources, Writer
from capdex_indexer.options import NodeOptions
from capdex_indexer.query.index import Index
from capdex_indexer.query.search.mapped_encoder import MappedEncoder
from capdex_indexer.query.search.snapshots import directory_of
from capdex_indexer.store import Store
from capdex_indexer.sync.loop import SyncProgress
from capdex_indexer.workers.pool import Verifier

log = structlog.get_logger(part="node")

LOG_EVERY_BLOCKS = 10_000  # a backfill logs its position this often
RECOUNT_PAUSE: Final = 10.0  # counting releases takes a tenth of the time while blocks come fast
STANDBY_S: Final = 1.0  # how often a standby tries to acquire the lease
# A server may take a moment to notice that a session of this process has ended.
LEASE_RETRY_S: Final = 10.0


@dataclass(slots=True)
class Node:
    """An opened node: what its HTTP routes read, and its writer while it holds the lease."""

    surface: Surface
    options: NodeOptions
    _resources: NodeResources | None = None
    _writer: Writer | None = None
    _lease: AsyncExitStack | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, options: NodeOptions) -> AsyncIterator[Node]:
        """Open the database and the rest, without a call to the chain; close everything on exit.

        Raises UsageError (FOREIGN_DATABASE, UNREADABLE) or Unavailable (DATABASE_LOCKED,
        DATABASE_UNAVAILABLE).
        """
        async with AsyncExitStack() as stack:
            resources = await _open_resources(options, stack) if options.role.writes else None
            index = Index(options.db, clock=options.clock, recount_pause=RECOUNT_PAUSE)
            stack.callback(index.close)
            surface = Surface(
                index,
                BlockDirectory(options.blocks),
                Health(options.clock),
                options.role,
                lambda: node.counters(),
            )
            node = cls(surface, options, resources)
            stack.push_async_callback(node._release)
            if resources is None:
                await run_to_completion(index.heartbeat)  # a wrong database fails now
            else:
                surface.health.judging_fails = lambda: resources.verifier.trouble is not None
                surface.health.keeping_fails = lambda: resources.blocks.trouble is not None
                surface.health.endpoints = resources.rpc.endpoints_state
                try:
                    await node._acquire(resources)
                except Unavailable as error:
                    if error.code is not Code.DATABASE_LOCKED or not options.standby:
                        raise
                    log.info("standing by", why=error.message)
            if options.role.serves:  # now the database has its tables
                directory = directory_of(options.db, options.blocks)
                index.follow(directory, MappedEncoder(directory) if options.semantic else None)
            yield node

    @property
    def store(self) -> Store:
        """Store of the node that is the writer; raises LookupError on other nodes."""
        if self._writer is None:
            raise LookupError("this node is not the writer")
        return self._writer.store

    def counters(self) -> Counters:
        """Return what this node counts of its own work."""
        if self._resources is None:
            return Counters()
        rpc, writer = self._resources.rpc, self._writer
        reader = writer.reader if writer else None
        kept = writer.files.kept if writer else None
        return Counters(
            calls=dict(rpc.counts),
            endpoints=rpc.endpoints_state(),
            sources=writer.fetcher.sources.healths() if writer else (),
            files=FilesState(kept.budget, kept.bytes, kept.count) if kept else FilesState(),
            range_blocks=reader.range_sizer.blocks if reader else None,
        )

    async def run(self) -> None:
        """Index, fetch and judge while this node holds the lease; else watch the heartbeat.

        Runs until cancelled; raises the error that ends the node.
        """
        if self._resources is None:
            await self._watch()
            return
        watching = asyncio.create_task(self._watch())
        try:
            while True:
                writer = self._writer or await self._stand_by(self._resources)
                try:
                    await writer.run(self.surface.health, self._report)
                except SessionLost as lost:
                    log.warning("no longer the writer", why=lost.line)
                finally:
                    await self._release()
        finally:
            await end([watching])

    async def _stand_by(self, resources: NodeResources) -> Writer:
        """Wait for the lease; meanwhile this node answers from what the writer writes."""
        locked_since, faults = None, FaultLog()
        while True:
            try:
                return await self._acquire(resources)
            except Unavailable as error:
                locked = error.code is Code.DATABASE_LOCKED
                self.surface.health.kept_out = None if locked else error
                if not locked:
                    faults.failure("database failed", error)
                elif not self.options.standby:
                    locked_since = locked_since or time.monotonic()
                    if time.monotonic() - locked_since > LEASE_RETRY_S:
                        raise
            await asyncio.sleep(STANDBY_S)

    async def _acquire(self, resources: NodeResources) -> Writer:
        """Acquire the writer lease; raise why that fails."""
        async with AsyncExitStack() as lease:
            self._writer = await lease.enter_async_context(Writer.acquire(self.options, resources))
            self._lease = lease.pop_all()
        self.surface.health.writes, self.surface.health.kept_out = True, None
        log.info("writer")
        return self._writer

    async def _release(self) -> None:
        lease, self._lease, self._writer = self._lease, None, None
        self.surface.health.writes = False
        if lease is not None:
            await lease.aclose()

    async def _watch(self) -> None:
        """Read the index position and the writer's heartbeat until cancelled.

        The writer learns by it whether its index can be read.
        """
        health, index, faults = self.surface.health, self.surface.index, FaultLog()
        while True:
            try:
                position, beat = await run_to_completion(index.heartbeat)
                health.unread = None
                if not health.writes:
                    health.observe(position, beat)
            except CapdexError as error:
                health.unread = error
                faults.failure("database failed", error)
            await asyncio.sleep(BEAT_S)

    def _report(self, now: SyncProgress) -> None:
        health = self.surface.health
        before, was_following = health.at, health.following
        health.report(now)
        if now.trouble is not None:
            trouble = now.trouble
            if before.trouble is None or before.trouble.message != trouble.message:
                code = str(trouble.code)
                log.warning("waiting", code=code, why=trouble.line, fix=trouble.fix)
        elif before.trouble is not None:
            log.info("resumed", position=health.position())
        if now.undone:
            log.warning("reorg undone", blocks=now.undone, position=health.position())
        if health.following and not was_following:
            log.info("following", position=health.position(), events=now.log_head.count)
        elif now.block and before.block and not health.following:
            passed = now.block.number // LOG_EVERY_BLOCKS > before.block.number // LOG_EVERY_BLOCKS
            if passed:
                log.info("backfill", position=health.position(), events=now.log_head.count)


async def _open_resources(options: NodeOptions, stack: AsyncExitStack) -> NodeResources:
    """Open what a writer needs."""
    registry = parse_address(options.registry)
    votes = parse_address(options.votes) if options.votes else None
    verifier = Verifier()
    rpc = await stack.enter_async_context(
        Rpc(options.rpc_urls, transport=AiohttpTransport(), read_reply=verifier.read_reply)
    )
    sources = [open_ipfs(spec) for spec in options.ipfs]
    for source in sources:
        stack.push_async_callback(source.close)
    await stack.enter_async_context(verifier)
    blocks = BlockDirectory(options.blocks)
    return NodeResources(rpc, registry, votes, tuple(sources), verifier, blocks)
