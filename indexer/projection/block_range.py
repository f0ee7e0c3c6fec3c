"""The steps that the chain reader hands to the store: block ranges and reorgs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capdex.registry.block import BlockRef
from capdex.registry.events import LogHead
from indexer.projection.log_rows import LogRows


class ChainChanged(Exception):
    """The chain changed, or the endpoint contradicted itself, between two calls: read again."""


@dataclass(frozen=True, slots=True)
class BlockRange:
    """A contiguous range of the canonical chain after the cursor, up to and including `upto`.

    `log_rows` are of its logs in canonical order (block, log index); `times` are the timestamps of
    their blocks in seconds, by number. `blocks` are those whose headers were read, with `upto`.
    `head` and `finalized` are the block numbers that the endpoint reported.
    """

    log_rows: LogRows
    times: Mapping[int, int]
    blocks: tuple[BlockRef, ...]
    upto: BlockRef
    head: int
    finalized: int
    log_head: LogHead | None = None  # the contract's own after `upto`; None where not served

    def then(self, more: BlockRange) -> BlockRange:
        """Return this range joined with the one that follows it."""
        log_rows, times = self.log_rows + more.log_rows, {**self.times, **more.times}
        blocks = self.blocks + more.blocks
        return BlockRange(
            log_rows, times, blocks, more.upto, more.head, more.finalized, more.log_head
        )


@dataclass(frozen=True, slots=True)
class Reorg:
    """Everything above `fork` is gone from the canonical chain."""

    fork: BlockRef
