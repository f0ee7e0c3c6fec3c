"""Raw logs of a registry, and the log head that leaves none of them out (P13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from capdex.keccak import keccak

# Tuples, not dataclasses: a backfill makes tens of thousands of them a second.


class LogPosition(NamedTuple):
    """Where a log stands: block (number, 32-byte hash), 32-byte transaction hash, log index."""

    block_number: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int


class RawLog(NamedTuple):
    """A log as the chain gives it: 20-byte address, 32-byte topics, data."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    position: LogPosition


@dataclass(frozen=True, slots=True)
class LogHead:
    """The contract's log slot: a 24-byte running hash and the number of events folded into it."""

    head: bytes = bytes(24)
    count: int = 0

    def fold(self, log: RawLog) -> LogHead:
        """The head after one more log: keccak(slot ‖ keccak(topics ‖ keccak(data)))."""
        entry = keccak(b"".join((*log.topics, keccak(log.data))))
        return LogHead(keccak(self.word + entry)[:24], self.count + 1)

    @property
    def word(self) -> bytes:
        """The 32-byte storage word: head, then the count as uint64."""
        return self.head + self.count.to_bytes(8, "big")
