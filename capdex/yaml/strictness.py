"""Find layout that libyaml accepts and YAML 1.2 refuses, so that readers differ (P7)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

_BLOCK_HEADER = re.compile(r"[|>][-+1-9]*")
# `\` at the end of a line, then a blank one.
_ESCAPED_BREAK = re.compile(r"(?<!\\)(?:\\\\)*\\\n[ \t]*\n")


class LayoutFault(NamedTuple):
    """Wrong layout: the index `at` of its first character, a message, and a remedy."""

    at: int
    message: str
    hint: str = ""


class Layout:
    """Finds layout that YAML 1.2 refuses, given the places of the tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.comment = self._hash(0)  # the first `#` behind the tokens read so far

    def comments(self, start: int, end: int) -> list[LayoutFault]:
        """Comments without a blank before them (YAML 1.2.2, 6.6), up to a token from start to end.

        Called for each token in order; tokens that end before `comment` may be left out.
        """
        faults, at = [], self.comment
        while at < start:
            if at and self._text[at - 1] not in " \t\n":
                faults.append(LayoutFault(at, "a comment stands here without a blank before it"))
            at = self._hash(self._line_end(at))
        self.comment = self._hash(end)
        return faults

    def styled(self, event: Any, indent: int) -> Iterator[LayoutFault]:
        """The faults of a scalar in quotes or in a block, `indent` spaces before what is around."""
        start, end = event.start_mark.index, event.end_mark.index
        if event.style in ("|", ">"):
            yield from self._block(start, event.start_mark.column, indent)
        else:
            yield from self.lines(start, end, indent, comments=False)
            if event.style == '"' and (match := _ESCAPED_BREAK.search(self._text, start, end)):
                yield LayoutFault(
                    match.end() - 1, "readers differ on empty lines behind a backslash"
                )

    def lines(self, start: int, end: int, indent: int, *, comments: bool) -> Iterator[LayoutFault]:
        """The first further line of brackets or quotes that starts too early (6.1, 6.3)."""
        at = self._text.find("\n", start, end) + 1
        while at:
            line = self._text[at : min(self._line_end(at), end)]
            words = line.lstrip(" ")
            spaces = len(line) - len(words)
            exempt = not words or (comments and words.lstrip("\t")[:1] in ("", "#"))
            if spaces <= indent and not exempt:
                yield LayoutFault(
                    at + spaces,
                    "a line inside brackets or quotes starts too early",
                    f"indent it by {indent + 1} spaces or more",
                )
                return
            at = self._text.find("\n", at, end) + 1

    def _block(self, start: int, column: int, indent: int) -> Iterator[LayoutFault]:
        """Block scalars whose header stands too early, or whose first lines readers differ on.

        8.1.1: no empty line before the first one with text is longer than that one's indentation.
        """
        header = _BLOCK_HEADER.match(self._text, start)
        if header is None:  # an anchor or a tag comes first, and is refused
            return
        if column <= indent:
            yield LayoutFault(start, "this text is not indented more than what holds it")
        if self._text[header.end() : header.end() + 1] == "#":
            yield LayoutFault(header.end(), "a comment stands here without a blank before it")
        at = self._line_end(start) + 1
        longest, longest_at = 0, at
        while at < len(self._text) and header[0].strip("+-") in ("|", ">"):
            end = self._line_end(at)
            spaces = end - at - len(self._text[at:end].lstrip(" "))
            if spaces < end - at:
                if indent < spaces < max(longest, 1):  # libyaml wants one space at least
                    yield LayoutFault(longest_at, "readers differ on where this text starts")
                return
            if spaces > longest:
                longest, longest_at = spaces, at
            at = end + 1

    def _hash(self, at: int) -> int:
        start = self._text.find("#", at)
        return sys.maxsize if start < 0 else start

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end
