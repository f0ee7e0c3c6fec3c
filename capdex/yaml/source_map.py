"""Places of the values of a YAML file in its bytes, computed on demand.

A problem, an editor or a signature needs a place or two of a file that has hundreds. So the reader
only keeps libyaml's events in a tree, and the views here compute the places that are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Mapping as MappingView
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

import yaml as pyyaml

from capdex.diagnostics import LineColumn, Path

V = TypeVar("V")


class Style(StrEnum):
    """Style of a scalar in the source."""

    PLAIN = "plain"
    QUOTED = "quoted"  # single or double quotes
    BLOCK = "block"  # | or >


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar in the source: `data[start:end]` is its text, quotes or block header included.

    `start` and `end` are byte offsets; `line` and `column` count characters from 1. An empty value
    (`signature:`) has `start == end`, right behind the colon.
    """

    value: Any
    start: int
    end: int
    style: Style
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping in the source: `keys` maps each key to its own scalar, in the order written.

    `start` is the byte offset of the first key (`{` where `flow`), `end` the one behind the last
    entry's value (behind `}` where `flow`). In block style every key starts at `column`, so its
    indent is `column - 1` spaces, and `start - (column - 1)` begins a line.
    """

    start: int
    end: int
    flow: bool
    line: int
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
        *("closed", "end", "event", "flow", "indent", "inner", "is_list"),
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
        self.end = 0  # the index behind the last value
        self.closed = False


class Outline:
    """The events of one file as a tree, `root` a list of its one value.

    `source` is the text as it came, `text` what libyaml read: of the same length.
    """

    def __init__(self, source: str, text: str) -> None:
        self.root = Collection(None, [], -1)
        self._source = source
        self._text = text
        self._ascii = source.isascii()
        self._index = self._byte = 0  # one known pair, moved along

    @property
    def marks(self) -> MappingView[Path, LineColumn]:
        """Line and column of each value, by its path."""
        return _View(self, lambda node, _: self.place(node))

    @property
    def scalars(self) -> MappingView[Path, Scalar]:
        """Each scalar but the keys, by its path."""
        return _View(self, self._scalar)

    @property
    def mappings(self) -> MappingView[Path, Mapping]:
        """Each mapping that was read to its end, by its path."""
        return _View(self, self._mapping)

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

    def at(self, path: Path) -> tuple[Any, Any]:
        """The event or collection of the value at `path`, and the value; raises KeyError."""
        around, node = self.root, self.root.inner[0]
        last: str | int = 0
        for step in path:
            if type(node) is not Collection:
                raise KeyError(path)
            around, node, last = node, node.inner[step], step
        return node, around.value[last] if isinstance(node, pyyaml.ScalarEvent) else None

    def paths(self) -> Iterator[Path]:
        """The path of every value."""
        ahead: list[tuple[Path, Any]] = [((), node) for node in self.root.inner.values()]
        while ahead:
            path, node = ahead.pop()
            yield path
            if type(node) is Collection:
                ahead += [((*path, key), inner) for key, inner in node.inner.items()]

    def _scalar(self, node: Any, value: Any) -> Scalar | None:
        return self.span(node, value) if isinstance(node, pyyaml.ScalarEvent) else None

    def span(self, event: Any, value: Any) -> Scalar:
        """A scalar in the source, of the value that was made of it."""
        start, end = self.byte_at(event.start_mark.index), self.byte_at(event.end_mark.index)
        style = _STYLES.get(event.style, Style.PLAIN)
        return Scalar(value, start, end, style, *self.place(event))

    def _mapping(self, node: Any, _: Any) -> Mapping | None:
        if type(node) is not Collection or node.is_list or not node.closed:
            return None
        start, end = self.byte_at(node.event.start_mark.index), self.byte_at(node.end)
        return Mapping(start, end, node.flow, *self.place(node), _Keys(self, node.keys))


class _View(MappingView[Path, V], Generic[V]):
    """Results of `make` for the values of an outline, without those that are None."""

    def __init__(self, outline: Outline, make: Callable[[Any, Any], V | None]) -> None:
        self._outline = outline
        self._make = make

    def __getitem__(self, path: Path) -> V:
        made = self._make(*self._outline.at(path))
        if made is None:
            raise KeyError(path)
        return made

    def __iter__(self) -> Iterator[Path]:
        return (path for path in self._outline.paths() if path in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Keys(MappingView[str, Scalar]):
    """The keys of a mapping, in the order written."""

    def __init__(self, outline: Outline, events: dict[str, Any]) -> None:
        self._outline = outline
        self._events = events

    def __getitem__(self, key: str) -> Scalar:
        return self._outline.span(self._events[key], key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)
