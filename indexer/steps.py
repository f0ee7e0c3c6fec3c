"""What the chain reader hands to the store: pieces of canonical chain, and where it forked."""

from __future__ import annotations

from dataclasses import dataclass

from capdex.events import LogHead, RawLog
from capdex.net.wire import Header


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

    `logs` are in canonical order (block, log index); `blocks` holds at least every block that has a
    log, and `upto`. `head` and `finalized` are the block numbers the endpoint reported.
    """

    logs: tuple[RawLog, ...]
    blocks: tuple[BlockRef, ...]
    upto: BlockRef
    head: int
    finalized: int
    log: LogHead | None = None  # the contract's own log slot after `upto`, where that is served


@dataclass(frozen=True, slots=True)
class Reorg:
    """Everything above `fork` is gone from the canonical chain."""

    fork: BlockRef
