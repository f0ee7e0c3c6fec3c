"""Untrusted values in a question to a person: nothing unseen, nothing cut without a word.

A text stands between our quotation marks, which it cannot close, and on one line, so that it cannot
look like a line of ours. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final
from unicodedata import category

import orjson

from capdex.errors import MAX_TEXT_CHARS, Code, InvalidInput
from capdex.yaml.characters import BLANK, forbidden

MAX_CHARS: Final = 200  # of a text that is shown whole
MAX_DEPTH: Final = 16  # of a value whose keys a person can still follow
MAX_MARKS: Final = 3  # on one character: more of them cover the lines around it
# Characters that look like our marks.
_MARKS: Final = frozenset("\u201c\u201d\u201e\u201f\u2033\u2036\u02ba\u02ee\u02dd\u05f4\u3003"
                          "\u301d\u301e\u301f\u275d\u275e\u2e42\uff02\u02f6"
                          "\U0001f676\U0001f677\U0001f678")  # fmt: skip
JOINERS: Final = frozenset("\u200c\u200d")
_LINES: Final = dict.fromkeys(b"\n\r\t")


def escaped(text: str) -> str:
    """Return a text as `visible`, with escapes for quotation marks and backslashes, too.

    No two texts look the same.
    """
    return visible(text.replace("\\", "\\\\").replace('"', '\\"'))


def visible(text: str) -> str:
    r"""Return a text on one line, with a JSON escape for each character that would not be seen.

    So are stacks of marks, and what looks like a quotation mark of ours.
    """
    if text.isascii() and text.isprintable():
        return text
    unseen, marks, shown = set(forbidden(text)), 0, []
    for place, char in enumerate(text):
        kind = category(char)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        odd = kind[0] in "CZ" and char != " " and char not in JOINERS
        if place in unseen or odd or marks > MAX_MARKS or char in BLANK or char in _MARKS:
            shown.append(json.dumps(char)[1:-1])
        else:
            shown.append(char)
    return "".join(shown)


def seen(value: Any) -> Any:
    """Return a JSON value with an escape for each character of its texts that nobody would see.

    Its lines, blanks and quotation marks stay: it is not for a question, but for a model to read.
    """
    if isinstance(value, dict):
        return {seen(key): seen(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(seen, value))
    if not isinstance(value, str) or (value.isascii() and value.translate(_LINES).isprintable()):
        return value
    unseen = set(forbidden(value))
    return "".join(
        json.dumps(x)[1:-1]
        if ord(x) not in _LINES and (place in unseen or x in BLANK or category(x) in ("Cn", "Co"))
        else x
        for place, x in enumerate(value)
    )


def quoted(text: str, limit: int = MAX_CHARS) -> str:
    """Return a text as `shortened`, within quotation marks."""
    return shortened(text, limit, '"')


def shortened(text: str, limit: int = MAX_CHARS, mark: str = "") -> str:
    """Return a text escaped; a long one without its middle, with its length and sha256."""
    if len(text) <= limit:
        return f"{mark}{escaped(text)}{mark}"
    head, tail = escaped(text[: limit * 2 // 3]), escaped(text[-limit // 3 :])
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{mark}{head}{mark} … {mark}{tail}{mark} ({len(text)} characters, sha256 {digest})"


def said(words: object) -> str:
    """Return what another program says of a failure, quoted: readers take an error for ours."""
    text = str(words) if isinstance(words, str | int | float) else ""
    return f"it says {quoted(text, MAX_TEXT_CHARS)}"


def tree(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every key and every scalar of a JSON value, a line each, indented as they nest.

    A value that is itself a scalar is one line.
    Raises InvalidInput TOO_LARGE beyond MAX_DEPTH.
    """
    if depth > MAX_DEPTH:
        raise InvalidInput(
            f"the input has more than {MAX_DEPTH} levels, so that no person can be asked about it",
            Code.TOO_LARGE,
            fix="give it with fewer objects and lists within each other",
        )
    if not isinstance(value, dict | list):
        yield _scalar(value)
        return
    items = value.items() if isinstance(value, dict) else (("", item) for item in value)
    for key, item in items:
        plain = key.isascii() and key.isidentifier() and len(key) <= 64
        name = f"{key if plain else quoted(key)}:" if isinstance(value, dict) else "-"
        name = f"{'  ' * depth}{name}"
        if isinstance(item, dict | list) and item:
            yield name
            yield from tree(item, depth + 1)
        else:
            yield f"{name} {_scalar(item)}"


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    return shortened(orjson.dumps(value).decode())
