"""An index node: chain and IPFS in, rows and blocks out, until it is cancelled."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from capdex.errors import UsageError
from capdex.events import checksum_address
from capdex.net.ipfs import BlockDirectory, open_ipfs
from capdex.net.rpc import Rpc
from capdex.problems import Verdict
from indexer.chain import ChainReader
from indexer.fetch import Fetcher
from indexer.health import Health
from indexer.http import Surface
from indexer.locate import locate
from indexer.search import Index
from indexer.store import Deployment, Store
from indexer.sync import Progress, index
from indexer.verifier import Verifier

log = structlog.get_logger(part="node")

SAY_BLOCKS = 10_000  # a backfill says where it is this often
_ADDRESS = re.compile(r"[0-9A-Fa-f]{40}")


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What a node needs to know; `start_block` None means: find the registry's first block."""

    rpc_urls: tuple[str, ...]
    chain_id: int
    registry: str
    db: str
    blocks: Path
    ipfs: tuple[str, ...]
    serve: frozenset[Verdict]
    start_block: int | None = None
    finality_depth: int = 64
    poll_interval_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Node:
    """An opened node: what its HTTP face reads, and its two loops."""

    surface: Surface
    chain_id: int
    store: Store
    reader: ChainReader
    fetcher: Fetcher
    committed: asyncio.Event

    @classmethod
    @asynccontextmanager
    async def open(cls, options: NodeOptions) -> AsyncIterator[Node]:
        """Check the chain, open the database and all else; everything is closed on leaving.

        Raises Refused (WRONG_CHAIN), UsageError (NO_CONTRACT, FOREIGN_DATABASE, UNREADABLE) or
        Unavailable (RPC_UNAVAILABLE, DATABASE_LOCKED, DATABASE_UNAVAILABLE): it does not start.
        """
        registry = _address(options.registry)
        async with AsyncExitStack() as stack:
            rpc = await stack.enter_async_context(Rpc(options.rpc_urls))
            place = await locate(
                rpc,
                chain_id=options.chain_id,
                registry=registry,
                start_block=options.start_block,
            )
            deployment = Deployment(
                options.chain_id, checksum_address(registry), place.start_block, place.genesis
            )
            store = await asyncio.to_thread(Store.open, options.db, deployment, serve=options.serve)
            stack.push_async_callback(asyncio.to_thread, store.close)
            reader_of_index = Index(options.db)
            stack.callback(reader_of_index.close)
            sources = [open_ipfs(spec) for spec in options.ipfs]
            for source in sources:
                stack.push_async_callback(source.close)
            verifier = await stack.enter_async_context(Verifier())
            blocks, committed = BlockDirectory(options.blocks), asyncio.Event()
            chain = ChainReader(
                rpc,
                registry=registry,
                chain_id=options.chain_id,
                start_block=place.start_block,
                finality_depth=options.finality_depth,
                poll_interval_s=options.poll_interval_s,
                ring=await asyncio.to_thread(store.ring),
            )
            fetcher = Fetcher(store, sources, verifier, blocks, committed=committed)
            surface = Surface(reader_of_index, blocks, Health())
            yield cls(surface, options.chain_id, store, chain, fetcher, committed)

    async def run(self) -> None:
        """Index, fetch and judge until cancelled; what ends either loop is raised."""
        walk = index(
            self.reader,
            self.store,
            chain_id=self.chain_id,
            committed=self.committed,
            report=self._report,
        )
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self.fetcher.run())
                loops.create_task(walk)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from group

    def _report(self, now: Progress) -> None:
        health = self.surface.health
        before, was_following = health.at, health.following
        health.report(now)
        if now.trouble is not None:
            trouble = now.trouble
            if before.trouble is None or before.trouble.message != trouble.message:
                log.warning("waiting", code=str(trouble.code), why=trouble.message)
        elif before.trouble is not None:
            log.info("going on", position=health.position())
        if now.undone:
            log.warning("reorg undone", blocks=now.undone, position=health.position())
        if health.following and not was_following:
            log.info("following", position=health.position(), events=now.log.count)
        elif now.block and before.block and not health.following:
            passed = now.block.number // SAY_BLOCKS > before.block.number // SAY_BLOCKS
            if passed:
                log.info("backfill", position=health.position(), events=now.log.count)


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
