"""A chain reader and the walk over it, run beside a test that waits for what it should reach."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from capdex.encoding.abi import checksum_address
from capdex.net.rpc.aiohttp_transport import AiohttpTransport
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.transport import ReadReply, Transport, read_in_thread
from capdex.registry.logs import LogPosition, RawLog
from capdex_indexer.chain.reader import ChainReader
from capdex_indexer.store import Deployment, Store
from capdex_indexer.sync.loop import SyncProgress, follow_chain
from tests.indexer.tables import with_tables

FAIL_AFTER_S = 30.0  # a hang's end; no test waits for it


class Following:
    """`async with Following(urls, …) as it: await it.reach(head)`, into the database at `path`."""

    def __init__(
        self,
        urls: list[str],
        *,
        registry: bytes,
        path: Path,
        chain_id: int = 1,
        start_block: int = 0,
        finality_depth: int = 8,
        poll_interval_s: float = 0.01,
        read_reply: ReadReply = read_in_thread,
        transport: Transport | None = None,
        fail_after_s: float = FAIL_AFTER_S,
        **more: Any,
    ) -> None:
        self.path, self._registry, self._fail_after_s = path, registry, fail_after_s
        deployment = Deployment(chain_id, checksum_address(registry), start_block, bytes(32))
        url = f"sqlite:///{path}" if path.exists() else with_tables(path)
        self.store = Store.open(url, deployment)
        self.rpc = Rpc(urls, transport=transport or AiohttpTransport(), read_reply=read_reply)
        self.reports: list[SyncProgress] = []
        self.reader = ChainReader(
            self.rpc,
            registry=registry,
            chain_id=chain_id,
            start_block=start_block,
            finality_depth=finality_depth,
            poll_interval_s=poll_interval_s,
            **more,
        )
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(
            follow_chain(
                self.reader,
                self.store,
                committed=asyncio.Event(),
                report=self._report,
            )
        )
        return self

    def _report(self, progress: SyncProgress) -> None:
        self.reports.append(progress)
        self._news.set()

    async def __aexit__(self, *exc: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.rpc.close()
        self.store.close()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until `reached`, looked at after each report; fail with the walk if it fails."""
        async with asyncio.timeout(self._fail_after_s):
            while not reached():
                if self._task.done():
                    self._task.result()
                self._news.clear()
                waiter = asyncio.ensure_future(self._news.wait())
                await asyncio.wait({waiter, self._task}, return_when="FIRST_COMPLETED")
                waiter.cancel()

    async def reach(self, block_hash: bytes) -> None:
        """Wait until the newest stored block is this one."""

        def reached() -> bool:
            cursor = self.store.cursor()
            return cursor is not None and cursor.block.hash == block_hash

        await self.until(reached)

    @property
    def logs(self) -> list[RawLog]:
        """The logs as the index keeps them, in its order."""
        query = (
            "select topics, data, block_number, block_hash, tx_hash, log_index"
            " from event order by sequence"
        )
        with closing(sqlite3.connect(self.path)) as connection:
            return [
                RawLog(
                    self._registry,
                    tuple(topics[i : i + 32] for i in range(0, len(topics), 32)),
                    data,
                    LogPosition(*position),
                )
                for topics, data, *position in connection.execute(query)
            ]

    @property
    def troubles(self) -> list[Any]:
        """Each error that stopped the walk, once; further reports repeat the one that lasts."""
        return list({id(x.trouble): x.trouble for x in self.reports if x.trouble}.values())
