"""Raw logs of a registry, and the log head that leaves none of them out (P13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from capdex.encoding.keccak import keccak


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
class LogColumns:
    """Logs by column, one list an attribute, each log's topics joined.

    A backfill moves tens of thousands of logs a second, and has no time to make an object of each.
    """

    addresses: list[bytes] = field(default_factory=list)
    block_numbers: list[int] = field(default_factory=list)
    block_hashes: list[bytes] = field(default_factory=list)
    tx_hashes: list[bytes] = field(default_factory=list)
    log_indexes: list[int] = field(default_factory=list)
    topics: list[bytes] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, logs: Iterable[RawLog]) -> LogColumns:
        """The columns of these logs."""
        rows = [(address, *at, b"".join(topics), data) for address, topics, data, at in logs]
        return cls(*map(list, zip(*rows, strict=True)))

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[RawLog]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, at: int) -> RawLog:
        where = self.block_numbers, self.block_hashes, self.tx_hashes, self.log_indexes
        position = LogPosition(*(column[at] for column in where))  # type: ignore[arg-type]
        return RawLog(self.addresses[at], split(self.topics[at]), self.data[at], position)

    def __add__(self, more: LogColumns) -> LogColumns:
        columns = [getattr(self, name) + getattr(more, name) for name in LogColumns.__slots__]
        return LogColumns(*columns)

    def blocks(self) -> set[tuple[int, bytes]]:
        """The blocks that they say they are of: number and hash."""
        return set(zip(self.block_numbers, self.block_hashes, strict=True))

    def entries(self) -> list[bytes]:
        """What each adds to the log head."""
        return list(map(entry, self.topics, self.data))


def entry(topics: bytes, data: bytes) -> bytes:
    """What a log adds to the log head: keccak(topics ‖ keccak(data))."""
    return keccak(topics + keccak(data))


def split(topics: bytes) -> tuple[bytes, ...]:
    """The 32-byte topics of a log that were joined."""
    return tuple([topics[at : at + 32] for at in range(0, len(topics), 32)])


class LogHead(NamedTuple):
    """The contract's log slot: a 24-byte running hash and the number of events folded into it."""

    head: bytes = bytes(24)
    count: int = 0  # type: ignore[assignment] # a tuple has a method of that name

    def fold(self, log: RawLog) -> LogHead:
        """The head after one more log."""
        return self.through([entry(b"".join(log.topics), log.data)])[0]

    def through(self, entries: Iterable[bytes]) -> list[LogHead]:
        """The head after each of some more logs, by what they add: keccak(slot ‖ entry)."""
        (head, count), heads = self, []
        for entry in entries:
            head = keccak(head + count.to_bytes(8, "big") + entry)[:24]
            count += 1
            heads.append(LogHead(head, count))
        return heads

    @property
    def word(self) -> bytes:
        """The 32-byte storage word: head, then the count as uint64."""
        return self.head + self.count.to_bytes(8, "big")
