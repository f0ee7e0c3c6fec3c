"""Storage layout of the registry contract: slot keys, and how words are decoded (P13).

Slots and words are 32 bytes. Decoders raise ValueError for a word that the contract never writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capdex.encoding.keccak import keccak
from capdex.uri import name_id
from capdex.version import MAX_VERSION_CHARS

WORD: Final = 32
ZERO: Final = bytes(WORD)
MAX_INLINE: Final = 30  # bytes of a version that fit into its release word
MAX_SHORT: Final = 31  # bytes of a Solidity string that fit into its slot

YANKED: Final = 0x01
DEPRECATED: Final = 0x02


def mapped(key: bytes, slot: bytes) -> bytes:
    """Return the slot of `key` in the Solidity mapping at `slot`; both are 32 bytes."""
    return keccak(key.rjust(WORD, b"\0") + slot)


def record_slot(name: str) -> bytes:
    """Return the slot of the record of a name."""
    return mapped(name_id(name), _number(1))


def digest_slot(name: str, semver: str) -> bytes:
    """Return the slot of the sha256 of a release; zero there means no release."""
    return mapped(keccak(semver.encode("ascii")), mapped(name_id(name), _number(3)))


def release_slot(name: str, index: int) -> bytes:
    """Return the slot of flags and version of the release at an index."""
    return mapped(_number(index), mapped(name_id(name), _number(4)))


def long_semver_slots(name: str, index: int, length: int) -> list[bytes]:
    """Return the slots of a version of over 30 bytes: a Solidity string of `length` bytes."""
    head = mapped(_number(index), mapped(name_id(name), _number(5)))
    if length <= MAX_SHORT:
        return [head]
    first = int.from_bytes(keccak(head), "big")
    return [head, *(_number((first + i) % 2**256) for i in range(-(-length // WORD)))]


@dataclass(frozen=True, slots=True)
class NameWord:
    """The word of a name on chain: `flags (4) ‖ epoch (4) ‖ releaseCount (4) ‖ owner (20)`.

    `owner` is 20 bytes, zero where the name is unclaimed (epoch 0) or renounced.
    """

    owner: bytes
    release_count: int
    epoch: int
    deprecated: bool

    @classmethod
    def read(cls, word: bytes) -> NameWord:
        """Decode a word; raises ValueError."""
        flags, epoch, count = (int.from_bytes(word[i : i + 4], "big") for i in (0, 4, 8))
        if flags > 1:
            raise ValueError(f"a name has unknown flags {flags:#x}")
        return cls(word[12:], count, epoch, bool(flags))

    @property
    def claimed(self) -> bool:
        """True if the name was ever claimed."""
        return any(self.owner) or self.epoch > 0


@dataclass(frozen=True, slots=True)
class ReleaseWord:
    """One entry of a name's list: `flags (1) ‖ length of the version (1) ‖ version (30)`.

    `semver` is None where the version is longer than 30 bytes and so stored in further slots.
    """

    yanked: bool
    deprecated: bool
    length: int
    semver: str | None

    @classmethod
    def read(cls, word: bytes) -> ReleaseWord:
        """Decode a word; raises ValueError, also for zero, which means no release."""
        flags, length, text = word[0], word[1], word[2:]
        if flags & ~(YANKED | DEPRECATED) or not 0 < length <= MAX_VERSION_CHARS:
            raise ValueError("a word is not that of a release")
        inline = length <= MAX_INLINE
        kept = length if inline else 0
        if any(text[kept:]):
            raise ValueError("a word holds more than the version of its release")
        semver = text[:length].decode("ascii") if inline else None
        return cls(bool(flags & YANKED), bool(flags & DEPRECATED), length, semver)


def read_long_semver(words: Sequence[bytes], length: int) -> str:
    """Decode the words of `long_semver_slots` as a Solidity string; raises ValueError."""
    if length <= MAX_SHORT:
        (word,) = words
        text, rest = word[:length], word[length:]
        expected = bytes(MAX_SHORT - length) + bytes([2 * length])
    else:
        head, *tail = words
        whole = b"".join(tail)
        text, rest = whole[:length], head + whole[length:]
        expected = _number(2 * length + 1) + bytes(len(whole) - length)
    if rest != expected:
        raise ValueError("a version is not the string that its release announces")
    return text.decode("ascii")


def _number(value: int) -> bytes:
    return value.to_bytes(WORD, "big")
