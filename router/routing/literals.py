"""The literal parts of RE2 patterns, by which a router tells a precise trigger from a vague one.

The reading is cautious, not complete: optional parts and classes of characters count for nothing,
so they make no pattern look more precise than it is. Pure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from router.routing.text import fold, width

_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.DOTALL)
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{(\d+)(?:,\d*)?\})\??")
_GROUP: Final = re.compile(r"\((?:\?(?:P?<\w+>|[imsU-]*:))?")
_FLAGS: Final = re.compile(r"\(\?[imsU-]+\)")
_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\(?:[pP](?:\{\^?\w+\}|.)|x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))|([0-7]{2,3})|(.))",
    re.DOTALL,
)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_BREAK: Final = "\0"  # stands for anything that is no literal
MAX_CHOICES: Final = 64  # of one pattern; a group that makes more counts as no literal

# A part of a pattern: for each of its choices the literal text that every match has, in pieces.
Part = tuple[str, ...]
_NOTHING: Final[Part] = (_BREAK,)


def precision(pattern: str, folded: str) -> int:
    """Return the width of the literals of a pattern in a folded message that it matches.

    Of several choices the widest one counts that is in the message whole and in order.
    """
    return max((_width(choice, folded) for choice in choices(pattern)), default=0)


@lru_cache(maxsize=8_192)
def choices(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Return for each choice of a valid pattern the folded texts that every match has, in order."""
    found, _ = _choices(pattern, 0)
    return tuple(
        dict.fromkeys(tuple(fold(run) for run in text.split(_BREAK) if run) for text in found)
    )


def _width(choice: tuple[str, ...], folded: str) -> int:
    at = total = 0
    for run in choice:
        found = folded.find(run, at)
        if found < 0:
            return 0
        at = found + len(run)
        total += width(run)
    return total


def _choices(pattern: str, at: int) -> tuple[Part, int]:
    """Read choices up to a closing bracket or the end; return them and the place after them."""
    found: list[str] = []
    sequence: Part = ("",)
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            found += sequence
            sequence = ("",)
            at += 1
            continue
        part, at = _part(pattern, at)
        while (flags := _FLAGS.match(pattern, at)) is not None:
            at = flags.end()  # `a(?i)*` repeats the a
        while (times := _QUANTIFIER.match(pattern, at)) is not None:
            optional = pattern[at] in "*?" or (times[1] is not None and int(times[1]) == 0)
            part = _NOTHING if optional else tuple(text + _BREAK for text in part)
            at = times.end()
        if len(sequence) * len(part) > MAX_CHOICES:
            part = _NOTHING
        sequence = tuple(left + right for left in sequence for right in part)
    found += sequence
    return (tuple(found) if len(found) <= MAX_CHOICES else _NOTHING), at


def _part(pattern: str, at: int) -> tuple[Part, int]:
    """Read one character, class, escape or group."""
    character = pattern[at]
    if character == "[":
        found = _CLASS.match(pattern, at)
        return _NOTHING, found.end() if found else len(pattern)
    if character == "\\":
        return _escaped(pattern, at)
    if character == "(":
        flags = _FLAGS.match(pattern, at)
        if flags is not None:
            return ("",), flags.end()
        opened = _GROUP.match(pattern, at)
        part, end = _choices(pattern, opened.end() if opened else at + 1)
        return part, end + 1
    if character in ".^$":
        return _NOTHING, at + 1
    return (character,), at + 1


def _escaped(pattern: str, at: int) -> tuple[Part, int]:
    quoted = _QUOTED.match(pattern, at)
    if quoted is not None:
        return (quoted[1],), quoted.end()
    found = _ESCAPE.match(pattern, at)
    if found is None:
        return _NOTHING, at + 1
    number = found[1] or found[2]
    other = found[4]
    if number is not None:
        return (chr(int(number, 16)),), found.end()
    if other is None:
        return _NOTHING, found.end()
    if other in _CONTROLS:
        return (_CONTROLS[other],), found.end()
    return (_NOTHING if other.isalnum() else (other,)), found.end()
