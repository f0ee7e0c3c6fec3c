"""Read the canonical chain as one stream of steps: block ranges, and reorgs.

Up to the finalised block, or the finality depth, in ranges (`backfill`), above it block by block
(`live`); forks are found by `reorg`. This module decides the order in which they act.

A block is final when the chain says so, by its tag `finalized`. The finality depth counts only for
a chain without the tag.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing, suppress

from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.new_heads import wake_on_heads
from capdex.net.rpc.types import Header, read_header
from capdex.net.tasks import both, end
from capdex.registry.logs import BlockRef
from capdex_indexer.chain.backfill import Backfill
from capdex_indexer.chain.live import MAX_LIVE_BLOCKS, LiveReader
from capdex_indexer.chain.log_head import RECENT, LogHeadReader
from capdex_indexer.chain.reorg import Accepted, ReorgDetector
from capdex_indexer.projection.block_range import BlockRange, ChainChanged, Reorg

DEV_CHAIN_ID = 31337  # Anvil and Hardhat: the one chain an index may follow backwards
MAX_UNSETTLED = 20  # looks in a row at which the endpoint contradicted itself
TAG_PATIENCE_S = 60.0  # a node that has just started may not know the final block yet
LEAST_PAUSE_S = 0.1  # some endpoints announce a thousand heads a second, of blocks not there yet
NEAR = 8  # blocks below the head: nearly always they stay, and every node has their state
COMPARE_S = 60.0  # how often the heads of all endpoints are compared
MAX_BEHIND = 32  # blocks: the fastest chains make some while endpoints are asked


class ChainReader:
    """The chain from `start_block` on, for one registry; `reorgs.resume` sets another position.

    `registry` is a 20-byte address. A step counts as taken once the next one is requested: a stream
    that is opened again begins with the step that was not taken. `on_idle` gets the head and the
    finalised block whenever nothing is left to read. `accepted` returns the hash of a block that
    an operator accepted in place of a final one, or None.
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
        accepted: Accepted | None = None,
    ) -> None:
        rpc.expect(chain_id)
        self.rpc = rpc
        self.on_idle: Callable[[int, int], None] = lambda head, finalized: None
        self._is_dev = chain_id == DEV_CHAIN_ID
        self._start_block = start_block
        self._finality_depth = finality_depth
        self._poll_interval_s = poll_interval_s
        self.reorgs = ReorgDetector(
            rpc, start_block=start_block, is_dev=self._is_dev, accepted=accepted
        )
        self.log_heads = LogHeadReader(rpc, registry)
        self._backfill = Backfill(rpc, registry, self.log_heads)
        self.range_sizer = self._backfill.range_sizer  # what a range covers, and the limit
        self._live = LiveReader(rpc, registry, self.log_heads)
        self._finalized = 0  # by the newest head
        self._deep = 0  # up to here blocks are read in ranges: final, or under the finality depth
        # Anvil's tag is 0, or two blocks deep. A chain that was seen to have the tag keeps it.
        self._has_finalized_tag: bool | None = False if self._is_dev else None
        self._tag_near: Header | None = None  # a tag above the finality depth when it was given
        self._tag_missed_at: float | None = None
        self._tag_again_at = -math.inf
        self._new_head = asyncio.Event()
        self._heads: dict[str, int] = {}  # of each endpoint, as last compared
        self._compared_at = -math.inf

    async def steps(self) -> AsyncGenerator[BlockRange | Reorg, None]:
        """Backfill, then follow the head until cancelled.

        Raises RpcError if no endpoint answers, Unavailable(STALLED) if an operator must decide;
        nothing is lost by opening the stream again.
        """
        unsettled, awaited, ranged = 0, -1, False
        async with AsyncExitStack() as stack:
            for url in self.rpc.websockets:
                task = asyncio.create_task(wake_on_heads(url, self._new_head))
                stack.push_async_callback(end, [task])
            if not self.rpc.alone:
                comparing = asyncio.create_task(self._leave_lagging_endpoints())
                stack.push_async_callback(end, [comparing])
            while True:
                self._new_head.clear()
                try:
                    head = await self._read_head()
                    if fork := await self.reorgs.find_fork(head):
                        yield Reorg(fork)
                        self.reorgs.cut(fork)
                    elif self._next > head.number:
                        self.on_idle(head.number, self._finalized)
                        in_vain, awaited = awaited == self._next, self._next
                        await self._wait(pause=in_vain)
                    # After ranges a few blocks more are read as the newest ones: while a range is
                    # read a fast chain grows, and its head would never be reached.
                    elif self._next <= self._deep - (MAX_LIVE_BLOCKS if ranged else 0):
                        ranged = True
                        async with aclosing(self._deep_steps(head)) as deep_steps:
                            async for step in deep_steps:
                                yield step
                                self.reorgs.take(step)
                    else:
                        ranged = False
                        headers = await self._live.headers(self._next, head)
                        self.reorgs.check_parent(headers[0])
                        tag, final = self._tag_near, self._finalized
                        if tag and any(header.hash == tag.hash for header in headers):
                            final = max(final, tag.number)
                        step = await self._live.block_range(headers, head.number, final)
                        yield step
                        self.reorgs.take(step)
                        self._live.reset_rereads()
                    unsettled = 0
                except ChainChanged as changed:
                    unsettled += 1
                    if unsettled > MAX_UNSETTLED:
                        raise self.rpc.blame(str(changed)) from None
                    await self._wait(pause=True)

    async def reread(
        self, after: BlockRef | None, last: int | None = None
    ) -> AsyncGenerator[BlockRange, None]:
        """Iterate over the blocks after one, or from the start, as they are shown now.

        They end with block `last`, or near the head, and do not count as taken. Raises as `steps`
        does, and ChainChanged.
        """
        first, near = after.number + 1 if after else self._start_block, 0
        while True:
            head = await self._read_head()  # it moves on while much is read
            upto = max(self._deep, head.number - NEAR) if last is None else last
            if first > upto - near:
                return
            # `upto + RECENT` as the head: state that is not served is not insisted on
            ranges = self._backfill.ranges(first, upto, upto + RECENT, self._finalized)
            async with aclosing(ranges):
                async for _, step in ranges:
                    yield step
            first, near = upto + 1, MAX_LIVE_BLOCKS  # a fast chain always has some more

    def narrow_ranges(self, last: int) -> None:
        """Ask for fewer blocks at once: logs up to block `last` were left out without a word."""
        blocks = last - self._next + 1  # none for what was read again
        if last <= self._deep:
            self.range_sizer.shrink(blocks if blocks > 0 else self.range_sizer.blocks)

    async def block_before_all(self) -> BlockRef:
        """Return a block before everything that was read."""
        return await self.reorgs.block_before_all(await self._read_head())

    # ---------------------------------------------------------------------------------- inside

    @property
    def _next(self) -> int:
        tip = self.reorgs.tip
        return tip.number + 1 if tip else self._start_block

    async def _wait(self, *, pause: bool) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_interval_s):
                await asyncio.sleep(LEAST_PAUSE_S if pause else 0)
                await self._new_head.wait()

    async def _read_head(self) -> Header:
        """Return the head; set what is final: the chain's tag, or a depth where it has none.

        The block below stands for the head of an endpoint that cannot give the newest logs.
        """
        head, tag = await both(self.rpc.block("latest"), self._finalized_tag())
        able = self.rpc.abilities
        if head and head.number and able.newest_logs is False and able.logs_by_hash is False:
            head = await self.rpc.block_of(head.parent)
        if head is None:
            raise self.rpc.blame("it knows no latest block")
        depth = max(head.number - self._finality_depth, 0)
        final = depth if self._has_finalized_tag is False else self._final_by_tag(tag, head, depth)
        self._finalized = final if self._is_dev else max(final, self.reorgs.settled)
        self._deep = max(depth, self._finalized)
        return head

    def _final_by_tag(self, tag: Header | None, head: Header, depth: int) -> int:
        """Return the number of the final block, 0 if it is not known.

        A tag may be of another node behind the same address, and the head on a fork: above the
        finality depth, or the head, it counts once its own block was read.
        """
        near = self._tag_near
        final = [x.number for x in (near, tag) if x and self.reorgs.holds(x)]
        if tag and tag.number <= head.number:
            final.append(min(tag.number, depth))
            self._tag_near = tag
        elif tag and not (near and self._next <= near.number <= tag.number):
            self._tag_near = tag
        return max(final, default=0)

    async def _finalized_tag(self) -> Header | None:
        """Return the block of the chain's tag `finalized`; None as long as it is not known.

        A chain that is taken to have no tag is asked again every TAG_PATIENCE_S: an endpoint may
        have refused for another reason.
        """
        now = asyncio.get_running_loop().time()
        if self._is_dev or now < self._tag_again_at:
            return None
        knows_tag = True
        try:
            block = await self.rpc.finalized_block()
        except RpcError as error:
            if not error.is_refusal:
                return None  # said at the next look, or by another endpoint
            unknown = error.fault is RpcFault.UNKNOWN_BLOCK
            block, knows_tag = None, unknown or not await self.rpc.lacks("finalized")
        if block is not None or self.rpc.abilities.finalized:
            self._has_finalized_tag = True
        elif not self._has_finalized_tag:
            self._tag_missed_at = self._tag_missed_at or now
            if not knows_tag or now - self._tag_missed_at > TAG_PATIENCE_S:
                self._has_finalized_tag, self._tag_again_at = False, now + TAG_PATIENCE_S
        return block

    async def _deep_steps(self, head: Header) -> AsyncGenerator[BlockRange, None]:
        deep, finalized = min(self._deep, head.number), min(self._finalized, head.number)
        ranges = self._backfill.ranges(self._next, deep, head.number, finalized)
        async with aclosing(ranges):
            async for first, step in ranges:
                self.reorgs.check_parent(first)
                yield step

    async def _leave_lagging_endpoints(self) -> None:
        """Compare the heads of all endpoints; leave one that stands still or is far behind.

        Such an endpoint answers as if all were well. Runs beside the reading, since others may
        take long to answer.
        """
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(max(0.0, self._compared_at + COMPARE_S - clock()))
            answers = await self.rpc.survey("eth_getBlockByNumber", ["latest", False], read_header)
            heads = {x.label: x.answer.number for x in answers if isinstance(x.answer, Header)}
            before, self._heads, self._compared_at = self._heads, heads, clock()
            label = self.rpc.endpoint
            if label in heads:
                number, newest = heads[label], max(heads.values())
                still = before.get(label) == number
                if newest - number > (1 if still else MAX_BEHIND):
                    how = "stands still" if still else "is far behind"
                    self.rpc.blame(f"it {how} at block {number}, others are at {newest}", label)
