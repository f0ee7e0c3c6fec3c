"""Find where the chain forked off the blocks that were read, and decide if that is followed.

| the endpoint                                      | what happens                             |
|---------------------------------------------------|------------------------------------------|
| shows another block above the finalised one       | the fork is returned                     |
| shows another block instead of a final one        | its chain is verified again; a quorum of |
|                                                   | endpoints or an operator must confirm it |
|                                                   | (`choose_fork`), or STALLED is raised    |
| is behind, or has no answer                       | nothing is undone; another one is asked  |
| is behind on a development chain                  | its newest block is the fork             |
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from capdex.encoding.hexadecimal import to_hex
from capdex.errors import Code, Unavailable
from capdex.net.rpc.client import EndpointAnswer, Rpc
from capdex.net.rpc.errors import RpcError
from capdex.net.rpc.types import Header, read_header
from capdex.registry.logs import BlockRef
from capdex_indexer.chain.backfill import read_headers
from capdex_indexer.projection.block_range import BlockRange, ChainChanged

RING = 1024  # as many as are stored: a reorg is followed to its fork that deep
LAG_SWITCH_S = 5.0  # then another endpoint is asked
LAG_PATIENCE_S = 60.0  # then the loop reports STALLED
QUORUM = 2  # origins

Accepted = Callable[[], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class ForkChoice:
    """The decision: `replaced_by` is the agreed other hash, `wrong` the endpoints that contradict.

    `wrong` is filled only while our block still stands; if both are empty, nothing can be decided.
    """

    replaced_by: bytes | None = None
    wrong: tuple[str, ...] = ()


def choose_fork(ours: bytes, reports: Sequence[EndpointAnswer[bytes | None]]) -> ForkChoice:
    """Decide by the hashes that all endpoints give if our final block is replaced or still stands.

    It is replaced only if at least QUORUM endpoints of different origin agree on another hash, and
    more of them than still hold ours.
    """
    origins: dict[bytes, set[str]] = {}
    for report in reports:
        if isinstance(report.answer, bytes):
            origins.setdefault(report.answer, set()).add(report.origin)
    for_ours = origins.pop(ours, set())
    other = max(origins, key=lambda hash_: (len(origins[hash_]), hash_), default=None)
    if other is not None and len(origins[other]) >= max(QUORUM, len(for_ours) + 1):
        return ForkChoice(replaced_by=other)
    if for_ours:
        others = (x.label for x in reports if isinstance(x.answer, bytes) and x.answer != ours)
        return ForkChoice(wrong=tuple(others))
    return ForkChoice()


def _read_hash(block: object) -> bytes | None:
    header = read_header(block)
    return None if header is None else header.hash


class ReorgDetector:
    """The newest blocks that were read (`ring`, ascending), and the number that is final of them.

    `accepted` returns the hash of a block that an operator accepted, or None.
    """

    def __init__(
        self, rpc: Rpc, *, start_block: int, is_dev: bool, accepted: Accepted | None
    ) -> None:
        self.settled = 0  # what was final when last taken, or when it was stored (`resume`)
        self._rpc, self._is_dev, self._accepted = rpc, is_dev, accepted
        self._start_block = start_block
        self._ring = deque[BlockRef](maxlen=RING)
        self._behind_since: float | None = None

    @property
    def tip(self) -> BlockRef | None:
        """The newest block read."""
        return self._ring[-1] if self._ring else None

    def holds(self, block: BlockRef) -> bool:
        """True if a block is among the newest that were read."""
        return any(ref.hash == block.hash for ref in self._ring)

    def resume(self, ring: Sequence[BlockRef], finalized: int) -> None:
        """Continue after the last block of `ring`; blocks up to `finalized` are final."""
        self._ring.clear()
        self._ring.extend(ring)
        self.settled = min(max(self.settled, finalized), ring[-1].number if ring else 0)

    def take(self, step: BlockRange) -> None:
        """Add the blocks of a step that was read."""
        self._ring.extend(step.blocks)
        self.settled = max(self.settled, min(step.finalized, step.upto.number))

    def cut(self, fork: BlockRef) -> None:
        """Remove everything above `fork`."""
        while self._ring and self._ring[-1].number >= fork.number:
            self._ring.pop()
        self._ring.append(fork)
        self.settled = min(self.settled, fork.number)

    def check_parent(self, first: Header) -> None:
        """Raise ChainChanged if `first`, the block after the tip, is not its child."""
        if self.tip and first.parent != self.tip.hash:
            raise ChainChanged(f"block {first.number} does not stand on block {self.tip.number}")

    async def find_fork(self, head: Header) -> BlockRef | None:
        """Return the fork block if the chain no longer holds the tip, else None.

        Raises ChainChanged, RpcError, or Unavailable(STALLED) if an operator must decide.
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
            # No block is contradicted: the endpoint is behind. A development chain stays behind
            # (a snapshot was reverted, a state file lost), any other catches up.
            if not self._is_dev:
                self._check_patience(head, tip)
                return None
        elif not self._is_dev:
            # Of blocks that were read in ranges only some are in the ring: the lowest one that is
            # contradicted says if what was final is.
            lowest = reached[reached.index(kept) + 1 if kept else 0]
            if (lowest.number if kept else self._start_block) <= self.settled:
                await self._confirm_replaced(lowest)
        return kept or await self.block_before_all(head)

    async def block_before_all(self, head: Header) -> BlockRef:
        """Return a block before everything that was read."""
        below = min([self._start_block, *(ref.number for ref in self._ring)]) - 1
        number = min(max(below, 0), head.number)
        (header,) = await read_headers(self._rpc, [number])
        return header.ref

    async def _newest_kept(self, refs: list[BlockRef]) -> BlockRef | None:
        size = 1  # nearly always the newest one or two
        while refs:
            chunk, refs = refs[-size:], refs[:-size]
            headers = await read_headers(self._rpc, [ref.number for ref in chunk])
            for ref, header in zip(reversed(chunk), reversed(headers), strict=True):
                if header.hash == ref.hash:
                    return ref
            size *= 8
        return None

    async def _confirm_replaced(self, ours: BlockRef) -> None:
        """Return if a chain without `ours`, the lowest contradicted block, may be followed."""
        endpoint = self._rpc.endpoint
        self._rpc.doubt()  # one that became an endpoint of another chain has no say
        reports = await self._rpc.survey(
            "eth_getBlockByNumber", [hex(ours.number), False], _read_hash
        )
        theirs = next((report.answer for report in reports if report.label == endpoint), None)
        if isinstance(theirs, RpcError):
            raise theirs
        if theirs in (None, ours.hash):
            raise ChainChanged(f"it says one thing and another of block {ours.number}")
        choice = choose_fork(ours.hash, reports)
        replaced = choice.replaced_by
        if replaced == theirs or (not replaced and await self._is_accepted(ours)):
            return
        if replaced:
            raise self._rpc.blame("it is on a chain of its own", endpoint)
        for label in choice.wrong:
            self._rpc.blame(f"it contradicts block {ours.number}, which others hold", label)
        if choice.wrong:
            raise ChainChanged(f"{', '.join(choice.wrong)} contradicts what others hold as final")
        raise Unavailable(
            "the chain was reorganised deeper than its finality",
            Code.STALLED,
            why=f"block {ours.number} was {to_hex(ours.hash)} and final, and {endpoint} alone now "
            f"shows {to_hex(theirs)} there; "
            f"if that is real, run `capdex node accept {to_hex(theirs)}`",
            fix="compare with sources of your own; accept the block, or replace the endpoint",
            details={"block": ours.number, "ours": to_hex(ours.hash), "theirs": to_hex(theirs)},
        )

    async def _is_accepted(self, ours: BlockRef) -> bool:
        hash_ = await self._accepted() if self._accepted else None
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
            self._rpc.doubt()  # a shorter chain may be another one: the next call shows it
            raise Unavailable(
                "the RPC endpoint is behind the index",
                Code.STALLED,
                why=f"endpoint {label} is at block {head.number}, the index at {tip.number}",
                fix="wait until it has caught up, or add another endpoint with --rpc-url",
            )
