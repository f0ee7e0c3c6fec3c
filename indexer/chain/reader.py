"""Reading the canonical chain as one stream of steps: pieces of it, and where it forked.

Below the finalised block, ranges of `eth_getLogs` (`indexer.chain.backfill`); above it, block by
block
(`indexer.chain.live`); where the two chains part, `indexer.chain.reorg`. Here is the order in
which they act.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing

from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.new_heads import wake_on_heads
from capdex.net.rpc.types import Header, read_header
from capdex.net.tasks import both, end
from capdex.registry.events import LogHead
from indexer.chain.backfill import Backfill
from indexer.chain.live import Tail
from indexer.chain.log_head import RECENT, LogSlot
from indexer.chain.range_sizer import Span
from indexer.chain.reorg import Accepted, Forks
from indexer.projection.block_range import BlockRef, Blocks, Moved, Reorg

DEV_CHAIN_ID = 31337  # Anvil and Hardhat: the one chain an index may follow backwards
MAX_UNSETTLED = 20  # looks in a row at which the endpoint contradicted itself
NEAR = 8  # blocks below the head: nearly always they stay, and everybody has their state
COMPARE_S = 60.0  # how often the heads of all endpoints are compared
MAX_BEHIND = 32  # blocks: the fastest chains make some while endpoints are asked


async def _nothing() -> bytes | None:
    return None


class ChainReader:
    """The chain after the last block of `ring`, for one registry.

    `registry` is a 20-byte address, `ring` the newest stored blocks in ascending order. A step
    counts as taken once the next one is asked for: whoever leaves the stream and opens it again is
    given the same step anew, and whoever has not stored all that was taken goes back by `resume`.
    `on_idle` is told the head and the finalised block at each look that finds nothing left to read.
    `accepted` is asked, where the chain contradicts what was final, for the hash of a block that an
    operator accepted.
    """

    def __init__(
        self,
        rpc: Rpc,
        *,
        registry: bytes,
        chain_id: int,
        start_block: int,
        finality_depth: int,
        poll_interval_s: float,
        ring: Sequence[BlockRef],
        accepted: Accepted = _nothing,
    ) -> None:
        rpc.expect(chain_id)
        self.rpc = rpc
        self.on_idle: Callable[[int, int], None] = lambda head, finalized: None
        self._registry = registry
        self._is_dev = chain_id == DEV_CHAIN_ID
        self._start_block = start_block
        self._finality_depth = finality_depth
        self._poll_interval_s = poll_interval_s
        self._forks = Forks(
            rpc,
            ring,
            start_block=start_block,
            finality_depth=finality_depth,
            is_dev=self._is_dev,
            accepted=accepted,
        )
        self._slot = LogSlot(rpc, registry)
        self._backfill = Backfill(rpc, registry, self._slot)
        self._tail = Tail(rpc, registry, self._slot)
        self._finalized = 0  # by the newest head
        self._has_finalized_tag = not self._is_dev  # Anvil's is 0, or two blocks deep
        self._bell = asyncio.Event()
        self._heads: dict[str, int] = {}  # of each endpoint, as last compared
        self._compared_at = -math.inf

    @property
    def span(self) -> Span:
        """How many blocks a range covers, and the limit learned."""
        return self._backfill.span

    async def steps(self) -> AsyncGenerator[Blocks | Reorg, None]:
        """Backfill, then follow, for ever.

        Raises RpcError when no endpoint answers, Unavailable(STALLED) when the chain cannot be
        followed without a person's decision; nothing is lost by opening the stream again.
        """
        unsettled = 0
        async with AsyncExitStack() as stack:
            for url in self.rpc.websockets:
                task = asyncio.create_task(wake_on_heads(url, self._bell))
                stack.push_async_callback(end, [task])
            if not self.rpc.alone:
                stack.push_async_callback(end, [asyncio.create_task(self._watch())])
            while True:
                self._bell.clear()
                try:
                    head = await self._look()
                    if fork := await self._forks.find(head):
                        yield Reorg(fork)
                        self._forks.cut(fork)
                    elif self._next > head.number:
                        self.on_idle(head.number, self._finalized)
                        await self._wait()
                    elif self._next <= self._finalized:
                        async with aclosing(self._final(head)) as pieces:
                            async for piece in pieces:
                                yield piece
                                self._forks.take(piece)
                    else:
                        piece = await self._newest(head)
                        yield piece
                        self._forks.take(piece)
                        self._tail.taken()
                    unsettled = 0
                except Moved as moved:
                    unsettled += 1
                    if unsettled > MAX_UNSETTLED:
                        raise self.rpc.blame(str(moved)) from None
                    await self._wait()

    def resume(self, ring: Sequence[BlockRef], finalized: int) -> None:
        """Go on after the last of these blocks, the newest stored ones.

        `finalized` is how far was final when they were read: of the newer ones, any may be gone.
        """
        self._forks.resume(ring, finalized)

    async def slot_at(self, block: BlockRef) -> LogHead | None:
        """The contract's own log slot after a block; None where that state is not served."""
        return await self._slot.old(block.hash)

    async def again(
        self, after: BlockRef | None, last: int | None = None
    ) -> AsyncGenerator[Blocks, None]:
        """The blocks after one, or from the start, as they are shown now; none counts as taken.

        They end with block `last`, or near the head. Raises as `steps` does, and Moved.
        """
        first = after.number + 1 if after else self._start_block
        while True:
            head = await self._look()  # it moves on while much is read
            upto = max(self._finalized, head.number - NEAR) if last is None else last
            if first > upto:
                return
            # as from far beyond: whatever state is not served now is not insisted on
            async with aclosing(self._backfill.ranges(first, upto, upto + RECENT)) as ranges:
                async for found in ranges:
                    yield found.step(head.number, self._finalized)
            first = upto + 1

    async def bottom(self) -> BlockRef:
        """A block before everything that was read."""
        return await self._forks.bottom(await self._look())

    # ---------------------------------------------------------------------------------- inside

    @property
    def _next(self) -> int:
        tip = self._forks.tip
        return tip.number + 1 if tip else self._start_block

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._poll_interval_s):
                await self._bell.wait()
        except TimeoutError:
            pass

    async def _look(self) -> Header:
        """The head; what counts as finalised follows from it, or from the chain's own word."""
        head, tagged = await both(self.rpc.block("latest"), self._finalized_tag())
        if head is None:
            raise self.rpc.blame("it knows no latest block")
        deep = max(min(tagged, head.number), head.number - self._finality_depth, 0)
        self._finalized = deep if self._is_dev else max(deep, self._forks.settled)
        return head

    async def _finalized_tag(self) -> int:
        if not self._has_finalized_tag:
            return 0
        try:
            block = await self.rpc.block("finalized")
        except RpcError as error:
            if error.fault in (RpcFault.RATE, RpcFault.TRANSIENT, RpcFault.TIMEOUT):
                raise
            self._has_finalized_tag = error.fault is RpcFault.UNKNOWN_BLOCK
            return 0
        return block.number if block else 0

    async def _final(self, head: Header) -> AsyncGenerator[Blocks, None]:
        finalized = min(self._finalized, head.number)
        async with aclosing(self._backfill.ranges(self._next, finalized, head.number)) as ranges:
            async for found in ranges:
                self._forks.check_parent(found.first)
                yield found.step(head.number, finalized)

    async def _newest(self, head: Header) -> Blocks:
        headers = await self._tail.headers(self._next, head)
        self._forks.check_parent(headers[0])
        return await self._tail.step(headers, head.number, self._finalized)

    async def _watch(self) -> None:
        """Leave an endpoint that stands still, or is far behind: it answers as if all were well.

        Beside the reading, since others may take long to say how far they are.
        """
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(max(0.0, self._compared_at + COMPARE_S - clock()))
            said = await self.rpc.survey("eth_getBlockByNumber", ["latest", False], read_header)
            heads = {one.label: one.said.number for one in said if isinstance(one.said, Header)}
            before, self._heads, self._compared_at = self._heads, heads, clock()
            label = self.rpc.endpoint
            if label in heads:
                number, newest = heads[label], max(heads.values())
                still = before.get(label) == number
                if newest - number > (1 if still else MAX_BEHIND):
                    how = "stands still" if still else "is far behind"
                    self.rpc.blame(f"it {how} at block {number}, others are at {newest}", label)
