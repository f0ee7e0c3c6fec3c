"""A node in a thread of this process: its clock can be set, its connection told to refuse."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from nodes import wait_until

from capdex.encoding.abi import checksum_address
from capdex.problems import Verdict
from capdex_indexer.monitoring.health import Health
from capdex_indexer.node.node import Node, NodeOptions

T = TypeVar("T")


class Beside:
    """A running node; made by `open`."""

    def __init__(self, options: dict[str, Any], clock_off_s: float) -> None:
        self.clock_off_s = clock_off_s
        self._options = NodeOptions(**options, clock=lambda: time.time() + self.clock_off_s)
        self._node: Node | None = None
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._fault: BaseException | None = None

    @classmethod
    @contextmanager
    def open(cls, world: Any, db: str, *, clock_off_s: float = 0.0) -> Iterator[Beside]:
        """A node on `db`, ended on leaving."""
        world.lives += 1
        blocks = Path(world.nodes.folder / f"kept-{world.lives}")
        address = bytes.fromhex(world.author.registry.address[2:])
        options = {
            "rpc_urls": (world.url,),
            "chain_id": 31337,
            "registry": checksum_address(address),
            "db": db,
            "blocks": blocks,
            "ipfs": (f"dir:{world.author.blocks.path}",),
            "serve": frozenset({Verdict.VERIFIED}),
            "poll_interval_s": 0.1,
        }
        self = cls(options, clock_off_s)
        self._thread.start()
        try:
            self.wait_for(lambda: self._node is not None, "it was open")
            yield self
        finally:
            if self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join()

    def _live(self) -> None:
        self._task = self._loop.create_task(self._run())
        try:
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._task)
        except BaseException as error:  # noqa: BLE001 - told by whoever waits
            self._fault = error
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _run(self) -> None:
        async with Node.open(self._options) as node:
            self._node = node
            await node.run()

    @property
    def health(self) -> Health:
        assert self._node is not None
        return self._node.surface.health

    @property
    def codes(self) -> set[str]:
        """What it says is wrong."""
        return {fault["code"] for fault in self.health.faults()}

    @property
    def ready(self) -> bool:
        return not self.health.faults()

    def tried(self) -> bool:
        """Whether every release that waits has been tried once."""
        assert self._node is not None
        return not self._node.store.due(0.0, 1)

    def pragma(self, words: str) -> None:
        """Tell the writer's only connection something."""
        assert self._node is not None
        store = self._node.store
        with store._turn, closing(store._engine.raw_connection()) as connection:
            connection.cursor().execute(f"PRAGMA {words}")

    def wait_for(self, condition: Callable[[], T], what: str) -> T:
        """As `nodes.wait_until`; raises what ended the node."""

        def unless_ended() -> T:
            if self._fault is not None:
                raise AssertionError(f"the node ended before {what}: {self._fault!r}")
            return condition()

        return wait_until(unless_ended, what)
