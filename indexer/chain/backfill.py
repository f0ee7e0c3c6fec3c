"""Below the finalised block: ranges of `eth_getLogs`, a few of them ahead of the consumer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import Header
from capdex.net.tasks import both, end
from capdex.registry.events import LogHead
from indexer.chain.log_head import RECENT, LogSlot
from indexer.chain.range_sizer import Span
from indexer.projection.block_range import BlockRef, Blocks, Moved
from indexer.projection.log_rows import Drafts, LogReader

MAX_SKIPPED = 64  # ranges; the head of the chain is compared with the contract's in any case
RANGES_AHEAD = 3  # on the wire, being read, and at hand while the consumer writes


@dataclass(frozen=True, slots=True)
class Range:
    """The logs from block `first` to block `last`, their blocks' times, the headers read."""

    first: Header
    last: Header
    drafts: Drafts
    times: Mapping[int, int]
    headers: list[Header]
    slot: LogHead | None

    def step(self, head: int, finalized: int) -> Blocks:
        """It, as the step it is."""
        refs = tuple(map(BlockRef.of, self.headers))
        return Blocks(self.drafts, self.times, refs, refs[-1], head, finalized, self.slot)


class Backfill:
    """Reads what is final; `span` learns from every reply."""

    def __init__(self, rpc: Rpc, registry: bytes, slot: LogSlot) -> None:
        self.span = Span()
        self._rpc, self._registry, self._slot = rpc, registry, slot
        self._skip, self._skipped = 0, 1  # ranges without asking for the slot: now, and next time

    async def ranges(self, first: int, last: int, head: int) -> AsyncGenerator[Range, None]:
        """Contiguous ranges from block `first` to block `last`, each as wide as is answered well.

        The chain's newest block is `head`. Raises Moved, or RpcError when nobody answers.
        """
        running: deque[tuple[int, asyncio.Task[Range]]] = deque()
        try:
            while True:
                while first <= last and len(running) <= RANGES_AHEAD:
                    upto = min(first + self.span.blocks - 1, last)
                    running.append(
                        (upto, asyncio.create_task(self._range(first, upto, last, head)))
                    )
                    first = upto + 1
                if not running:
                    return
                asked, task = running[0]
                found = await task
                running.popleft()
                if found.last.number < asked:  # it was too wide, and so are those after it
                    await end([task for _, task in running])
                    running.clear()
                    first = found.last.number + 1
                yield found
        finally:
            await end([task for _, task in running])

    async def logs(self, first: int, last: int) -> tuple[Drafts, dict[int, int], int]:
        """The logs from block `first` on, what they say of their blocks' times, and up to where.

        That is block `last`, or an earlier one.
        """
        while True:
            blocks = last - first + 1
            read = LogReader(self._registry, first, last)
            try:
                (drafts, times), size = await self._rpc.weighed_logs(
                    self._registry, first, last, read
                )
            except RpcError as error:
                if error.fault in (RpcFault.BEYOND_HEAD, RpcFault.UNKNOWN_BLOCK):
                    raise Moved("it does not know blocks below its own head") from None
                if error.fault is RpcFault.TIMEOUT:
                    self.span.shrink(blocks)  # one that is too slow is asked for less, too
                if error.fault is not RpcFault.TOO_LARGE_RANGE or blocks == 1:
                    raise
                last = first + self.span.shrink(blocks, error.blocks) - 1
            else:
                self.span.learn(blocks, len(drafts), size)
                return drafts, times, last

    async def _range(self, first: int, last: int, newest: int, head: int) -> Range:
        (drafts, times, reached), ends = await both(
            self.logs(first, last), read_headers(self._rpc, sorted({first, last}))
        )
        if reached < last:
            ends = await read_headers(self._rpc, sorted({first, reached}))
        said = drafts.logs.blocks()
        with_logs = {number for number, _ in said}
        if not _are_times(times, ends):
            times = {}
        inner, slot = await both(
            read_headers(self._rpc, sorted(with_logs - times.keys() - {first, reached})),
            self._slot_at(ends[-1], newest, head),
        )
        headers = {header.number: header for header in (*ends, *inner)}
        hashes = {number: header.hash for number, header in headers.items()}
        for number, hash_ in said:  # where no header was read, the logs must agree with each other
            if hashes.setdefault(number, hash_) != hash_:
                raise Moved(f"its logs and its block {number} disagree")
        times |= {number: header.timestamp for number, header in headers.items()}
        kept = [headers[number] for number in sorted(headers.keys() & (with_logs | {reached}))]
        return Range(ends[0], ends[-1], drafts, times, kept, slot)

    async def _slot_at(self, block: Header, newest: int, head: int) -> LogHead | None:
        """The slot, asked for ever less often where an endpoint keeps no old state."""
        if self._skip and block.number <= newest - RECENT:
            self._skip -= 1
            return None
        slot = await self._slot.at(block, head)
        self._skipped = 1 if slot else min(2 * self._skipped, MAX_SKIPPED)
        self._skip = self._skipped - 1
        return slot


async def read_headers(rpc: Rpc, numbers: Sequence[int]) -> list[Header]:
    """The headers at these heights, all below the endpoint's head; raises Moved where one lacks."""
    found = await rpc.blocks(numbers)
    headers = [header for header in found if header is not None]
    if [header.number for header in headers] != list(numbers):
        raise Moved("it has no block, or another, at a height below its own head")
    return headers


def _are_times(times: Mapping[int, int], ends: Sequence[Header]) -> bool:
    """Whether blocks can have been made then, between two whose headers are known."""
    first, last = ends[0], ends[-1]
    known = sorted({*times.items(), (first.number, first.timestamp), (last.number, last.timestamp)})
    return all(a < b and s <= t for (a, s), (b, t) in pairwise(known))
