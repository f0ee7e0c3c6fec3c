"""The writer of an index, under a lease: one store, the chain reader, the fetcher, the heartbeat.

The lease is the writer lock of the database. It ends with the database session that holds it; the
next lease starts again from what the database then says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, Self

import structlog

from capdex.encoding.abi import raw_address
from capdex.errors import Unavailable
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.source import BlockSource
from capdex.net.rpc.client import Rpc
from capdex.net.tasks import cause, run_to_completion
from capdex_indexer.chain.reader import ChainReader
from capdex_indexer.db.engine import SessionLost
from capdex_indexer.db.heartbeat import BEAT_S
from capdex_indexer.fetch.fetcher import Fetcher
from capdex_indexer.fetch.file_fetcher import FileFetcher
from capdex_indexer.fetch.kept_files import KeptFiles
from capdex_indexer.fetch.lost_packages import LostPackages
from capdex_indexer.monitoring.health import Health
from capdex_indexer.node.chain_contact import meet_chain
from capdex_indexer.node.fault_log import FaultLog
from capdex_indexer.options import NodeOptions
from capdex_indexer.store import Deployment, Store
from capdex_indexer.sync.loop import SyncProgress, follow_chain
from capdex_indexer.workers.pool import Verifier

log = structlog.get_logger(part="node")

LOOK_S: Final = 600.0  # between looks at what the endpoints can do
CLOCK_SET_S: Final = 60.0  # of drift between two heartbeats: the clock was set


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Connections and parts that a node opens once, for writing and standby."""

    rpc: Rpc
    registry: str
    votes: str | None
    sources: tuple[BlockSource, ...]
    verifier: Verifier
    blocks: BlockDirectory


@dataclass(slots=True)
class Writer:
    """A node that holds the writer lease; `reader` is None until the chain was met."""

    store: Store
    resources: NodeResources
    fetcher: Fetcher
    files: FileFetcher
    options: NodeOptions
    committed: asyncio.Event
    reader: ChainReader | None = None

    @classmethod
    @asynccontextmanager
    async def acquire(cls, options: NodeOptions, resources: NodeResources) -> AsyncIterator[Self]:
        """Acquire the writer lease; release it on exit.

        Raises Unavailable DATABASE_LOCKED while another process holds it, and the other errors of
        `Store.open`.
        """
        store = await _open(options, resources.registry)
        try:
            committed = asyncio.Event()
            kept = KeptFiles(resources.blocks, options.keep_files)
            files = FileFetcher(store, resources.sources, resources.blocks, kept)
            fetcher = Fetcher(
                store,
                resources.sources,
                resources.verifier,
                resources.blocks,
                committed=committed,
                clock=options.clock,
                verified=files.add if kept.budget else lambda _: None,
            )
            await run_to_completion(store.reset_skewed_delays)
            yield cls(store, resources, fetcher, files, options, committed)
        finally:
            await run_to_completion(store.close)

    async def run(self, health: Health, report: Callable[[SyncProgress], None]) -> None:
        """Index, fetch, judge and write heartbeats until cancelled.

        Raises the error that ends one of the loops: SessionLost when the lease is lost, and what
        `meet_chain` raises for a new index.
        """
        parts, store, committed = self.resources, self.store, self.committed
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self.fetcher.run())
                loops.create_task(self.files.run())
                loops.create_task(LostPackages(store, parts.sources, parts.blocks).run())
                loops.create_task(self._beat(health))
                await meet_chain(parts.rpc, store, self.options.start_block, report)
                loops.create_task(self._look())
                self.reader = self._open_reader(store)
                walk = follow_chain(self.reader, store, committed=committed, report=report)
                loops.create_task(walk)
                if parts.votes is not None:
                    loops.create_task(self._count(parts.votes))
        except BaseExceptionGroup as group:
            raise cause(group) from group

    async def _look(self) -> None:
        while True:
            await self.resources.rpc.look()
            await asyncio.sleep(LOOK_S)

    async def _count(self, address: str) -> None:
        """Follow the votes contract; its errors are only logged, since no answer needs votes.

        It is followed although the endpoint has no code at its address: the endpoint may be
        behind, or the contract deployed later.
        """
        # votes cannot be older than their registry
        contract = replace(self.store.deployment, registry=address)
        votes = None
        while votes is None:
            try:
                votes = await run_to_completion(self.store.votes_store, contract)
            except Unavailable as error:
                log.warning("votes wait", why=error.line)
                await asyncio.sleep(BEAT_S)
        reader, rpc = self._open_reader(votes), self.resources.rpc
        with suppress(Unavailable):
            if not await rpc.code(raw_address(address)):
                log.warning("no contract of votes yet", address=address, endpoint=rpc.endpoint)
        last: str | None = None

        def report(now: SyncProgress) -> None:
            nonlocal last
            trouble = now.trouble.message if now.trouble else None
            if trouble != last:
                log.info("votes", waiting_for=trouble or "nothing")
            last = trouble

        await follow_chain(reader, votes, committed=asyncio.Event(), report=report)

    async def _beat(self, health: Health) -> None:
        """Write heartbeats for the other processes, and log faults.

        Raises SessionLost when the lease is lost.

        On a thread of its own, since requests may use all others. The first one waits for the head
        of the chain, which a restart reaches at once: readers stay ready.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(health.followed.wait(), BEAT_S)
        clock, before, faults = self.options.clock, None, FaultLog()
        with ThreadPoolExecutor(1, "heartbeat") as heart:
            while True:
                ahead_s = clock() - time.monotonic()
                try:
                    if before is not None and abs(ahead_s - before) > CLOCK_SET_S:
                        log.warning("the clock was set", by_s=round(ahead_s - before))
                        await run_to_completion(self.store.reset_skewed_delays, executor=heart)
                    before = ahead_s
                    await run_to_completion(self.store.beat, health.beat(), executor=heart)
                    health.written()
                except SessionLost:
                    raise
                except Unavailable as error:
                    health.refused = error
                    faults.failure("database failed", error)
                if trouble := self.resources.blocks.trouble:
                    faults.failure("packages are not kept", trouble)
                faults.endpoints(self.resources.rpc.endpoints_state())
                await asyncio.sleep(BEAT_S)

    def _open_reader(self, store: Store) -> ChainReader:
        deployment = store.deployment
        return ChainReader(
            self.resources.rpc,
            registry=raw_address(deployment.registry),
            chain_id=deployment.chain_id,
            start_block=deployment.start_block,
            finality_depth=self.options.finality_depth,
            poll_interval_s=self.options.poll_interval_s,
            accepted=lambda: run_to_completion(store.accepted),
        )


async def _open(options: NodeOptions, registry: str) -> Store:
    opening = asyncio.ensure_future(
        asyncio.to_thread(
            Store.open,
            options.db,
            Deployment(options.chain_id, registry, options.start_block or 0, genesis=b""),
            keep_start_block=options.start_block is None,
            serve=options.serve,
            clock=options.clock,
        )
    )
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with suppress(Exception):  # the caller is gone, and so is the lease
            (await opening).close()
        raise
