"""Plain scalars by the YAML 1.2 core schema (§10.3.2), within what JSON can carry (P7)."""

from __future__ import annotations

import re
from typing import Final

MAX_SAFE_INTEGER: Final = 2**53 - 1  # the same number in every JSON reader (RFC 8259 §6)
MAX_NUMBER_CHARS: Final = 64  # no double needs more; int() of a longer text costs quadratic time

WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_RADIX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)


class TooManyDigits(ValueError):
    """A number that not every reader reads as the same one."""


def bounded_int(text: str, base: int = 10) -> int:
    """`int(text, base)`; raises TooManyDigits beyond 2**53 - 1."""
    number = int(text, base) if len(text) <= MAX_NUMBER_CHARS else None
    if number is None or abs(number) > MAX_SAFE_INTEGER:
        raise TooManyDigits(f"{text[:24]} is not a number that every reader reads alike")
    return number


def bounded_float(text: str) -> float:
    """`float(text)`; raises TooManyDigits where it is out of range or absurdly long."""
    number = float(text) if len(text) <= MAX_NUMBER_CHARS else None
    if number is None or number - number != 0:
        raise TooManyDigits(f"{text[:24]} is not a number that every reader reads alike")
    return number


def resolve_plain(text: str) -> str | int | float | bool | None:
    """The value of a plain scalar; raises TooManyDigits for numbers JSON cannot carry safely."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return bounded_int(text)
    if _RADIX.fullmatch(text):
        return bounded_int(text, 0)
    if _FLOAT.fullmatch(text):
        return bounded_float(text)
    if _NO_NUMBER.fullmatch(text):
        raise TooManyDigits(f"{text} is not a number JSON can carry")
    return text
