"""Blocks, raw logs of a registry, and the log head that shows missing or changed logs (P13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from capdex.encoding.keccak import keccak


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block by number, 32-byte hash, 32-byte parent hash and timestamp (seconds)."""

    number: int
    hash: bytes
    parent: bytes
    timestamp: int


class LogPosition(NamedTuple):
    """Position of a log: block number and hash, transaction hash (32 bytes each), log index."""

    block_number: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int


class RawLog(NamedTuple):
    """An undecoded log: 20-byte address, 32-byte topics, data, position."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    position: LogPosition


@dataclass(frozen=True, slots=True)
class LogColumns:
    """Logs in columns: one list for each attribute; the topics of a log are joined to one `bytes`.

    A backfill reads tens of thousands of logs a second; one object for each would be too slow.
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
        """Return the columns of these logs."""
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
        """Return the (number, hash) of every block that the logs name."""
        return set(zip(self.block_numbers, self.block_hashes, strict=True))

    def entries(self) -> list[bytes]:
        """Return the log head entry of each log."""
        return list(map(entry, self.topics, self.data))


def entry(topics: bytes, data: bytes) -> bytes:
    """Return the log head entry of one log: keccak(topics ‖ keccak(data))."""
    return keccak(topics + keccak(data))


def split(topics: bytes) -> tuple[bytes, ...]:
    """Split joined topics into their 32-byte parts."""
    return tuple([topics[at : at + 32] for at in range(0, len(topics), 32)])


class LogHead(NamedTuple):
    """The contract's log slot: a 24-byte running hash and the number of events folded into it."""

    head: bytes = bytes(24)
    count: int = 0  # type: ignore[assignment] # `tuple` has a method of this name

    def fold(self, log: RawLog) -> LogHead:
        """Return the head after one more log."""
        return self.through([entry(b"".join(log.topics), log.data)])[0]

    def through(self, entries: Iterable[bytes]) -> list[LogHead]:
        """Return the head after each of these log entries: keccak(slot ‖ entry)."""
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
