"""Layout that libyaml takes and YAML 1.2 does not: what one reader reads, another refuses (P7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml as pyyaml

from capdex.findings import MAX_PROBLEMS

_BLOCK_HEADER = re.compile(r"[|>][-+1-9]*")
_ESCAPED_BREAK = re.compile(
    r"(?<!\\)(?:\\\\)*\\\n[ \t]*\n"
)  # `\` at the end of a line, then a blank one
_WHOLE_DOCUMENT: Final = -1  # the indent around a value that no block collection holds


class Fault(NamedTuple):
    """What stands wrong: the index `at` of its first character, a message, and what to do."""

    at: int
    message: str
    hint: str = ""


class _Collection(NamedTuple):
    flow: bool
    start: int
    indent: int  # spaces before the entries of the block collection that is this, or is around it


class Layout:
    """Follows libyaml's events through a text, and finds what YAML 1.2 does not let stand there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._around = [_Collection(False, 0, _WHOLE_DOCUMENT)]
        self._read = 0  # the index behind the last token
        self._told = 0

    def faults(self, event: Any) -> Iterator[Fault]:
        """The faults of the token behind an event, and of what is between it and the one before."""
        for fault in self._find(event):
            self._told += 1
            if self._told <= MAX_PROBLEMS:  # telling the place of one costs time
                yield fault

    def _find(self, event: Any) -> Iterator[Fault]:
        start, end = event.start_mark.index, event.end_mark.index
        yield from self._comments(start)
        self._read = max(self._read, end)
        around = self._around[-1]
        match event:
            case pyyaml.CollectionStartEvent(flow_style=flow, start_mark=mark):
                indent = around.indent if flow or mark is None else mark.column
                self._around.append(_Collection(bool(flow), start, indent))
            case pyyaml.CollectionEndEvent():
                self._around.pop()
                if around.flow and not self._around[-1].flow:
                    yield from self._lines(around.start, end, around.indent, comments=True)
            case pyyaml.ScalarEvent():
                yield from self._scalar(event, start, end, around)

    def _scalar(self, event: Any, start: int, end: int, around: _Collection) -> Iterator[Fault]:
        if event.style in ("|", ">"):
            yield from self._block(start, event.start_mark.column, around.indent)
        elif event.style:
            yield from self._lines(start, end, around.indent, comments=False)
            if event.style == '"' and (match := _ESCAPED_BREAK.search(self._text, start, end)):
                yield Fault(match.end() - 1, "readers differ on empty lines behind a backslash")
        elif around.flow and event.value == "-":
            yield Fault(start, "a lone - is no text here", "put it in quotes")

    def _comments(self, end: int) -> Iterator[Fault]:
        """Comments without a blank before them (YAML 1.2.2, 6.6)."""
        at = self._text.find("#", self._read, end)
        while at >= 0:
            if at and self._text[at - 1] not in " \t\n":
                yield Fault(at, "a comment stands here without a blank before it")
            at = self._text.find("#", self._line_end(at), end)

    def _lines(self, start: int, end: int, indent: int, *, comments: bool) -> Iterator[Fault]:
        """The first further line of brackets or quotes that starts too early (6.1, 6.3)."""
        at = self._text.find("\n", start, end) + 1
        while at:
            line = self._text[at : min(self._line_end(at), end)]
            words = line.lstrip(" ")
            spaces = len(line) - len(words)
            exempt = not words or (comments and words.lstrip("\t")[:1] in ("", "#"))
            if spaces <= indent and not exempt:
                yield Fault(
                    at + spaces,
                    "a line inside brackets or quotes starts too early",
                    f"indent it by {indent + 1} spaces or more",
                )
                return
            at = self._text.find("\n", at, end) + 1

    def _block(self, start: int, column: int, indent: int) -> Iterator[Fault]:
        """Block scalars whose header stands too early, or whose first lines readers differ on.

        8.1.1: no empty line before the first one with text is longer than that one's indentation.
        """
        header = _BLOCK_HEADER.match(self._text, start)
        if header is None:  # an anchor or a tag comes first, and is refused
            return
        if column <= indent:
            yield Fault(start, "this text is not indented more than what holds it")
        if self._text[header.end() : header.end() + 1] == "#":
            yield Fault(header.end(), "a comment stands here without a blank before it")
        at = self._line_end(start) + 1
        longest, longest_at = 0, at
        while at < len(self._text) and header[0].strip("+-") in ("|", ">"):
            end = self._line_end(at)
            spaces = end - at - len(self._text[at:end].lstrip(" "))
            if spaces < end - at:
                if indent < spaces < max(longest, 1):  # libyaml wants one space at least
                    yield Fault(longest_at, "readers differ on where this text starts")
                return
            if spaces > longest:
                longest, longest_at = spaces, at
            at = end + 1

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end
