"""A segment as bytes, which are read back without reading its documents again."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from capdex.search.analyser import TEXT_VERSION
from capdex.search.segments.segment import Facets, WordSegment, postings
from capdex.search.segments.vectors import Vectors
from capdex.search.weights import WEIGHTS_VERSION
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
from capdex.text.strings import Strings

_FORMAT: Final = 4
_HEAD: Final = f"capdex segment {_FORMAT}.{TEXT_VERSION}.{WEIGHTS_VERSION}"


def to_bytes(segment: WordSegment) -> bytes:
    """Return a segment as bytes; equal segments have equal bytes."""
    return b"".join(to_chunks(segment))


def to_chunks(segment: WordSegment) -> list[Chunk]:
    """Return the pieces of what `to_bytes` returns, which are not copied."""
    listed, facets = segment.postings, segment.facets
    keys = sorted(segment.numbers)
    arrays: list[Any] = [
        *write_texts(segment.names),
        segment.parents,
        *write_texts(Strings.of(listed.terms)),
        *(listed.starts, listed.slots, listed.impacts, listed.masks),
        *write_texts(facets.values),
        *(facets.starts, facets.slots),
        *write_texts(Strings.of(keys)),
        *(segment.numbers[key] for key in keys),
        np.zeros(0, np.int8) if segment.vectors is None else segment.vectors.rows,
    ]
    return write(_HEAD, arrays)


def from_bytes(data: Data) -> WordSegment:
    """Read a segment; raises InvalidInput for bytes that `to_bytes` of this version did not make.

    Everything is checked: sizes, order and range of all arrays, beside the digest.
    """
    reader = ArrayReader(_HEAD, data)
    names = reader.texts()
    parents = reader.array("<i4")
    terms = reader.texts()[:]
    starts, slots = reader.array("<i8"), reader.array("<i4")
    impacts, masks = reader.array("<f4"), reader.array("<u2")
    values = reader.texts()
    facet_starts, facet_slots = reader.array("<i8"), reader.array("<i4")
    keys = reader.texts()[:]
    columns = [reader.array("<f8") for _ in keys]
    rows = reader.array("<i1")
    reader.end()
    documents, all_slots = len(names), len(names) + len(parents)
    require(bool((np.diff(parents) >= 0).all()), "the tools are in no order")
    require(in_range(parents, documents), "a tool is of no document")
    lists(starts, slots, len(terms), all_slots)
    lists(facet_starts, facet_slots, len(values), documents)
    require(len(impacts) == len(slots) == len(masks), "there is not one impact for each posting")
    require(bool(((impacts > 0) & (impacts < 1)).all()), "an impact is out of range")
    require(all(len(x) == documents for x in columns), "a number is missing")
    require(not any(np.isinf(x).any() for x in columns), "a number is infinite")
    listed = postings(terms, starts, slots, impacts, masks, documents)
    vectors = None
    if len(rows):
        dimension, rest = divmod(len(rows), max(documents, 1))
        require(rest == 0 and dimension % 64 == 0, "a vector is cut")
        vectors = Vectors(rows.reshape(documents, dimension))
    facets = Facets(values, facet_starts, facet_slots)
    return WordSegment(
        names, parents, listed, facets, dict(zip(keys, columns, strict=True)), vectors
    )
