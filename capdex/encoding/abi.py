"""Values out of ABI data by bounds-checked slicing: `slot` counts its 32-byte words from 0.

Not a library call: what is not well-formed raises InvalidInput and nothing else, and a backfill
reads tens of thousands of events a second (docs/benchmarks.md).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

from capdex.encoding.keccak import keccak
from capdex.errors import InvalidInput, UsageError

MAX_STRING_BYTES: Final = 4096  # far over every P1–P3 limit; a longer one is hostile

_ZERO: Final = bytes(24)  # before every number that fits in uint64
_LENGTH: Final = struct.Struct(">24sQ")
_PUBLICATION: Final = struct.Struct(">24sQ24sQ24sQ24sQ32s")


def word(data: bytes, slot: int) -> bytes:
    """The 32 bytes of a slot."""
    content = data[slot * 32 : slot * 32 + 32]
    if len(content) != 32:
        raise InvalidInput("the event data is too short")
    return content


def unsigned(data: bytes, slot: int, bits: int) -> int:
    """A `uint<bits>`."""
    number = int.from_bytes(word(data, slot), "big")
    if number >> bits:
        raise InvalidInput(f"a number of the event does not fit in uint{bits}")
    return number


def signed(data: bytes, slot: int, bits: int) -> int:
    """An `int<bits>`."""
    number = int.from_bytes(word(data, slot), "big", signed=True)
    if not -1 << (bits - 1) <= number < 1 << (bits - 1):
        raise InvalidInput(f"a number of the event does not fit in int{bits}")
    return number


def address(data: bytes, slot: int) -> str:
    """An `address`, as EIP-55 text."""
    return account(word(data, slot))


@lru_cache(maxsize=4096)  # accounts recur
def account(padded: bytes) -> str:
    """An address padded to 32 bytes, as it stands in a slot or a topic, as EIP-55 text."""
    if any(padded[:12]):
        raise InvalidInput(f"0x{padded.hex()} is not an address")
    return checksum_address(padded[12:])


@lru_cache(maxsize=4096)  # accounts recur
def checksum_address(raw: bytes) -> str:
    """A 20-byte address as EIP-55 text."""
    if len(raw) != 20:
        raise InvalidInput("an address has 20 bytes")
    text = raw.hex()
    digest = keccak(text.encode("ascii")).hex()
    pairs = zip(text, digest, strict=False)
    return "0x" + "".join(c.upper() if int(d, 16) >= 8 else c for c, d in pairs)


def parse_address(text: str) -> str:
    """Return an address in any case as EIP-55 text; raise UsageError for a wrong checksum, too."""
    digits = text.removeprefix("0x")
    try:
        if len(digits) != 40:  # `fromhex` skips white space
            raise ValueError
        checked: str = checksum_address(bytes.fromhex(digits))
    except (ValueError, InvalidInput):
        raise UsageError(
            f"{text[:80]!r} is not an address", fix="write 0x and 40 hexadecimal digits"
        ) from None
    if digits not in (digits.lower(), digits.upper(), checked[2:]):
        raise UsageError(
            f"{text} has a wrong checksum",
            why=f"these digits are written {checked}",
            fix="copy the address again: a digit may be wrong",
        )
    return checked


def publication(data: bytes) -> tuple[int, str, str, str, bytes]:
    """`uint64, string, string, string, bytes32`: nine events of ten, so all of it at once."""
    try:
        zero, number, zero1, at1, zero2, at2, zero3, at3, digest = _PUBLICATION.unpack_from(data)
        if zero == zero1 == zero2 == zero3 == _ZERO and (at1 | at2 | at3) & 31 == 0:
            return number, _plain(data, at1), _plain(data, at2), _plain(data, at3), digest
    except (struct.error, OverflowError, ValueError):
        pass  # what is wrong with it, the readers of single values say
    return (unsigned(data, 0, 64), string(data, 1), string(data, 2), string(data, 3), word(data, 4))


def _plain(data: bytes, offset: int) -> str:
    zero, length = _LENGTH.unpack_from(data, offset)
    text = data[offset + 32 : offset + 32 + length]
    if length > MAX_STRING_BYTES or len(text) != length or zero != _ZERO:
        raise ValueError
    return text.decode()


def string(data: bytes, slot: int) -> str:
    """A `string` that the contract has looked at, and so is UTF-8."""
    try:
        return _bytes(data, slot).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("a string of the event is not UTF-8") from None


def words(data: bytes, slot: int) -> str:
    """A `string` of words for people.

    The contract takes any bytes there, and they must not hide what the event does: what is not
    UTF-8 shows as U+FFFD.
    """
    return _bytes(data, slot).decode("utf-8", "replace")


def _bytes(data: bytes, slot: int) -> bytes:
    offset = int.from_bytes(word(data, slot), "big")
    if offset % 32 or offset + 32 > len(data):
        raise InvalidInput("a string of the event points outside its data")
    length = int.from_bytes(data[offset : offset + 32], "big")
    if length > MAX_STRING_BYTES or offset + 32 + length > len(data):
        raise InvalidInput("a string of the event is longer than its data or its limit")
    return data[offset + 32 : offset + 32 + length]


def raw_address(text: str) -> bytes:
    """Return the 20 bytes of an address in any case; raise UsageError as `parse_address`."""
    return bytes.fromhex(parse_address(text)[2:])
