"""What the chain reader hands to the store: pieces of canonical chain, and where it forked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capdex.net.rpc.types import Header
from capdex.registry.events import LogHead
from indexer.projection.log_rows import Drafts


class Moved(Exception):
    """The chain changed, or the endpoint contradicted itself, between two calls: look again."""


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block by number, 32-byte hash, 32-byte parent hash and timestamp (seconds)."""

    number: int
    hash: bytes
    parent: bytes
    timestamp: int

    @classmethod
    def of(cls, header: Header) -> BlockRef:
        """What is kept of a header."""
        return cls(header.number, header.hash, header.parent, header.timestamp)


@dataclass(frozen=True, slots=True)
class Blocks:
    """A contiguous piece of canonical chain after the cursor, up to and including `upto`.

    `drafts` are of its logs in canonical order (block, log index); `times` are those of their
    blocks, in seconds, by number. `blocks` are the ones whose headers were read, `upto` among them.
    `head` and `finalized` are the block numbers the endpoint reported.
    """

    drafts: Drafts
    times: Mapping[int, int]
    blocks: tuple[BlockRef, ...]
    upto: BlockRef
    head: int
    finalized: int
    log: LogHead | None = None  # the contract's own log slot after `upto`, where that is served

    def then(self, more: Blocks) -> Blocks:
        """This piece and the one that follows it, as one."""
        drafts, times = self.drafts + more.drafts, {**self.times, **more.times}
        blocks = self.blocks + more.blocks
        return Blocks(drafts, times, blocks, more.upto, more.head, more.finalized, more.log)


@dataclass(frozen=True, slots=True)
class Reorg:
    """Everything above `fork` is gone from the canonical chain."""

    fork: BlockRef
