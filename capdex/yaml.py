"""Strict YAML (P7): the bytes of a file in, a JSON-able value with places and byte spans out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from capdex.problems import Problem

Path: TypeAlias = tuple[str | int, ...]


class Style(StrEnum):
    """How a scalar is written in the source."""

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
    keys: dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class YamlReading:
    """What `read_yaml` found. `value` is None when the file could not be read to its end.

    `marks`, `scalars` and `mappings` are keyed by path: `("metadata", "id")`, `("tools", 2)`, and
    `()` for the whole document. A mark is the (line, column) of a value, counted from 1.
    """

    value: Any = None
    problems: tuple[Problem, ...] = ()
    marks: dict[Path, tuple[int, int]] = field(default_factory=dict)
    scalars: dict[Path, Scalar] = field(default_factory=dict)
    mappings: dict[Path, Mapping] = field(default_factory=dict)


def read_yaml(data: bytes) -> YamlReading:
    """Read one strict YAML document; never raises on content (P7)."""
    return YamlReading()
