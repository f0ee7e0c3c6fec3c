"""The literal parts of RE2 patterns: they find a trigger.

The reading is cautious, not complete: optional parts and classes of characters count for nothing.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from capdex.routing.text import width

_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.DOTALL)
_PLAIN: Final = re.compile(r"[^][(){}.*+?|^$\\]+(?![*+?{]|\(\?)")
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{(\d+)(?:,\d*)?\})\??")
_GROUP: Final = re.compile(r"\((?:\?(?:P?<\w+>|[imsU-]*:))?")
_FLAGS: Final = re.compile(r"\(\?[imsU-]+\)")
_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\(?:[pP](?:\{\^?\w+\}|.)|x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))|([0-7]{2,3})|(.))",
    re.DOTALL,
)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_BREAK: Final = "\0"  # stands for anything that is not a literal
_CLASS_SIZE: Final = 10  # instructions of a class of characters
_UNICODE_SIZE: Final = 1_000  # of a class like \pL
MAX_CHOICES: Final = 64  # of one pattern; a group that makes more counts as no literal

# A part of a pattern: for each of its choices the literal text that every match has, in pieces.
Part = tuple[str, ...]
_NOTHING: Final[Part] = (_BREAK,)


def required(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Return for each choice of a pattern the texts that every match has, in order.

    Texts are case-folded, but their width is as it is: they are in a message that matches, if it
    is case-folded the same way. Nothing is returned if a choice has no text with two letters.
    """
    choices, _ = _choices(pattern, 0)
    texts = dict.fromkeys(
        tuple(run.casefold() for run in text.split(_BREAK) if run.strip()) for text in choices
    )
    if any(all(width(run.strip()) < 2 for run in runs) for runs in texts):
        return ()
    return tuple(texts)


def size(pattern: str) -> int:
    """Return about how many instructions RE2 makes of a pattern, without compiling it."""
    if "{" not in pattern and "\\p" not in pattern and "\\P" not in pattern:
        return 2 * len(pattern) + _CLASS_SIZE * sum(map(pattern.count, "[.\\"))
    totals, last, at = [0], 0, 0
    while at < len(pattern):
        times = _QUANTIFIER.match(pattern, at)
        flags = _FLAGS.match(pattern, at)
        if times is not None:
            more = last * max(0, max(map(int, re.findall(r"\d+", times[0])), default=1) - 1)
            totals[-1] += more
            last += more
            at = times.end()
        elif flags is not None:
            at = flags.end()
        elif pattern[at] == "(":
            opened = _GROUP.match(pattern, at)
            totals.append(0)
            at = opened.end() if opened else at + 1
        elif pattern[at] == ")":
            last = totals.pop() + 2
            totals = totals or [0]
            totals[-1] += last
            at += 1
        else:
            part, end = _part(pattern, at)
            last = 2 * len(pattern[at:end]) + (0 if part != _NOTHING else _CLASS_SIZE)
            if pattern[at : at + 2] in ("\\p", "\\P"):
                last = _UNICODE_SIZE
            totals[-1] += last
            at = end
    return sum(totals)


def _choices(pattern: str, at: int) -> tuple[Part, int]:
    """Read choices up to a closing bracket or the end; return them and the place after them."""
    choices: list[str] = []
    sequence: Part = ("",)
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            choices += sequence
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
    choices += sequence
    return (tuple(choices) if len(choices) <= MAX_CHOICES else _NOTHING), at


def _part(pattern: str, at: int) -> tuple[Part, int]:
    """Read one character, class, escape or group."""
    character = pattern[at]
    if character == "[":
        match = _CLASS.match(pattern, at)
        return _NOTHING, match.end() if match else len(pattern)
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
    plain = _PLAIN.match(pattern, at)  # several characters, if the last one is not repeated
    return (plain[0] if plain else character,), plain.end() if plain else at + 1


def _escaped(pattern: str, at: int) -> tuple[Part, int]:
    quoted = _QUOTED.match(pattern, at)
    if quoted is not None:
        return (quoted[1],), quoted.end()
    escape = _ESCAPE.match(pattern, at)
    if escape is None:
        return _NOTHING, at + 1
    number = escape[1] or escape[2]
    other = escape[4]
    if number is not None:
        code = int(number, 16)
        return (chr(code),) if code <= sys.maxunicode else _NOTHING, escape.end()
    if other is None:
        return _NOTHING, escape.end()
    if other in _CONTROLS:
        return (_CONTROLS[other],), escape.end()
    return (_NOTHING if other.isalnum() else (other,)), escape.end()
