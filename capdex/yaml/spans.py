"""Where the values of a YAML file stand in its bytes, so that it can be edited in place."""

from __future__ import annotations

from collections.abc import Mapping as MappingView
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
    keys: MappingView[str, Scalar]
