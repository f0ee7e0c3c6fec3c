"""Read blocks above the finalised one: each linked to its parent, its logs by block hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import Header
from capdex.net.tasks import both
from capdex.registry.logs import LogColumns
from capdex_indexer.chain.backfill import read_headers
from capdex_indexer.chain.log_head import LogHeadReader
from capdex_indexer.projection.block_range import BlockRange, ChainChanged, LogRows

MAX_LIVE_BLOCKS = 100  # at once: one batch of headers, one of logs
MAX_BLOOM_REREADS = 3  # of a block whose bloom filter promises logs: it is seldom wrong


class LiveReader:
    """Reads blocks that may still be reorganised."""

    def __init__(self, rpc: Rpc, registry: bytes, log_heads: LogHeadReader) -> None:
        self._rpc, self._registry, self._log_heads = rpc, registry, log_heads
        self._rereads, self._most = Counter[bytes](), MAX_LIVE_BLOCKS

    async def headers(self, first: int, head: Header) -> list[Header]:
        """Return at most MAX_LIVE_BLOCKS linked blocks from `first` on; raise ChainChanged.

        Until their logs are served, each time half as many: those of the newest may be missing.
        """
        if first == head.number:
            return [head]
        last = min(head.number, first + self._most - 1)
        self._most = max(1, (last - first + 1) // 2)
        headers = await read_headers(self._rpc, range(first, last + 1))
        for parent, child in pairwise(headers):
            if child.parent != parent.hash:
                raise ChainChanged(f"its blocks {parent.number} and {child.number} are not linked")
        return headers

    async def block_range(self, headers: Sequence[Header], head: int, finalized: int) -> BlockRange:
        """Return these blocks with their logs; raise ChainChanged if one is no longer known."""
        try:
            logs, log_head = await both(
                self._rpc.logs_at(self._registry, headers), self._log_heads.at(headers[-1], head)
            )
        except RpcError as error:
            if error.fault in (RpcFault.UNKNOWN_BLOCK, RpcFault.BEYOND_HEAD):
                raise ChainChanged("it no longer knows a block it has just shown") from None
            raise
        self._most = MAX_LIVE_BLOCKS
        if log_head is None:
            self._check_blooms(headers, logs)
        refs = tuple(header.ref for header in headers)
        log_rows = LogRows.of(sum(logs, start=LogColumns()))
        times = {header.number: header.timestamp for header in headers}
        return BlockRange(log_rows, times, refs, refs[-1], head, finalized, log_head)

    def reset_rereads(self) -> None:
        """Reset the counts of bloom filters read again; to be called once a step was taken."""
        self._rereads.clear()

    def _check_blooms(self, headers: Sequence[Header], logs: Sequence[LogColumns]) -> None:
        # A node may show a block before it has indexed its logs. The contract's log head reveals
        # that exactly; where it is not served, the bloom filter does, with rare false alarms.
        pairs = zip(headers, logs, strict=True)
        lacking = [x for x, own in pairs if not own and x.may_hold_logs_of(self._registry)]
        self._rereads.update(header.hash for header in lacking)
        for header in lacking:
            if self._rereads[header.hash] <= MAX_BLOOM_REREADS:
                why = f"block {header.number} promises logs that it does not give"
                self._rpc.blame(why)  # another endpoint is asked next, if there is one
                raise ChainChanged(why)
