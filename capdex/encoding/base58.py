"""Base58 with Bitcoin's alphabet, as multibase writes it: `z…`."""

from __future__ import annotations

from capdex.errors import InvalidInput

MAX_BASE58_CHARS = 512  # keys and signatures have under 100; decoding costs the square of this

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}


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
