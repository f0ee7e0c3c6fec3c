"""Reference to one block of the chain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block by number, 32-byte hash, 32-byte parent hash and timestamp (seconds)."""

    number: int
    hash: bytes
    parent: bytes
    timestamp: int
