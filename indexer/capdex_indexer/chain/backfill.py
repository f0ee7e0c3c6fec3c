"""Read blocks up to the finalised one: ranges of `eth_getLogs`, some ahead of the consumer."""

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
from capdex.registry.logs import LogHead
from capdex_indexer.chain.log_head import RECENT, LogHeadReader
from capdex_indexer.projection.block_range import BlockRange, ChainChanged, LogReader, LogRows

MAX_SKIPPED = 64  # ranges; near the head, the log head is always compared
RANGES_AHEAD = 3  # on the wire, being decoded, and at hand while the consumer writes

# The range sizer.
TARGET_BYTES = 2 * 1024 * 1024  # larger replies are slower per log, on every client
TARGET_LOGS = 1_500  # the registry's logs that take about as many bytes
FIRST_BLOCKS = 16  # a first range that is too dense holds up all others
MAX_BLOCKS = 100_000
FEW_BLOCKS = 8  # a rate limit for so few, or for fewer, means the calls
MAX_GROWTH = 4  # one thin range must not make the next one enormous
FIRST_CALM = 8  # ranges after a refusal until a little more is asked for
MAX_CALM = 512  # a provider's fixed limit is hit no more often than once in so many ranges

FoundRange = tuple[Header, BlockRange]  # with the header of its first block


@dataclass(slots=True)
class RangeSizer:
    """The number of `blocks` that the next `eth_getLogs` covers, and the `limit` by refusals.

    After some ranges without a refusal the limit is raised by a quarter; after twice as many if the
    last raise was refused, after half as many if it was not. A refused raise is taken back.
    """

    blocks: int = FIRST_BLOCKS
    limit: int = MAX_BLOCKS
    _answered: int = 0  # the widest range that was answered, until one as narrow is refused
    _calm: int = 0
    _needed: int = FIRST_CALM
    _raised: bool = False  # since the last refusal

    def learn(self, blocks: int, logs: int, size: int) -> None:
        """Adapt to a reply of `size` bytes with `logs` logs in `blocks` blocks."""
        fullness = max(logs / TARGET_LOGS, size / TARGET_BYTES, 1e-9)
        self._answered = max(self._answered, blocks)
        self._calm += 1
        if self._calm >= self._needed:
            if self._raised:
                self._needed = max(self._needed // 2, FIRST_CALM)
            self._calm, self._raised = 0, True
            self.limit = min(self.limit + self.limit // 4 + 1, MAX_BLOCKS)
        wanted = int(min(blocks / fullness, MAX_BLOCKS))
        self.blocks = max(1, min(wanted, self.blocks * MAX_GROWTH, self.limit))

    def shrink(self, blocks: int, hint: int | None = None, *, costly: bool = False) -> int:
        """Adapt to the refusal of `blocks` blocks; return how many to ask for instead.

        `hint` is the number that the endpoint suggests. A `costly` refusal took long to tell from
        an outage or a limit of calls: the widest range that was answered is asked for instead, and
        the next raise comes later. One refusal of as few blocks as were answered before may be by
        chance, and lowers no limit.
        """
        if hint is not None and hint >= blocks:
            hint = None
        less = max(1, blocks // 2 if hint is None else hint)
        if blocks <= self._answered and hint is None:
            self._answered = 0
            self.blocks = min(self.blocks, less)
            return less
        if hint is None:
            less = self._answered if costly and self._answered else max(less, self._answered)
        if blocks <= self.limit:  # ranges that were under way together are one refusal
            self._needed = min((4 if costly else 2) * self._needed, MAX_CALM)
        else:
            less = min(less, self.limit)
        self._calm, self._raised = 0, False
        self.limit = min(self.limit, less)
        self.blocks = min(self.blocks, self.limit)
        return less


class Backfill:
    """Reads final blocks; `range_sizer` learns from every reply."""

    def __init__(self, rpc: Rpc, registry: bytes, log_heads: LogHeadReader) -> None:
        self.range_sizer = RangeSizer()
        self._rpc, self._registry, self._log_heads = rpc, registry, log_heads
        self._skip, self._skipped = 0, 1  # ranges without a log head: still to skip, last skipped

    async def ranges(
        self, first: int, last: int, head: int, finalized: int
    ) -> AsyncGenerator[FoundRange, None]:
        """Iterate over contiguous ranges from block `first` to block `last`.

        `head` and `finalized` are the chain's. Raises ChainChanged, or RpcError if no endpoint
        answers.
        """
        running: deque[tuple[int, asyncio.Task[FoundRange]]] = deque()
        try:
            while True:
                while first <= last and len(running) <= RANGES_AHEAD:
                    upto = min(first + self.range_sizer.blocks - 1, last)
                    reading = self._range(first, upto, last, head, finalized)
                    running.append((upto, asyncio.create_task(reading)))
                    first = upto + 1
                if not running:
                    return
                wanted, task = running[0]
                answered = await task
                running.popleft()
                reached = answered[1].upto.number
                if reached < wanted:  # it was too wide, and so are those after it
                    await end([task for _, task in running])
                    running.clear()
                    first = reached + 1
                yield answered
        finally:
            await end([task for _, task in running])

    async def logs(self, first: int, last: int) -> tuple[LogRows, dict[int, int], int]:
        """Return the logs from block `first` on, the block times in them, and the last block read.

        That is block `last`, or an earlier one if the range was too large.
        """
        while True:
            blocks = last - first + 1
            read = LogReader(self._registry, first, last)
            try:
                (log_rows, times), size = await self._rpc.weighed_logs(
                    self._registry, first, last, read
                )
            except RpcError as error:
                if blocks == 1 and error.fault in (RpcFault.BEYOND_HEAD, RpcFault.UNKNOWN_BLOCK):
                    raise ChainChanged("it does not know blocks below its own head") from None
                rated = error.fault is RpcFault.RATE
                if blocks == 1 or (rated and blocks <= FEW_BLOCKS):
                    raise
                costly = rated or error.fault is RpcFault.TIMEOUT
                if costly or not error.answered:
                    # Raises in an outage, and where all calls are too many: the range stays.
                    await self._rpc.block("latest")
                # Endpoints agree on no words for a range that is too wide: any refusal may mean it,
                # and so may a page of what stands before them, a reply that is cut off, or none.
                less = self.range_sizer.shrink(blocks, error.blocks, costly=costly)
                if costly or not error.answered:
                    raise  # the next try asks for less
                last = first + less - 1
            else:
                self.range_sizer.learn(blocks, len(log_rows), size)
                return log_rows, times, last

    async def _range(
        self, first: int, last: int, newest: int, head: int, finalized: int
    ) -> FoundRange:
        (log_rows, times, reached), ends = await both(
            self.logs(first, last), read_headers(self._rpc, sorted({first, last}))
        )
        if reached < last:
            ends = await read_headers(self._rpc, sorted({first, reached}))
        log_blocks = log_rows.logs.blocks()
        with_logs = {number for number, _ in log_blocks}
        if not _are_plausible(times, ends):
            times = {}
        times.pop(max(with_logs, default=0), None)  # one header tells if hashes of logs are wrong
        inner, log_head = await both(
            read_headers(self._rpc, sorted(with_logs - times.keys() - {first, reached})),
            self._log_head_at(ends[-1], newest, head),
        )
        headers = {header.number: header for header in (*ends, *inner)}
        hashes = {number: header.hash for number, header in headers.items()}
        for number, hash_ in log_blocks:  # without a header, logs must agree with each other
            if hashes.setdefault(number, hash_) != hash_:
                raise ChainChanged(f"its logs and its block {number} disagree")
        times |= {number: header.timestamp for number, header in headers.items()}
        kept = sorted(headers.keys() & (with_logs | {reached}))
        refs = tuple(headers[number].ref for number in kept)
        return ends[0], BlockRange(log_rows, times, refs, refs[-1], head, finalized, log_head)

    async def _log_head_at(self, block: Header, newest: int, head: int) -> LogHead | None:
        """Return the log head; read it less and less often if an endpoint keeps no old state."""
        if self._skip and block.number <= newest - RECENT:
            self._skip -= 1
            return None
        log_head = await self._log_heads.at(block, head)
        self._skipped = 1 if log_head else min(2 * self._skipped, MAX_SKIPPED)
        self._skip = self._skipped - 1
        return log_head


async def read_headers(rpc: Rpc, numbers: Sequence[int]) -> list[Header]:
    """Return the headers at these heights; raise ChainChanged if one below the head is missing."""
    headers = [header for header in await rpc.blocks(numbers) if header is not None]
    if [header.number for header in headers] != list(numbers):
        raise ChainChanged("it has no block, or another, at a height below its own head")
    return headers


def _are_plausible(times: Mapping[int, int], ends: Sequence[Header]) -> bool:
    """True if block times never decrease between the two ends, whose headers are known."""
    first, last = ends[0], ends[-1]
    known = sorted({*times.items(), (first.number, first.timestamp), (last.number, last.timestamp)})
    return all(a < b and s <= t for (a, s), (b, t) in pairwise(known))
