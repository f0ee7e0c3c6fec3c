"""Raw logs of a registry, and the log head that leaves none of them out (P13)."""

from __future__ import annotations

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


def entry(log: RawLog) -> bytes:
    """What a log adds to the log head: keccak(topics ‖ keccak(data))."""
    return keccak(b"".join((*log.topics, keccak(log.data))))


class LogHead(NamedTuple):
    """The contract's log slot: a 24-byte running hash and the number of events folded into it."""

    head: bytes = bytes(24)
    count: int = 0  # type: ignore[assignment] # a tuple has a method of that name

    def fold(self, log: RawLog) -> LogHead:
        """The head after one more log."""
        return self.after(entry(log))

    def after(self, entry: bytes) -> LogHead:
        """The head after one more log, whose `entry` is known: keccak(slot ‖ entry)."""
        head, count = self
        return LogHead(keccak(head + count.to_bytes(8, "big") + entry)[:24], count + 1)

    @property
    def word(self) -> bytes:
        """The 32-byte storage word: head, then the count as uint64."""
        return self.head + self.count.to_bytes(8, "big")
