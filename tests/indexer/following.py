"""A chain reader and the walk over it, run beside a test that waits for what it should reach."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from capdex.events import LogHead, RawLog
from capdex.net.rpc import Rpc
from indexer.chain import ChainReader
from indexer.steps import BlockRef, Blocks, Decoded
from indexer.sync import Progress, index

FAIL_AFTER_S = 30.0  # a hang's end; no test waits for it


@dataclass(frozen=True)
class At:
    block: BlockRef
    log: LogHead


class Rows:
    """What the walk stores, in memory: the log heads by block, and the logs."""

    def __init__(self) -> None:
        self.at: list[At] = []
        self.logs: list[RawLog] = []
        self.decoded: list[Decoded] = []

    def cursor(self) -> At | None:
        return self.at[-1] if self.at else None

    def ring(self) -> list[BlockRef]:
        return [at.block for at in self.at][-80:]

    def append(self, step: Blocks, decoded: list[Decoded]) -> None:
        log = self.at[-1].log if self.at else LogHead()
        for block in step.blocks:
            for raw in step.logs:
                if raw.position.block_number == block.number:
                    log = log.fold(raw)
            self.at.append(At(block, log))
        self.logs += step.logs
        self.decoded += decoded

    def rollback(self, fork: BlockRef) -> None:
        while self.at and self.at[-1].block.number > fork.number:
            self.at.pop()
        if not self.at:
            self.at.append(At(fork, LogHead()))
        self.logs = [log for log in self.logs if log.position.block_number <= fork.number]


class Following:
    """`async with Following(urls, …) as it: await it.until(lambda: …)`."""

    def __init__(
        self,
        urls: list[str],
        *,
        registry: bytes,
        rows: Any = None,
        chain_id: int = 1,
        start_block: int = 0,
        finality_depth: int = 8,
        poll_interval_s: float = 0.01,
    ) -> None:
        self.rows = Rows() if rows is None else rows
        self.rpc = Rpc(urls)
        self.reports: list[Progress] = []
        self.reader = ChainReader(
            self.rpc,
            registry=registry,
            chain_id=chain_id,
            start_block=start_block,
            finality_depth=finality_depth,
            poll_interval_s=poll_interval_s,
            ring=self.rows.ring(),
        )
        self._chain_id, self._news = chain_id, asyncio.Event()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(
            index(
                self.reader,
                self.rows,
                chain_id=self._chain_id,
                committed=asyncio.Event(),
                report=self._report,
            )
        )
        return self

    def _report(self, progress: Progress) -> None:
        self.reports.append(progress)
        self._news.set()

    async def __aexit__(self, *exc: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.rpc.close()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until `reached`, looked at after each report; fail with the walk if it fails."""
        async with asyncio.timeout(FAIL_AFTER_S):
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
            cursor = self.rows.cursor()
            return cursor is not None and cursor.block.hash == block_hash

        await self.until(reached)

    @property
    def troubles(self) -> list[Any]:
        return [progress.trouble for progress in self.reports if progress.trouble]
