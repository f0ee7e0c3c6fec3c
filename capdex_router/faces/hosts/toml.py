"""Edits of TOML that leave comments and order as they are. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import tomlkit

from capdex.errors import InvalidInput

_HEADER: Final = re.compile(r"^[ \t]*\[[^\n]*\n?", re.MULTILINE)
_TRAIL: Final = re.compile(r"(?:^[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z))+\Z", re.MULTILINE)


def read(text: str) -> Any:
    """Return the values of a text; raises InvalidInput with line and column."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        end = f"at line {text.count(chr(10)) + 1}, at the end"
        why = str(error).replace("at end of document", end)
        raise InvalidInput("the file cannot be read", why=why) from None


def put(text: str, path: tuple[str, ...], value: object) -> str:
    """Return the text with `value` at a path of keys; a new table stands at the end.

    Raises InvalidInput for a broken text.
    """
    values = read(text)
    for key in path[:-1]:
        values = values.get(key, {})
    if isinstance(value, dict):
        whole: Any = value
        for key in reversed(path):
            whole = {key: whole}
        table = tomlkit.dumps(whole)
        for start, end, name in _sections(text):
            if name == path:
                return text[:start] + table + text[end:]
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        if path[-1] not in values and _is_valid(appended := f"{text}{gap}{table}"):
            return appended
    document = tomlkit.parse(text)
    _parent(document, path)[path[-1]] = value
    return tomlkit.dumps(document)


def remove(text: str, path: tuple[str, ...]) -> str:
    """Return the text without the table at a path; raises InvalidInput for a broken text."""
    read(text)
    sections = [(start, end) for start, end, name in _sections(text) if name[: len(path)] == path]
    gone = len(text)  # what is behind is as it will be
    for start, end in reversed(sections):
        if text[:start].endswith("\n\n"):
            start -= 1
        text = text[:start] + text[min(end, gone) :]
        gone = start
    if sections:
        return text
    document = tomlkit.parse(text)
    del _parent(document, path)[path[-1]]
    return tomlkit.dumps(document)


def line(values: dict[str, Any]) -> str:
    """Return a table in one line."""
    table = tomlkit.inline_table()
    table.update(values)
    return table.as_string()


def _parent(node: Any, path: tuple[str, ...]) -> Any:
    for key in path[:-1]:
        node = node[key]
    return node


def _sections(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield start, end and name of each table that has a header; comments behind it are no part."""
    # What is before a header is whole: a line within a text or an array is none.
    headers: list[re.Match[str]] = []
    for match in _HEADER.finditer(text):
        if _is_valid(text[headers[-1].start() if headers else 0 : match.start()]):
            headers.append(match)
    ends = [*(match.start() for match in headers[1:]), len(text)]
    for header, end in zip(headers, ends, strict=False):
        trail = _TRAIL.search(text, header.end(), end)
        end = trail.start() if trail else end
        yield header.start(), end, tuple(_name(tomllib.loads(header[0])))


def _name(values: object) -> Iterator[str]:
    while isinstance(values, dict) and values:
        ((key, values),) = values.items()
        yield key
        if isinstance(values, list):
            values = values[0]


def _is_valid(text: str) -> bool:
    with suppress(InvalidInput):
        read(text)
        return True
    return False
