"""Unsigned varints: LEB128 of 64 bits, as protobuf, multiformats and CAR write lengths."""

from __future__ import annotations

from capdex.errors import InvalidInput

MAX_BYTES = 10  # 64 bits in groups of seven


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that starts at `at`, and where it ends.

    Raises InvalidInput if it is cut off, over 64 bits, or longer than it needs to be: a number has
    one spelling, as a CID has (P3).
    """
    value = 0
    for length in range(MAX_BYTES):
        if at + length >= len(data):
            raise InvalidInput("a varint is cut off", why=f"it starts at byte {at}")
        byte = data[at + length]
        value |= (byte & 0x7F) << (7 * length)
        if byte < 0x80:
            if value >> 64 or (byte == 0 and length):
                break
            return value, at + length + 1
    raise InvalidInput("a varint is over 64 bits or not in its shortest form", why=f"at byte {at}")


def write_varint(number: int) -> bytes:
    """The one spelling of a number that is not negative."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
