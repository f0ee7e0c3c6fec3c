"""Reading the canonical chain as one stream of steps: pieces of it, and where it forked.

Below the finalised block, ranges of `eth_getLogs` whose span adapts, a few ahead of the consumer.
In the tail, block by block: each block's parent is the one before it, its logs are asked for by its
hash. A ring of recent blocks finds the fork when that no longer holds. Only a different block at a
height is evidence of a reorg; an endpoint that is behind, or has no answer, never is.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from capdex.errors import Code, Unavailable
from capdex.events import LogHead, RawLog
from capdex.keccak import keccak
from capdex.net.faults import Fault, RpcError
from capdex.net.heads import ring_on_heads
from capdex.net.rpc import Rpc
from capdex.net.wire import Header
from indexer.span import Span
from indexer.steps import BlockRef, Blocks, Reorg

DEV_CHAIN_ID = 31337  # Anvil and Hardhat: the one chain an index may follow backwards
MIN_RING = 64  # two epochs of Ethereum: what its nodes themselves may still reorganise
RING_SLACK = 16
MAX_TAIL_BLOCKS = 100  # one batch of headers, one of logs
RANGES_AHEAD = 2  # one on the wire and one at hand while the consumer writes
MAX_UNSETTLED = 20  # polls in a row at which the endpoint contradicted itself
MAX_DOUBTS = 3  # re-reads of a block whose bloom filter promises logs: it may err, rarely
LAG_PATIENCE_S = 60.0

_LOG = keccak(b"log()")[:4]

A = TypeVar("A")
B = TypeVar("B")


class _Moved(Exception):
    """The chain changed, or the endpoint contradicted itself, between two calls: look again."""


@dataclass(frozen=True, slots=True)
class _Range:
    first: Header
    last: Header
    logs: list[RawLog]
    headers: list[Header]
    slot: LogHead | None


class ChainReader:
    """The chain after the last block of `ring`, for one registry.

    `registry` is a 20-byte address, `ring` the newest stored blocks in ascending order. A step
    counts as taken once the next one is asked for: whoever leaves the stream and opens it again is
    given the same step anew. `on_idle` is told the head and the finalised block at each look that
    finds nothing left to read.
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
    ) -> None:
        self.rpc = rpc
        self.on_idle: Callable[[int, int], None] = lambda head, finalized: None
        self._registry = registry
        self._is_dev = chain_id == DEV_CHAIN_ID
        self._start_block = start_block
        self._finality_depth = finality_depth
        self._poll_interval_s = poll_interval_s
        self._ring = deque(ring, maxlen=max(finality_depth, MIN_RING) + RING_SLACK)
        self._finalized = 0  # by the newest head
        self._settled = ring[-1].number - finality_depth if ring else 0  # final when last taken
        self._has_finalized_tag = not self._is_dev  # Anvil's is 0, or two blocks deep
        self._serves_old_state = True
        self._span = Span()
        self._bell = asyncio.Event()
        self._doubts: Counter[bytes] = Counter()
        self._behind_since: float | None = None

    async def steps(self) -> AsyncGenerator[Blocks | Reorg, None]:
        """Backfill, then follow, for ever.

        Raises RpcError when no endpoint answers, Unavailable(STALLED) when the chain cannot be
        followed without a person's decision; nothing is lost by opening the stream again.
        """
        unsettled = 0
        async with AsyncExitStack() as stack:
            for url in self.rpc.websockets:
                task = asyncio.create_task(ring_on_heads(url, self.rpc.session, self._bell))
                stack.push_async_callback(_cancel, [task])
            while True:
                self._bell.clear()
                try:
                    head = await self._look()
                    if fork := await self._fork(head):
                        yield Reorg(fork)
                        self._cut(fork)
                    elif self._next > head.number:
                        self.on_idle(head.number, self._finalized)
                        await self._wait()
                    elif self._next <= self._finalized:
                        async with aclosing(self._backfill(head)) as pieces:
                            async for piece in pieces:
                                yield piece
                                self._take(piece)
                    else:
                        tail = await self._tail(head)
                        yield tail
                        self._take(tail)
                    unsettled = 0
                except _Moved as moved:
                    unsettled += 1
                    if unsettled > MAX_UNSETTLED:
                        raise self.rpc.blame(str(moved)) from None
                    await self._wait()

    async def log_at(self, block_hash: bytes) -> LogHead | None:
        """The contract's own log slot after a block; None where that state is not served."""
        try:
            data = await self.rpc.view(self._registry, _LOG, block_hash)
        except RpcError as error:
            if error.fault is Fault.RATE:
                raise
            return None
        return LogHead(data[:24], int.from_bytes(data[32:64], "big")) if len(data) == 64 else None

    async def last_sequence(self) -> int:
        """The highest sequence number the endpoint now shows up to our newest block, else 0."""
        first = self._ring[0].number if len(self._ring) > 1 else self._start_block
        logs = await self._logs(first, self._next - 1)
        return max(map(sequence_of, logs), default=0)

    async def rewind(self) -> BlockRef:
        """Go back to the oldest block of the ring, else to where the registry begins; return it.

        For a consumer who finds that what it stored is not what the contract says.
        """
        if len(self._ring) > 1:
            fork = self._ring[0]
        else:
            fork = await self._bottom(await self._look())
        self._cut(fork)
        return fork

    # ------------------------------------------------------------------------------ position

    @property
    def _next(self) -> int:
        return self._ring[-1].number + 1 if self._ring else self._start_block

    def _take(self, piece: Blocks) -> None:
        self._ring.extend(piece.blocks)
        self._settled = max(self._settled, min(piece.finalized, piece.upto.number))
        self._doubts.clear()

    def _cut(self, fork: BlockRef) -> None:
        while self._ring and self._ring[-1].number >= fork.number:
            self._ring.pop()
        self._ring.append(fork)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._poll_interval_s):
                await self._bell.wait()
        except TimeoutError:
            pass

    async def _look(self) -> Header:
        """The head; what counts as finalised follows from it, or from the chain's own word."""
        head, tagged = await _both(self.rpc.block("latest"), self._finalized_tag())
        if head is None:
            raise self.rpc.blame("it knows no latest block")
        deep = max(min(tagged, head.number), head.number - self._finality_depth, 0)
        self._finalized = deep if self._is_dev else max(deep, self._finalized)
        return head

    async def _finalized_tag(self) -> int:
        if not self._has_finalized_tag:
            return 0
        try:
            block = await self.rpc.block("finalized")
        except RpcError as error:
            if error.fault in (Fault.RATE, Fault.TRANSIENT):
                raise
            self._has_finalized_tag = error.fault is Fault.UNKNOWN_BLOCK
            return 0
        return block.number if block else 0

    # ---------------------------------------------------------------------------------- forks

    async def _fork(self, head: Header) -> BlockRef | None:
        """The fork block, if the chain no longer holds our newest one; raises STALLED."""
        tip = self._ring[-1] if self._ring else None
        if tip is None or tip.hash in (head.hash, head.parent):
            self._behind_since = None
            return None
        reached = [ref for ref in self._ring if ref.number <= head.number]
        kept = await self._newest_kept(reached)
        if kept is tip:
            self._behind_since = None
            return None
        if not reached or kept is reached[-1]:
            # Nothing contradicts us: the endpoint is behind. On a dev chain that is for good
            # (a snapshot reverted, a state file lost), elsewhere it catches up.
            if not self._is_dev:
                self._check_patience(head, tip)
                return None
        elif not self._is_dev and (kept is None or kept.number < self._settled):
            raise _stalled(
                "the chain was reorganised deeper than its finality",
                f"block {self._settled} was final, and {self.rpc.endpoint} now shows another chain",
                "check the endpoint against another one; if the reorg is real, index anew",
            )
        return kept or await self._bottom(head)

    async def _newest_kept(self, refs: list[BlockRef]) -> BlockRef | None:
        size = 1  # nearly always the newest one or two
        while refs:
            chunk, refs = refs[-size:], refs[:-size]
            found = await self.rpc.blocks([ref.number for ref in chunk])
            for ref, header in zip(reversed(chunk), reversed(found), strict=True):
                if header is None:
                    raise _Moved(f"it has no block {ref.number}, below its own head")
                if header.hash == ref.hash:
                    return ref
            size *= 8
        return None

    async def _bottom(self, head: Header) -> BlockRef:
        number = min(max(self._start_block - 1, 0), head.number)
        header = await self.rpc.block(number)
        if header is None:
            raise _Moved(f"it has no block {number}, below its own head")
        return _ref(header)

    def _check_patience(self, head: Header, tip: BlockRef) -> None:
        now = asyncio.get_running_loop().time()
        self._behind_since = self._behind_since or now
        if now - self._behind_since > LAG_PATIENCE_S:
            raise _stalled(
                f"the RPC endpoint is {tip.number - head.number} blocks behind the index",
                f"endpoint {self.rpc.endpoint} is at block {head.number}, the index at "
                f"{tip.number}",
                "wait until it has caught up, or add another endpoint with --rpc-url",
            )

    # ------------------------------------------------------------------------------- backfill

    async def _backfill(self, head: Header) -> AsyncGenerator[Blocks, None]:
        finalized, start = min(self._finalized, head.number), self._next
        running: deque[asyncio.Task[_Range]] = deque()
        try:
            while True:
                while start <= finalized and len(running) <= RANGES_AHEAD:
                    last = min(start + self._span.blocks - 1, finalized)
                    running.append(asyncio.create_task(self._range(start, last)))
                    start = last + 1
                if not running:
                    return
                found = await running[0]
                running.popleft()
                self._check_parent(found.first)
                refs = tuple(_ref(header) for header in found.headers)
                yield Blocks(tuple(found.logs), refs, refs[-1], head.number, finalized, found.slot)
        finally:
            await _cancel(running)

    async def _range(self, first: int, last: int) -> _Range:
        logs, ends = await _both(self._logs(first, last), self._headers(sorted({first, last})))
        inner = sorted({log.position.block_number for log in logs} - {first, last})
        headers, slot = await _both(self._headers(inner), self._old_slot(ends[-1].hash))
        by_number = {header.number: header for header in (*ends, *headers)}
        for log in logs:
            if by_number[log.position.block_number].hash != log.position.block_hash:
                raise _Moved(f"its logs and its block {log.position.block_number} disagree")
        kept = sorted({log.position.block_number for log in logs} | {last})
        return _Range(ends[0], ends[-1], logs, [by_number[number] for number in kept], slot)

    async def _logs(self, first: int, last: int) -> list[RawLog]:
        blocks = last - first + 1
        try:
            logs = await self.rpc.logs(self._registry, first, last)
        except RpcError as error:
            if error.fault in (Fault.BEYOND_HEAD, Fault.UNKNOWN_BLOCK):
                raise _Moved("it does not know blocks below its own head") from None
            if error.fault in (Fault.TOO_LARGE_RANGE, Fault.TRANSIENT):
                self._span.shrink(blocks)  # an endpoint that times out is asked for less, too
            if error.fault is not Fault.TOO_LARGE_RANGE or blocks == 1:
                raise
            middle = first + blocks // 2
            return await self._logs(first, middle - 1) + await self._logs(middle, last)
        self._span.learn(blocks, len(logs))
        return logs

    async def _headers(self, numbers: Sequence[int]) -> list[Header]:
        found = await self.rpc.blocks(numbers)
        headers = [header for header in found if header is not None]
        if [header.number for header in headers] != list(numbers):
            raise _Moved("it has no block, or another, at a height below its own head")
        return headers

    async def _old_slot(self, block_hash: bytes) -> LogHead | None:
        if not self._serves_old_state:
            return None
        slot = await self.log_at(block_hash)
        self._serves_old_state = slot is not None
        return slot

    # ----------------------------------------------------------------------------------- tail

    async def _tail(self, head: Header) -> Blocks:
        first = self._next
        last = min(head.number, first + MAX_TAIL_BLOCKS - 1)
        headers = [head]
        if first < head.number:
            headers = await self._headers(range(first, last + 1))
        self._check_parent(headers[0])
        for parent, child in pairwise(headers):
            if child.parent != parent.hash:
                raise _Moved(f"its blocks {parent.number} and {child.number} are not linked")
        try:
            logs, slot = await _both(
                self.rpc.logs_at(self._registry, headers), self.log_at(headers[-1].hash)
            )
        except RpcError as error:
            if error.fault in (Fault.UNKNOWN_BLOCK, Fault.BEYOND_HEAD):
                raise _Moved("it no longer knows a block it has just shown") from None
            raise
        if slot is None:
            self._check_blooms(headers, logs)
        refs = tuple(_ref(header) for header in headers)
        flat = tuple(log for found in logs for log in found)
        return Blocks(flat, refs, refs[-1], head.number, self._finalized, slot)

    def _check_parent(self, first: Header) -> None:
        tip = self._ring[-1] if self._ring else None
        if tip and tip.number + 1 == first.number and first.parent != tip.hash:
            raise _Moved(f"block {first.number} does not stand on block {tip.number}")

    def _check_blooms(self, headers: list[Header], logs: list[list[RawLog]]) -> None:
        # A node may show a block before it has indexed its logs. Where it serves the contract's
        # log slot that says so exactly; where not, the bloom filter does, with rare false alarms.
        for header, found in zip(headers, logs, strict=True):
            if found or not header.may_hold_logs_of(self._registry):
                continue
            self._doubts[header.hash] += 1
            if self._doubts[header.hash] <= MAX_DOUBTS:
                raise _Moved(f"block {header.number} promises logs that it does not give")


def sequence_of(log: RawLog) -> int:
    """The sequence number of a log of a registry: the first word of its data (P13)."""
    return int.from_bytes(log.data[:32], "big")


def _ref(header: Header) -> BlockRef:
    return BlockRef(header.number, header.hash, header.parent, header.timestamp)


def _stalled(message: str, why: str, fix: str) -> Unavailable:
    return Unavailable(message, Code.STALLED, why=why, fix=fix)


async def _both(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    # Unlike gather, it leaves nothing running behind when one of them fails.
    tasks = asyncio.create_task(first), asyncio.create_task(second)
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _cancel(tasks)


async def _cancel(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
