"""Where the chain stopped being the one that was read, and whether that may be believed.

Only a different block at a height is evidence of a reorg; an endpoint that is behind, or has no
answer, never is. What was final is undone on nobody's word alone: a second endpoint says the same,
or an operator accepts it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from capdex.errors import Code, Unavailable
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.types import Header, hex_, read_header
from indexer.chain.fork_choice import Word, weigh
from indexer.projection.block_range import BlockRef, Blocks, Moved

MIN_RING = 1024  # as many as are stored: an accepted reorg is followed to its fork that deep
RING_SLACK = 16
LAG_SWITCH_S = 5.0  # then another endpoint is asked
LAG_PATIENCE_S = 60.0  # then somebody should look

Accepted = Callable[[], Awaitable[bytes | None]]


class Forks:
    """The newest blocks that were read (`ring`, ascending), and what of them is settled.

    `accepted` gives the hash of a block that an operator accepted as the chain's, if any.
    """

    def __init__(
        self,
        rpc: Rpc,
        ring: Sequence[BlockRef],
        *,
        start_block: int,
        finality_depth: int,
        is_dev: bool,
        accepted: Accepted,
    ) -> None:
        self.settled = ring[-1].number - finality_depth if ring else 0  # final when last taken
        self._rpc, self._is_dev, self._accepted = rpc, is_dev, accepted
        self._start_block = start_block
        self._ring = deque(ring, maxlen=max(finality_depth + RING_SLACK, MIN_RING))
        self._behind_since: float | None = None

    @property
    def tip(self) -> BlockRef | None:
        """The newest block read."""
        return self._ring[-1] if self._ring else None

    def resume(self, ring: Sequence[BlockRef], finalized: int) -> None:
        """Go on after the last of these, whatever else was read; final is what `finalized` says."""
        self._ring.clear()
        self._ring.extend(ring)
        self.settled = min(max(self.settled, finalized), ring[-1].number if ring else 0)

    def take(self, piece: Blocks) -> None:
        """A piece of chain was read."""
        self._ring.extend(piece.blocks)
        self.settled = max(self.settled, min(piece.finalized, piece.upto.number))

    def cut(self, fork: BlockRef) -> None:
        """Everything above `fork` was undone."""
        while self._ring and self._ring[-1].number >= fork.number:
            self._ring.pop()
        self._ring.append(fork)
        self.settled = min(self.settled, fork.number)

    def check_parent(self, first: Header) -> None:
        """Raise Moved unless `first` stands on the tip, where it is the next one."""
        tip = self.tip
        if tip and tip.number + 1 == first.number and first.parent != tip.hash:
            raise Moved(f"block {first.number} does not stand on block {tip.number}")

    async def find(self, head: Header) -> BlockRef | None:
        """The fork block, if the chain no longer holds our newest one.

        Raises Moved, RpcError, or Unavailable(STALLED) when a person must decide.
        """
        tip = self.tip
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
        elif not self._is_dev and (kept.number if kept else self._start_block - 1) < self.settled:
            await self._contest(reached[reached.index(kept) + 1 if kept else 0])
        return kept or await self.bottom(head)

    async def bottom(self, head: Header) -> BlockRef:
        """A block before everything that was read."""
        below = min([self._start_block, *(ref.number for ref in self._ring)]) - 1
        number = min(max(below, 0), head.number)
        header = await self._rpc.block(number)
        if header is None:
            raise Moved(f"it has no block {number}, below its own head")
        return BlockRef.of(header)

    async def _newest_kept(self, refs: list[BlockRef]) -> BlockRef | None:
        size = 1  # nearly always the newest one or two
        while refs:
            chunk, refs = refs[-size:], refs[:-size]
            found = await self._rpc.blocks([ref.number for ref in chunk])
            for ref, header in zip(reversed(chunk), reversed(found), strict=True):
                if header is None:
                    raise Moved(f"it has no block {ref.number}, below its own head")
                if header.hash == ref.hash:
                    return ref
            size *= 8
        return None

    async def _contest(self, ours: BlockRef) -> None:
        """Return if a chain without `ours`, the lowest block contradicted, is to be followed."""
        asked = self._rpc.endpoint
        heard = await self._rpc.survey(
            "eth_getBlockByNumber", [hex(ours.number), False], read_header
        )
        words = [
            Word(one.label, one.origin, one.said.hash if isinstance(one.said, Header) else None)
            for one in heard
        ]
        theirs = next((word.hash for word in words if word.label == asked), None)
        if theirs is None or theirs == ours.hash:
            raise Moved(f"it says one thing and another of block {ours.number}")
        finding = weigh(ours.hash, words)
        if finding.gone == theirs or (not finding.gone and await self._is_accepted(ours)):
            return
        if finding.gone:
            raise self._rpc.blame("it is on a chain of its own", asked)
        for liar in finding.liars:
            self._rpc.blame(f"it contradicts block {ours.number}, which others hold", liar)
        if finding.liars:
            raise Moved(f"{', '.join(finding.liars)} contradicts what others hold to be final")
        raise Unavailable(
            "the chain was reorganised deeper than its finality",
            Code.STALLED,
            why=f"block {ours.number} was {hex_(ours.hash)} and final, and {asked} alone now shows "
            f"{hex_(theirs)} there; if that is real, run `capdex node accept {hex_(theirs)}`",
            fix="compare with sources of your own; accept the block, or replace the endpoint",
            details={"block": ours.number, "ours": hex_(ours.hash), "theirs": hex_(theirs)},
        )

    async def _is_accepted(self, ours: BlockRef) -> bool:
        hash_ = await self._accepted()
        block = await self._rpc.block_of(hash_) if hash_ else None
        if block is None or block.hash != hash_ or block.number < ours.number:
            return False
        canonical = await self._rpc.block(block.number)
        return canonical is not None and canonical.hash == hash_

    def _check_patience(self, head: Header, tip: BlockRef) -> None:
        now = asyncio.get_running_loop().time()
        self._behind_since = self._behind_since or now
        behind, label = tip.number - head.number, self._rpc.endpoint
        if now - self._behind_since > LAG_SWITCH_S and not self._rpc.alone:
            self._rpc.blame(f"it is {behind} blocks behind the index")
        if now - self._behind_since > LAG_PATIENCE_S:
            raise Unavailable(
                f"the RPC endpoint is {behind} blocks behind the index",
                Code.STALLED,
                why=f"endpoint {label} is at block {head.number}, the index at {tip.number}",
                fix="wait until it has caught up, or add another endpoint with --rpc-url",
            )
