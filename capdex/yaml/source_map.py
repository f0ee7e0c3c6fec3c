"""Places of the values of a YAML file in its bytes, computed on demand.

A problem, an editor or a signature needs a place or two of a file that has hundreds. So the reader
only keeps libyaml's events in a tree, and `Outline` computes the places that are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingView
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import yaml as pyyaml

from capdex.diagnostics import LineColumn, Path


class Style(StrEnum):
    """Style of a scalar in the source."""

    PLAIN = "plain"
    QUOTED = "quoted"  # single or double quotes
    BLOCK = "block"  # | or >


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar in the source: `data[start:end]` is its text, quotes or block header included.

    `start` and `end` are byte offsets; `line` counts from 1. An empty value (`signature:`) has
    `start == end`, right behind the colon.
    """

    start: int
    end: int
    style: Style
    line: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping in the source: `keys` maps each key to its own scalar, in the order written.

    Unless it is in `flow` style, every key starts at `column`: its indent is `column - 1` spaces.
    """

    flow: bool
    column: int
    keys: MappingView[str, Scalar]


_STYLES: Final = {"'": Style.QUOTED, '"': Style.QUOTED, "|": Style.BLOCK, ">": Style.BLOCK}


def place(text: str, index: int) -> LineColumn:
    """Line and column, from 1, of a character in `text`."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


class Collection:
    """A mapping or a list of the file: the values read so far and their places.

    `inner` holds the event or the collection of each value in it, `keys` the event of each key of a
    mapping. `key` is the one whose value comes next; None, and it is dropped.
    """

    __slots__ = (
        *("closed", "event", "flow", "indent", "inner", "is_list"),
        *("key", "keys", "value", "wants_key"),
    )

    def __init__(self, event: Any, value: Any, indent: int) -> None:
        self.event = event
        self.value: Any = value
        self.indent = indent  # spaces before the entries of the block collection around or here
        self.flow = bool(event is not None and event.flow_style)
        self.inner: dict[str | int, Any] = {}
        self.is_list = type(value) is list
        self.keys: dict[str, Any] = {}
        self.key: str | None = None
        self.wants_key = not self.is_list
        self.closed = False


class Outline:
    """The events of one file as a tree, `root` a list of its one value.

    `source` is the text as it came, `text` what libyaml read: of the same length.
    """

    def __init__(self, source: str = "", text: str = "") -> None:
        self.root = Collection(None, [], -1)
        self._source = source
        self._text = text
        self._ascii = source.isascii()
        self._index = self._byte = 0  # one known pair, moved along

    def mark(self, path: Path) -> LineColumn | None:
        """Line and column of the value at `path`; None if there is none."""
        node = self._find(path)
        return None if node is None else self.place(node)

    def scalar(self, path: Path) -> Scalar | None:
        """The scalar at `path`, unless it is a key; None for anything else."""
        node = self._find(path)
        return self._span(node) if isinstance(node, pyyaml.ScalarEvent) else None

    def mapping(self, path: Path) -> Mapping | None:
        """The mapping at `path` if it was read to its end; None for anything else."""
        node = self._find(path)
        if type(node) is not Collection or node.is_list or not node.closed:
            return None
        _, column = self.place(node)
        return Mapping(node.flow, column, {key: self._span(x) for key, x in node.keys.items()})

    def place(self, node: Any) -> LineColumn:
        """Line and column, from 1, at which an event or a collection starts."""
        mark = (node.event if type(node) is Collection else node).start_mark
        if mark.index == len(self._text):  # libyaml adds the line end that the last line lacks
            return place(self._text, mark.index)
        return mark.line + 1, mark.column + 1

    def byte_at(self, index: int) -> int:
        """Return the byte offset of a character index; cheap near the previous one."""
        if self._ascii:
            return index
        low, high = sorted((self._index, index))
        between = len(self._source[low:high].encode())
        self._byte += between if index == high else -between
        self._index = index
        return self._byte

    def _find(self, path: Path) -> Any:
        """Return the event or collection of the value at `path`; None for none."""
        node = self.root.inner.get(0)
        for step in path:
            if type(node) is not Collection:
                return None
            node = node.inner.get(step)
        return node

    def _span(self, event: Any) -> Scalar:
        start, end = self.byte_at(event.start_mark.index), self.byte_at(event.end_mark.index)
        style = _STYLES.get(event.style, Style.PLAIN)
        return Scalar(start, end, style, self.place(event)[0])
