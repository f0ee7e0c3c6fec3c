"""Above the finalised block: block by block, each linked to the last, its logs by its hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import Header
from capdex.net.tasks import both
from capdex.registry.logs import LogColumns
from indexer.chain.backfill import read_headers
from indexer.chain.log_head import LogSlot
from indexer.projection.block_range import BlockRef, Blocks, Moved
from indexer.projection.log_rows import Drafts

MAX_TAIL_BLOCKS = 100  # one batch of headers, one of logs
MAX_DOUBTS = 3  # re-reads of a block whose bloom filter promises logs: it may err, rarely


class Tail:
    """Reads what may still be reorganised."""

    def __init__(self, rpc: Rpc, registry: bytes, slot: LogSlot) -> None:
        self._rpc, self._registry, self._slot = rpc, registry, slot
        self._doubts: Counter[bytes] = Counter()

    async def headers(self, first: int, head: Header) -> list[Header]:
        """The blocks from `first` on, linked by parent hashes, up to the head or MAX_TAIL_BLOCKS.

        Raises Moved.
        """
        if first == head.number:
            return [head]
        last = min(head.number, first + MAX_TAIL_BLOCKS - 1)
        headers = await read_headers(self._rpc, range(first, last + 1))
        for parent, child in pairwise(headers):
            if child.parent != parent.hash:
                raise Moved(f"its blocks {parent.number} and {child.number} are not linked")
        return headers

    async def step(self, headers: Sequence[Header], head: int, finalized: int) -> Blocks:
        """These blocks with their logs; raises Moved when the endpoint no longer knows one."""
        try:
            logs, slot = await both(
                self._rpc.logs_at(self._registry, headers), self._slot.at(headers[-1], head)
            )
        except RpcError as error:
            if error.fault in (RpcFault.UNKNOWN_BLOCK, RpcFault.BEYOND_HEAD):
                raise Moved("it no longer knows a block it has just shown") from None
            raise
        if slot is None:
            self._check_blooms(headers, logs)
        refs = tuple(map(BlockRef.of, headers))
        drafts = Drafts.of(sum(logs, start=LogColumns()))
        times = {header.number: header.timestamp for header in headers}
        return Blocks(drafts, times, refs, refs[-1], head, finalized, slot)

    def taken(self) -> None:
        """What was read is stored."""
        self._doubts.clear()

    def _check_blooms(self, headers: Sequence[Header], logs: Sequence[LogColumns]) -> None:
        # A node may show a block before it has indexed its logs. Where it serves the contract's
        # log slot that says so exactly; where not, the bloom filter does, with rare false alarms.
        for header, found in zip(headers, logs, strict=True):
            if found or not header.may_hold_logs_of(self._registry):
                continue
            self._doubts[header.hash] += 1
            if self._doubts[header.hash] <= MAX_DOUBTS:
                why = f"block {header.number} promises logs that it does not give"
                self._rpc.blame(why)  # another endpoint is asked next, if there is one
                raise Moved(why)
