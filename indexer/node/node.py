"""An index node: chain and IPFS in, rows and blocks out, until it is cancelled."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

import structlog

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError, Code, Unavailable, UsageError
from capdex.net.ipfs.open import BlockDirectory, open_ipfs
from capdex.net.rpc.aiohttp_transport import AiohttpTransport
from capdex.net.rpc.client import Rpc
from capdex.net.tasks import run_to_completion
from indexer.chain.start_block import locate_registry
from indexer.db.engine import SessionLost
from indexer.db.heartbeat import BEAT_S
from indexer.http.status import Surface
from indexer.monitoring.counters import Figures
from indexer.monitoring.health import Health
from indexer.node.writer import Means, Seat
from indexer.options import NodeOptions, Role
from indexer.query.index import Index
from indexer.store import Deployment, Store
from indexer.sync.loop import Progress
from indexer.workers.pool import Verifier

__all__ = ["Node", "NodeOptions", "Role"]

log = structlog.get_logger(part="node")

SAY_BLOCKS = 10_000  # a backfill says where it is this often
RECOUNT_S: Final = 1.0  # while blocks come fast, nobody counts every release at each
STANDBY_S: Final = 1.0  # how often a free seat is looked for
# A server may need a moment to notice that a session of this very process has ended.
RETURN_S: Final = 10.0
_ADDRESS = re.compile(r"[0-9A-Fa-f]{40}")


@dataclass(slots=True)
class Node:
    """An opened node: what its HTTP face reads, and its seat while it is the writer."""

    surface: Surface
    options: NodeOptions
    _means: Means | None = None
    _seat: Seat | None = None
    _sitting: AsyncExitStack | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, options: NodeOptions) -> AsyncIterator[Node]:
        """Check the chain, open the database and all else; everything is closed on leaving.

        Raises Refused (WRONG_CHAIN), UsageError (NO_CONTRACT, FOREIGN_DATABASE, UNREADABLE) or
        Unavailable (RPC_UNAVAILABLE, DATABASE_LOCKED, DATABASE_UNAVAILABLE): it does not start.
        """
        async with AsyncExitStack() as stack:
            means = await _open_means(options, stack) if options.role.writes else None
            index = Index(options.db, clock=options.clock, recount_s=RECOUNT_S)
            stack.callback(index.close)
            surface = Surface(
                index,
                BlockDirectory(options.blocks),
                Health(options.clock),
                options.role,
                lambda: node.figures(),
            )
            node = cls(surface, options, means)
            stack.push_async_callback(node._leave)
            if means is None:
                await run_to_completion(index.position)  # a wrong database is told now
            else:
                await node._sit_or_stand(means)
            yield node

    @property
    def store(self) -> Store:
        """The store of a node that is the writer."""
        if self._seat is None:
            raise LookupError("this node is not the writer")
        return self._seat.store

    def figures(self) -> Figures:
        """What this node counts of its own work."""
        if self._means is None:
            return Figures()
        rpc, seat = self._means.rpc, self._seat
        return Figures(
            calls=dict(rpc.counts),
            endpoints=rpc.endpoints_state(),
            sources=seat.fetcher.sources.states() if seat else (),
            range_blocks=seat.reader.range_sizer.blocks if seat else None,
        )

    async def run(self) -> None:
        """Index, fetch and judge while this node has the writer's seat, else watch who has it.

        Never ends by itself; what ends the node is raised.
        """
        if self._means is None:
            await self._watch()
            return
        while True:
            seat = self._seat or await self._stand_by(self._means)
            try:
                await seat.run(self.surface.health, self._report)
            except SessionLost as lost:
                log.warning("no longer the writer", why=lost.message)
            finally:
                await self._leave()

    async def _sit_or_stand(self, means: Means) -> None:
        try:
            await self._sit(means)
        except Unavailable as error:
            if error.code is not Code.DATABASE_LOCKED or not self.options.standby:
                raise
            log.info("standing by", why=error.message)

    async def _stand_by(self, means: Means) -> Seat:
        """Wait for the seat, answering meanwhile from what its writer writes."""
        watching = asyncio.create_task(self._watch())
        locked_since = None
        try:
            while True:
                try:
                    return await self._sit(means)
                except Unavailable as error:
                    if error.code is Code.DATABASE_LOCKED and not self.options.standby:
                        locked_since = locked_since or time.monotonic()
                        if time.monotonic() - locked_since > RETURN_S:
                            raise
                await asyncio.sleep(STANDBY_S)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _sit(self, means: Means) -> Seat:
        """Take the writer's seat; raises why it cannot be had."""
        async with AsyncExitStack() as sitting:
            self._seat = await sitting.enter_async_context(Seat.take(self.options, means))
            self._sitting = sitting.pop_all()
        self.surface.health.writes = True
        log.info("writer")
        return self._seat

    async def _leave(self) -> None:
        sitting, self._sitting, self._seat = self._sitting, None, None
        self.surface.health.writes = False
        if sitting is not None:
            await sitting.aclose()

    async def _watch(self) -> None:
        """Look at the index and at its writer's heartbeat, for ever."""
        health, index = self.surface.health, self.surface.index
        while True:
            try:
                health.see(*await run_to_completion(index.heartbeat))
            except CapdexError as error:
                health.blind(error)
            await asyncio.sleep(BEAT_S)

    def _report(self, now: Progress) -> None:
        health = self.surface.health
        before, was_following = health.at, health.following
        health.report(now)
        if now.trouble is not None:
            trouble = now.trouble
            if before.trouble is None or before.trouble.message != trouble.message:
                why = f"{trouble.message}: {trouble.why}".removesuffix(": ")
                log.warning("waiting", code=str(trouble.code), why=why)
        elif before.trouble is not None:
            log.info("going on", position=health.position())
        if now.undone:
            log.warning("reorg undone", blocks=now.undone, position=health.position())
        if health.following and not was_following:
            log.info("following", position=health.position(), events=now.log_head.count)
        elif now.block and before.block and not health.following:
            passed = now.block.number // SAY_BLOCKS > before.block.number // SAY_BLOCKS
            if passed:
                log.info("backfill", position=health.position(), events=now.log_head.count)


async def _open_means(options: NodeOptions, stack: AsyncExitStack) -> Means:
    """Check the chain and open whatever a writer works with."""
    registry = _address(options.registry)
    verifier = Verifier()
    rpc = await stack.enter_async_context(
        Rpc(options.rpc_urls, transport=AiohttpTransport(), read_reply=verifier.read_reply)
    )
    place = await locate_registry(
        rpc, chain_id=options.chain_id, registry=registry, start_block=options.start_block
    )
    deployment = Deployment(
        options.chain_id, checksum_address(registry), place.start_block, place.genesis
    )
    sources = [open_ipfs(spec) for spec in options.ipfs]
    for source in sources:
        stack.push_async_callback(source.close)
    await stack.enter_async_context(verifier)
    blocks = BlockDirectory(options.blocks)
    votes = await _votes(options.votes, rpc, deployment) if options.votes else None
    return Means(rpc, deployment, votes, tuple(sources), verifier, blocks)


async def _votes(address: str, rpc: Rpc, registry: Deployment) -> Deployment:
    """The votes beside the registry; said in the log where an endpoint knows none yet.

    They are followed all the same: it may be behind, or they may be deployed later.
    """
    contract = _address(address)
    with suppress(Unavailable):  # no start waits for votes
        if not await rpc.code(contract):
            log.warning("no contract of votes yet", address=address, endpoint=rpc.endpoint)
    # they cannot be older than the registry they are for
    return replace(registry, registry=checksum_address(contract))


def _address(text: str) -> bytes:
    digits = text.removeprefix("0x")
    if not _ADDRESS.fullmatch(digits):
        raise UsageError(
            f"{text[:80]!r} is not an address", fix="write the registry as 0x and 40 hex digits"
        )
    raw = bytes.fromhex(digits)
    spelled = checksum_address(raw)
    if digits not in (digits.lower(), digits.upper()) and text != spelled:
        raise UsageError(
            f"{text} has a wrong checksum", why=f"its EIP-55 spelling is {spelled}",
            fix="check the address digit by digit",
        )  # fmt: skip
    return raw
