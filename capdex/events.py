"""Registry events: raw logs in, typed events out, and the log head that leaves none out (P13).

Decoding is bounds-checked slicing of ABI data, not a library call: one undecodable log must not
cost the range it came in, and a backfill decodes tens of thousands a second (docs/benchmarks.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from capdex.errors import InvalidInput
from capdex.keccak import keccak

MAX_STRING_BYTES = 4096  # far over every P1–P3 limit; a longer one is hostile

PUBLISHED: Final = keccak(b"Published(bytes32,address,uint64,string,string,string,bytes32)")
YANKED: Final = keccak(b"Yanked(bytes32,address,uint64,string,string,string)")
UNYANKED: Final = keccak(b"Unyanked(bytes32,address,uint64,string,string)")


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Where a log stands: block (number, 32-byte hash), 32-byte transaction hash, log index."""

    block_number: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int


@dataclass(frozen=True, slots=True)
class RawLog:
    """A log as the chain gives it: 20-byte address, 32-byte topics, data."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    position: LogPosition


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a publication claims, as text: everything `verify` needs of the chain.

    `publisher` is a checksummed address; nothing here has been judged yet.
    """

    chain_id: int
    publisher: str
    cap_uri: str
    semver: str
    cid: str
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Published:
    """A release was announced."""

    sequence: int
    name_id: bytes
    announcement: Announcement
    position: LogPosition


@dataclass(frozen=True, slots=True)
class YankChanged:
    """A release was yanked (with a reason) or un-yanked."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    semver: str
    yanked: bool
    reason: str
    position: LogPosition


Event = Published | YankChanged


@dataclass(frozen=True, slots=True)
class LogHead:
    """The contract's log slot: a 24-byte running hash and the number of events folded into it."""

    head: bytes = bytes(24)
    count: int = 0

    def fold(self, log: RawLog) -> LogHead:
        """The head after one more log: keccak(slot ‖ keccak(topics ‖ keccak(data)))."""
        entry = keccak(b"".join(log.topics) + keccak(log.data))
        return LogHead(keccak(self.word + entry)[:24], self.count + 1)

    @property
    def word(self) -> bytes:
        """The 32-byte storage word: head, then the count as uint64."""
        return self.head + self.count.to_bytes(8, "big")


def decode(log: RawLog, chain_id: int) -> Event:
    """Decode one registry log; raises InvalidInput for anything that is not a well-formed event."""
    if [len(topic) for topic in log.topics] != [32, 32, 32]:
        raise InvalidInput(
            f"a registry event has 3 topics of 32 bytes, this log {log.topics!r:.80}"
        )
    kind, name_id, account = log.topics
    if any(account[:12]):
        raise InvalidInput(f"0x{account.hex()} is not an address")
    by, data = checksum_address(account[12:]), log.data
    sequence = int.from_bytes(_word(data, 0), "big")
    if sequence >> 64:
        raise InvalidInput("the sequence number does not fit in uint64")
    if kind == PUBLISHED:
        announcement = Announcement(
            chain_id, by, _string(data, 1), _string(data, 2), _string(data, 3), _word(data, 4)
        )
        return Published(sequence, name_id, announcement, log.position)
    if kind in (YANKED, UNYANKED):
        yanked = kind == YANKED
        reason = _string(data, 3) if yanked else ""
        name, semver = _string(data, 1), _string(data, 2)
        return YankChanged(sequence, name_id, by, name, semver, yanked, reason, log.position)
    raise InvalidInput(f"0x{kind.hex()} is not a topic of the registry")


@lru_cache(maxsize=4096)  # publishers recur
def checksum_address(raw: bytes) -> str:
    """A 20-byte address as EIP-55 text."""
    if len(raw) != 20:
        raise InvalidInput("an address has 20 bytes")
    text = raw.hex()
    digest = keccak(text.encode("ascii")).hex()
    pairs = zip(text, digest, strict=False)
    return "0x" + "".join(c.upper() if int(d, 16) >= 8 else c for c, d in pairs)


def _word(data: bytes, slot: int) -> bytes:
    word = data[slot * 32 : slot * 32 + 32]
    if len(word) != 32:
        raise InvalidInput("the event data is too short")
    return word


def _string(data: bytes, slot: int) -> str:
    offset = int.from_bytes(_word(data, slot), "big")
    if offset % 32 or offset + 32 > len(data):
        raise InvalidInput("a string of the event points outside its data")
    length = int.from_bytes(data[offset : offset + 32], "big")
    if length > MAX_STRING_BYTES or offset + 32 + length > len(data):
        raise InvalidInput("a string of the event is longer than its data or its limit")
    try:
        return data[offset + 32 : offset + 32 + length].decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("a string of the event is not UTF-8") from None
