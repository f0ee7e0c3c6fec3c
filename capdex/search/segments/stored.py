"""A segment as bytes, which are read back without reading its documents again.

The bytes are the arrays of the segment one after the other, each with its length before it and
filled up to a multiple of 8, between a line that names the version and a SHA-256 of all of it.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from capdex.errors import InvalidInput
from capdex.search.analyser import TEXT_VERSION
from capdex.search.segments.segment import Facets, Ints, Longs, Segment, postings
from capdex.search.segments.strings import Strings
from capdex.search.segments.vectors import Vectors
from capdex.search.weights import WEIGHTS_VERSION

_FORMAT: Final = 2
_HEAD: Final = f"capdex segment {_FORMAT}.{TEXT_VERSION}.{WEIGHTS_VERSION}\n".encode().ljust(32)
_DIGEST_BYTES: Final = 32


def to_bytes(segment: Segment) -> bytes:
    """Return a segment as bytes; equal segments have equal bytes."""
    lists, facets = segment.postings, segment.facets
    keys = sorted(segment.numbers)
    arrays: list[Any] = [
        *_texts(segment.names),
        segment.parents,
        *_texts(Strings.of(lists.terms)),
        *(lists.starts, lists.slots, lists.impacts, lists.masks),
        *_texts(facets.values),
        *(facets.starts, facets.slots),
        *_texts(Strings.of(keys)),
        *(segment.numbers[key] for key in keys),
        np.zeros(0, np.int8) if segment.vectors is None else segment.vectors.rows,
    ]
    parts = [_HEAD]
    for values in arrays:
        raw = np.ascontiguousarray(values)
        raw = raw.astype(raw.dtype.newbyteorder("<"), copy=False)
        parts += [np.array(raw.nbytes, "<u8").tobytes(), raw.tobytes(), bytes(-raw.nbytes % 8)]
    body = b"".join(parts)
    return body + sha256(body).digest()


def from_bytes(data: bytes) -> Segment:
    """Read a segment; raises InvalidInput for bytes that `to_bytes` of this version did not make.

    Everything is checked: sizes, order and range of all arrays, beside the digest.
    """
    if data[: len(_HEAD)] != _HEAD:
        raise _invalid("another version made it, or it is not a segment")
    if sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
        raise _invalid("the digest differs")
    reader = _Reader(data)
    names = reader.texts()
    parents = reader.array("<i4")
    terms = reader.texts()
    starts, slots = reader.array("<i8"), reader.array("<i4")
    impacts, masks = reader.array("<f4"), reader.array("<u1")
    values = reader.texts()
    facet_starts, facet_slots = reader.array("<i8"), reader.array("<i4")
    keys = reader.texts()
    columns = [reader.array("<f8") for _ in range(len(keys))]
    rows = reader.array("<i1")
    reader.end()
    for texts in (names, terms, values, keys):
        _ascending(texts)
    documents, all_slots = len(names), len(names) + len(parents)
    _require(bool((np.diff(parents) >= 0).all()), "the tools are in no order")
    _require(_in_range(parents, documents), "a tool is of no document")
    _lists(starts, slots, len(terms), all_slots)
    _lists(facet_starts, facet_slots, len(values), documents)
    _require(len(impacts) == len(slots) == len(masks), "there is not one impact for each posting")
    _require(bool(((impacts > 0) & (impacts < 1)).all()), "an impact is out of range")
    _require(all(len(x) == documents for x in columns), "a number is missing")
    _require(not any(np.isinf(x).any() for x in columns), "a number is infinite")
    lists = postings(terms[:], starts, slots, impacts, masks, documents)
    vectors = None
    if len(rows):
        dimension, rest = divmod(len(rows), max(documents, 1))
        _require(rest == 0 and dimension % 64 == 0, "a vector is cut")
        vectors = Vectors(rows.reshape(documents, dimension))
    found = Facets(values, facet_starts, facet_slots)
    return Segment(names, parents, lists, found, dict(zip(keys, columns, strict=True)), vectors)


class _Reader:
    """Reads arrays one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._end = data, len(_HEAD), len(data) - _DIGEST_BYTES

    def array(self, name: str) -> NDArray[Any]:
        kind = np.dtype(name)
        begin = self._at + 8
        _require(begin <= self._end, "it ends too early")
        size = int.from_bytes(self._data[self._at : begin], "little")
        self._at = begin + size + -size % 8
        _require(self._at <= self._end and size % kind.itemsize == 0, "an array is cut")
        return np.frombuffer(self._data, kind, size // kind.itemsize, begin)

    def texts(self) -> Strings:
        data = self.array("<u1").tobytes()
        ends: Longs = self.array("<i8")
        last = int(ends[-1]) if len(ends) else 0
        _require(last == len(data) and bool((np.diff(ends, prepend=0) >= 0).all()), "a text is cut")
        return Strings(data, ends)

    def end(self) -> None:
        _require(self._at == self._end, "it is longer than its arrays")


def _texts(texts: Strings) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.frombuffer(texts.data, np.uint8), texts.ends


def _ascending(texts: Strings) -> None:
    try:
        known = texts[:]
    except UnicodeDecodeError:
        raise _invalid("a text is not UTF-8") from None
    _require(all(a < b for a, b in pairwise(known)), "texts are in no order")


def _lists(starts: Longs, slots: Ints, keys: int, end: int) -> None:
    """Check that each key has slots below `end`, ascending."""
    _require(len(starts) == keys + 1 and starts[0] == 0, "the lists are not one for each key")
    _require(int(starts[-1]) == len(slots) and bool((np.diff(starts) > 0).all()), "a list is empty")
    _require(_in_range(slots, end), "a slot is of no document")
    rising = np.diff(slots) > 0
    rising[starts[1:-1] - 1] = True  # from one list to the next
    _require(bool(rising.all()), "a list is in no order")


def _in_range(slots: Ints, end: int) -> bool:
    return bool(((slots >= 0) & (slots < end)).all())


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise _invalid(why)


def _invalid(why: str) -> InvalidInput:
    return InvalidInput("a stored segment is invalid", why=why, fix="build it from its documents")
