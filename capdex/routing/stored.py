"""A segment of triggers as bytes, which are read back without reading a pattern again."""

from __future__ import annotations

from typing import Final

import numpy as np

from capdex.routing.patterns import TRAITS_VERSION
from capdex.routing.segment import OPEN, Segment, table
from capdex.text.arrays import (
    ArrayReader,
    Chunk,
    Data,
    in_range,
    lists,
    require,
    write,
    write_texts,
)

_FORMAT: Final = 1
_HEAD: Final = f"capdex triggers {_FORMAT}.{TRAITS_VERSION}"


def to_bytes(segment: Segment) -> bytes:
    """Return a segment as bytes; equal segments have equal bytes."""
    return b"".join(to_chunks(segment))


def to_chunks(segment: Segment) -> list[Chunk]:
    """Return the pieces of what `to_bytes` returns, which are not copied."""
    arrays = [
        *write_texts(segment.names),
        *write_texts(segment.texts),
        *(segment.flags, segment.ranks),
        *(segment.use_ends, segment.uses, segment.places),
        *(segment.keys, segment.others, segment.patterns, segment.widths),
    ]
    return write(_HEAD, arrays)


def from_bytes(data: Data) -> Segment:
    """Read a segment; raises InvalidInput for bytes that `to_bytes` of this version did not make.

    Everything is checked: sizes, order and range of all arrays, beside the digest.
    """
    reader = ArrayReader(_HEAD, data)
    names, texts = reader.texts(), reader.texts(ascending=False)
    flags, ranks = reader.array("<u1"), reader.array("<i8")
    use_ends, uses, places = reader.array("<i8"), reader.array("<i4"), reader.array("<u1")
    keys, others = reader.array("<u8"), reader.array("<u8")
    patterns, widths = reader.array("<i4"), reader.array("<u2")
    reader.end()
    lists(np.concatenate([[0], use_ends]), uses, len(texts), len(names))
    require(bool(np.diff(texts.ends, prepend=0).all()), "a pattern is empty")
    require(len(texts) == len(flags) == len(ranks), "a pattern is cut")
    require(in_range(flags, 2 * OPEN) and in_range(ranks, 1 << 48), "a pattern is out of range")
    require(len(places) == len(uses), "there is not one place for each use")
    require(bool((keys[:-1] <= keys[1:]).all()), "the windows are in no order")
    require(len(others) == 2 * len(keys), "there are not two other windows for each one")
    require(len(patterns) == len(keys) == len(widths), "there is not one pattern for each window")
    require(in_range(patterns, len(texts)), "a window is of no pattern")
    return Segment(
        *(names, texts, flags, ranks),
        *(use_ends, uses, places),
        *(keys, others.reshape(-1, 2), patterns, widths),
        table(np.concatenate([keys, others])),
        np.flatnonzero(flags & OPEN),
    )
