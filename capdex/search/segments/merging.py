"""Segments merged into one, as `WordSegment.build` makes it of their documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from capdex.search.segments.segment import (
    Doubles,
    Facets,
    Ints,
    Longs,
    WordSegment,
    postings,
)
from capdex.search.segments.vectors import Vectors
from capdex.text.segment_set import Source, renumbered
from capdex.text.strings import Strings


def merge(sources: Iterable[Source[WordSegment]]) -> WordSegment:
    """Return one segment of the live documents of these; no two of them have the same name."""
    some = list(sources)
    segments = [segment for segment, _ in some]
    names, moved = renumbered(some)
    parents, moved_tools = _tools(segments, moved, len(names))
    of_all = [np.concatenate(pair) for pair in zip(moved, moved_tools, strict=True)]
    lists = [x.postings for x in segments]
    terms, starts, slots, order = _merged([(x.terms, x.starts, x.slots) for x in lists], of_all)
    impacts = np.concatenate([np.zeros(0, np.float32), *(x.impacts for x in lists)])[order]
    masks = np.concatenate([np.zeros(0, np.uint16), *(x.masks for x in lists)])[order]
    facets = [(x.facets.values[:], x.facets.starts, x.facets.slots) for x in segments]
    values, value_starts, value_slots, _ = _merged(facets, moved)
    return WordSegment(
        Strings.of(names),
        parents,
        postings(terms, starts, slots, impacts, masks, len(names)),
        Facets(Strings.of(values), value_starts, value_slots),
        _numbers(segments, moved, len(names)),
        _vectors(segments, moved, len(names)),
    )


def _tools(
    segments: Sequence[WordSegment], moved: Sequence[Ints], documents: int
) -> tuple[Ints, list[Ints]]:
    """Return the parents of all tools, and the new slot of each tool of each segment."""
    parents = [slots[x.parents] for x, slots in zip(segments, moved, strict=True)]
    flat = np.concatenate([np.zeros(0, np.int32), *parents])
    order = np.argsort(flat, kind="stable")
    order = order[np.searchsorted(flat[order], 0) :]  # without tools of removed documents
    slots = np.full(len(flat), -1, np.int32)
    slots[order] = np.arange(documents, documents + len(order), dtype=np.int32)
    ends = np.cumsum([len(x) for x in parents])
    return flat[order], np.split(slots, ends[:-1]) if len(ends) else []


def _merged(
    lists: Sequence[tuple[Sequence[str], Longs, Ints]], moved: Sequence[Ints]
) -> tuple[list[str], Longs, Ints, Longs]:
    """Return the pairs of key and slot of several lists as one, without the removed slots.

    The last array has the place of each pair in the lists one after the other.
    """
    keys = sorted(set(chain.from_iterable(x[0] for x in lists)))
    places: dict[str, int] = dict(zip(keys, range(len(keys)), strict=True))
    pairs: list[Longs] = [np.zeros(0, np.int64)]
    for (some, starts, slots), to in zip(lists, moved, strict=True):
        ranks = np.fromiter((places[key] for key in some), np.int64, len(some))
        now = to[slots]
        pair = np.repeat(ranks, np.diff(starts)) << 32 | now
        pair[now < 0] = -1
        pairs.append(pair)
    flat = np.concatenate(pairs)
    order = np.argsort(flat, kind="stable")
    order = order[np.searchsorted(flat, 0, sorter=order) :]  # without the removed ones
    flat = flat[order]
    counts = np.bincount(flat >> 32, minlength=len(keys))
    used = np.flatnonzero(counts)
    ends = np.cumsum(counts[used])
    left = [keys[at] for at in used]
    slots = (flat & 0xFFFFFFFF).astype(np.int32)
    return left, np.concatenate([[0], ends]).astype(np.int64), slots, order


def _vectors(
    segments: Sequence[WordSegment], moved: Sequence[Ints], documents: int
) -> Vectors | None:
    of_some = [(x.vectors.rows, to) for x, to in zip(segments, moved, strict=True) if x.vectors]
    if not of_some:
        return None
    rows = np.zeros((documents, of_some[0][0].shape[1]), np.int8)
    for some, to in of_some:
        rows[to[to >= 0]] = some[to >= 0]
    return Vectors(rows)


def _numbers(
    segments: Sequence[WordSegment], moved: Sequence[Ints], documents: int
) -> dict[str, Doubles]:
    numbers: dict[str, Doubles] = {}
    for key in sorted({key for segment in segments for key in segment.numbers}):
        column = np.full(documents, np.nan)
        for segment, to in zip(segments, moved, strict=True):
            if key in segment.numbers:
                column[to[to >= 0]] = segment.numbers[key][to >= 0]
        if not np.isnan(column).all():
            numbers[key] = column
    return numbers
