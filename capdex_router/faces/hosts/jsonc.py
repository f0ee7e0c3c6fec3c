"""Edits of JSON with comments that leave every other byte as it is. Pure.

Comments and commas before a closing bracket are read, as VS Code and Zed have them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from capdex.errors import InvalidInput

MAX_DEPTH: Final = 100
_BLANK: Final = " \t\r\n"
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")
    |(?P<scalar>(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![\w.]))
    |(?P<mark>[{}\[\],:])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class _Node:
    """A value, where it stands, and the members of an object (None for any other value)."""

    value: Any
    start: int
    end: int
    members: list[_Member] | None = None


@dataclass(slots=True)
class _Member:
    """A member of an object: where its key begins, and where the comma after it is, else -1."""

    key: str
    start: int
    node: _Node
    comma: int = -1


def read(text: str) -> Any:
    """Return the value of a text; raises InvalidInput with line and column."""
    return _Reader(text).whole().value


def put(text: str, path: tuple[str, ...], value: object) -> str:
    """Return the text with `value` at a path of keys; objects on the way are made.

    Raises InvalidInput for a broken text, and if something on the way is not an object.
    """
    node, rest = _walk(_Reader(text).whole(), path)
    if not rest:
        written = _written(value, text, _indent(text, node.start))
        return text[: node.start] + written + text[node.end :]
    if node.members is None:
        above = ".".join(path[: len(path) - len(rest)])
        raise InvalidInput(f"{above or 'the file'} is not an object", why=_place(text, node.start))
    for key in reversed(rest[1:]):
        value = {key: value}
    return _inserted(text, node, rest[0], value)


def remove(text: str, path: tuple[str, ...]) -> str:
    """Return the text without the member at a path, if it is there.

    Raises InvalidInput for a broken text.
    """
    parent, rest = _walk(_Reader(text).whole(), path[:-1])
    numbers = [i for i, member in enumerate(parent.members or ()) if member.key == path[-1]]
    if rest or not numbers:
        return text
    return remove(_without(text, parent, numbers[-1]), path)  # a key may be there twice


def _walk(node: _Node, path: tuple[str, ...]) -> tuple[_Node, tuple[str, ...]]:
    """Return the last value on a path that is there, and the rest of the path."""
    for number, key in enumerate(path):
        members = [member for member in node.members or () if member.key == key]
        if not members:
            return node, path[number:]
        node = members[-1].node  # of two equal keys, readers take the last
    return node, ()


def _inserted(text: str, node: _Node, key: str, value: object) -> str:
    members = node.members or []
    inside = text[node.start + 1 : node.end - 1]
    last = node.start + 1 + len(inside.rstrip(_BLANK))  # behind the last value, comma or comment
    name = json.dumps(key, ensure_ascii=False)
    comma = "," if members and members[-1].comma < 0 else ""
    if members and "\n" not in inside:
        one_line = f"{comma} {name}: {json.dumps(value, ensure_ascii=False)}"
        return text[:last] + one_line + text[last:]
    outer = _indent(text, node.start)
    indent = _indent(text, members[0].start) if members else outer + _step(text)
    written = f"{_newline(text)}{indent}{name}: {_written(value, text, indent)}"
    if not members:
        close = "" if "\n" in inside else _newline(text) + outer
        return text[:last] + written + close + text[last if "\n" in inside else node.end - 1 :]
    if not comma:  # the last member has one, and so has the new one
        return text[:last] + written + "," + text[last:]
    value_end = members[-1].node.end
    return text[:value_end] + comma + text[value_end:last] + written + text[last:]


def _without(text: str, parent: _Node, number: int) -> str:
    members = parent.members or []
    member = members[number]
    start, end = member.start, max(member.node.end, member.comma + 1)
    before = len(text[:start].rstrip(_BLANK))
    after = end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    first_of_line = "\n" in text[before:start]
    is_last = number == len(members) - 1
    if (first_of_line and text[after : after + 1] in ("\r", "\n", "")) or (
        is_last and not first_of_line
    ):
        start = before
    else:
        end = after
    tail = text[end:]
    if is_last and number > 0 and member.comma < 0:
        comma = members[number - 1].comma
        return text[:comma] + text[comma + 1 : start] + tail
    if len(members) == 1:
        inside = text[parent.start + 1 : start] + text[end : parent.end - 1]
        if not inside.strip(_BLANK):
            return text[: parent.start + 1] + text[parent.end - 1 :]
    return text[:start] + tail


def _written(value: object, text: str, indent: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_step(text)).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    match = re.search(r"\n([ \t]+)[^ \t\r\n]", text)
    return match[1] if match else "  "


def _indent(text: str, at: int) -> str:
    """Return the blanks with which the line of a place begins."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _place(text: str, at: int) -> str:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return f"line {line}, column {column}"


class _Reader:
    """Reads one text into nodes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._scanned()
        self._next()

    def whole(self) -> _Node:
        node = self._value(0)
        if self._kind:
            raise self._wrong("nothing more")
        return node

    def _scanned(self) -> Iterator[re.Match[str]]:
        at = 1 if self._text.startswith("\ufeff") else 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                self._start = at
                raise self._wrong("JSON")
            at = match.end()
            if match.lastgroup != "space":
                yield match

    def _next(self) -> None:
        match = next(self._tokens, None)
        size = len(self._text)
        self._kind = match.lastgroup or "" if match else ""
        self._word = match[0] if match else ""
        self._start, self._end = match.span() if match else (size, size)

    def _value(self, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise self._wrong(f"at most {MAX_DEPTH} levels")
        start, end, word = self._start, self._end, self._word
        if self._kind in ("string", "scalar"):
            try:
                value = json.loads(word)
            except ValueError:
                raise self._wrong("a number of at most 4300 digits") from None
            self._next()
            return _Node(value, start, end)
        if word == "{":
            return self._object(start, depth)
        if word == "[":
            return self._array(start, depth)
        raise self._wrong("a value")

    def _object(self, start: int, depth: int) -> _Node:
        members: list[_Member] = []
        self._next()
        while self._word != "}":
            if self._kind != "string" or (members and members[-1].comma < 0):
                raise self._wrong("a comma or }" if members else "a key or }")
            key, at = json.loads(self._word), self._start
            self._next()
            if self._word != ":":
                raise self._wrong("a colon")
            self._next()
            members.append(_Member(key, at, self._value(depth + 1)))
            if self._word == ",":
                members[-1].comma = self._start
                self._next()
        end = self._end
        self._next()
        return _Node({member.key: member.node.value for member in members}, start, end, members)

    def _array(self, start: int, depth: int) -> _Node:
        values: list[Any] = []
        comma = True
        self._next()
        while self._word != "]":
            if not comma:
                raise self._wrong("a comma or ]")
            values.append(self._value(depth + 1).value)
            comma = self._word == ","
            if comma:
                self._next()
        end = self._end
        self._next()
        return _Node(values, start, end)

    def _wrong(self, expected: str) -> InvalidInput:
        return InvalidInput(
            "the file cannot be read",
            why=f"{_place(self._text, self._start)}: expected {expected}",
        )
