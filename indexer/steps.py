"""What the chain reader hands to the store: pieces of canonical chain, and where it forked."""

from __future__ import annotations

from dataclasses import dataclass

from capdex.events import LogHead, RawLog


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block by number, 32-byte hash, 32-byte parent hash and timestamp (seconds)."""

    number: int
    hash: bytes
    parent: bytes
    timestamp: int


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
