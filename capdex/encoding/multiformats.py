"""Multiformats: unsigned varints (LEB128 of 64 bits), and multibase in base58btc (`z…`)."""

from __future__ import annotations

from capdex.errors import InvalidInput

MAX_BYTES = 10  # of a varint: 64 bits in groups of seven
MAX_BASE58_CHARS = 512  # keys and signatures have under 100; decoding costs the square of this

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}


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


def encode_multibase(data: bytes) -> str:
    """`z` and the base58btc digits of `data`."""
    number, digits = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        digits = _ALPHABET[digit] + digits
    return "z" + "1" * (len(data) - len(data.lstrip(b"\0"))) + digits


def decode_multibase(text: str) -> bytes:
    """The bytes of a `z…` text; raises InvalidInput. Every byte string has one such text."""
    if not text.startswith("z") or len(text) > MAX_BASE58_CHARS:
        raise InvalidInput(
            f"{text[:80]!r} is not multibase base58btc",
            why=f"it starts with z and has at most {MAX_BASE58_CHARS} characters",
        )
    number = 0
    for character in text[1:]:
        if character not in _VALUES:
            raise InvalidInput(f"{character!r} is not a base58btc digit", why="0, O, I, l are not")
        number = number * 58 + _VALUES[character]
    zeros = len(text) - 1 - len(text[1:].lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
