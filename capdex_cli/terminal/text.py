"""Text for a terminal: escape untrusted characters, align columns, format numbers."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Final

MARKS: Final = {"ok": ("✓", "ok"), "warn": ("!", "!"), "fail": ("✗", "x"), "plan": ("·", "-")}
COLORS: Final = {"ok": "green", "warn": "yellow", "fail": "red", "plan": "cyan"}

# Invisible although their category says letter or mark: fillers and the combining grapheme joiner.
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINERS: Final = frozenset("\u200c\u200d")  # scripts and emoji need them
_URL = re.compile(r"[A-Za-z][\w+.-]*://\S+?(?=,?(?:\s|$)|,\w+://)")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def _hidden(char: str) -> bool:
    if char in _JOINERS:
        return False
    return char in _FILLERS or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def safe(text: object) -> str:
    r"""Return `text` on one line with control characters escaped: ESC as `\x1b`, bidi as `\u202e`.

    Every value from a package, a node or a chain is untrusted and must pass here before it is
    printed.
    """
    value = str(text)
    if value.isascii() and value.isprintable():
        return value
    return "".join(x.encode("unicode_escape").decode() if _hidden(x) else x for x in value)


def json_safe(document: str) -> str:
    r"""Return JSON text of the same meaning, with each hidden character as a `\u` escape."""
    if document.isascii() and "\x7f" not in document:  # json.dumps escapes all below a space
        return document
    return "".join(x if x == "\n" or not _hidden(x) else json.dumps(x).strip('"') for x in document)


def without_secrets(value: object) -> object:
    """Return a value without the passwords and API keys that URLs in it may contain."""
    return _URL.sub(_masked, value) if isinstance(value, str) else value


def _masked(match: re.Match[str]) -> str:
    from urllib.parse import urlsplit, urlunsplit

    try:
        url = urlsplit(match[0])
    except ValueError:  # no URL at all, and what is secret in it cannot be told
        return "…"
    host = f"…@{url.netloc.rpartition('@')[2]}" if "@" in url.netloc else url.netloc
    # providers put API keys into the path or the query
    path = re.sub(r"([^/]{4})[^/]{8,}", r"\1…", url.path)
    return urlunsplit((url.scheme, host, path, "…" if url.query else "", ""))


def width(text: str) -> int:
    """Return the terminal columns of `text`, without colour codes."""
    plain = _ANSI.sub("", text)
    if plain.isascii():
        return len(plain)
    seen = [x for x in plain if not (unicodedata.combining(x) or x in _JOINERS or x == "\ufe0f")]
    return len(seen) + sum(unicodedata.east_asian_width(x) in "WF" for x in seen)


def clip(text: str, columns: int, ellipsis: str = "…") -> str:
    """Cut `text` (without colour codes) to `columns`."""
    if width(text) <= columns:
        return text
    kept, used = "", width(ellipsis)
    for char in text:
        used += width(char)
        if used > columns:
            break
        kept += char
    if not kept.isascii():
        from capdex.yaml.characters import beginning

        kept = beginning(text, len(kept))
    return kept + ellipsis


def columns(rows: Iterable[Sequence[str]], *, indent: int = 2) -> list[str]:
    """Align rows of cells as lines; the last cell of a row is not padded."""
    table = [tuple(row) for row in rows]
    cells = zip_longest(*(row[:-1] for row in table), fillvalue="")
    widths = [max(map(width, column)) + 2 for column in cells]
    lines = []
    for row in table:
        before = zip(row[:-1], widths, strict=False)  # a row may be shorter than others
        padded = (cell + " " * (wide - width(cell)) for cell, wide in before)
        lines.append("".join((" " * indent, *padded, *row[-1:])).rstrip())
    return lines


def lines_of(parts: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return lines of text as they are, and rows of cells that follow each other aligned."""
    for is_text, group in groupby(parts, key=lambda part: isinstance(part, str)):
        rows = list(group)
        yield from map(str, rows) if is_text else columns(rows, indent=0)


def short(value: str, head: int = 10, tail: int = 4) -> str:
    """Shorten a long hex value or CID to `0x8f3c…21aa`."""
    return value if len(value) <= head + tail + 1 else f"{value[:head]}…{value[-tail:]}"


def size(count: int) -> str:
    """Return a byte count for people."""
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB"


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun, which takes an s unless the count is 1."""
    return f"{grouped(count)} {noun}{'' if count == 1 else 's'}"


def grouped(number: int) -> str:
    """Return a number with its digits in groups of three."""
    return f"{number:,}".replace(",", " ")


def duration(seconds: float) -> str:
    """Return about how long: `4 s`, `3 min`, `2 h 5 min`, `3 d 4 h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours = minutes // 60
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{rest} s"
