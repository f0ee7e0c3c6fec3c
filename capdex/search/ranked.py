"""Scores put in order, page by page, without sorting them all."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from capdex.search.segments.segment import Floats, Longs, Mask, WordSegment
from capdex.text.segment_set import Part

BY_NAME, BY_TOOL = 2, 1  # leads of the documents that a query names exactly
_BLOCK: Final = 64


def _no_slots() -> Longs:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A document that was found, the fields that have words of the query, and how many it has.

    `lead` is 2 if the query is its name, 1 if it is the name of one of its tools. `similarity` is
    that of its meaning to the query's, None unless it is part of the score. `like` is the older
    name of another owner that it may be taken for.
    """

    name: str
    score: float
    lead: int = 0
    fields: tuple[str, ...] = ()
    similarity: float | None = None
    words: int = 0
    like: str | None = None


class RankedPlace(NamedTuple):
    """A match as `rank` finds it; `slot` is one of its segment."""

    lead: int
    score: float
    name: str
    slot: int


@dataclass(frozen=True, slots=True)
class After:
    """The place of a hit in the order of a search: the next page begins after it.

    A higher lead comes first, then a higher score; ties are in order of names.
    """

    lead: int
    score: float
    name: str


@dataclass(frozen=True, slots=True)
class RankedPage:
    """Hits, best first, and the number of all matches; `after` is the place of the next page.

    `corrected` has the words that were taken for each misspelt one.
    """

    hits: list[RankedHit]
    total: int
    after: After | None
    corrected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Found(NamedTuple):
    """The postings of a query in a part: numbers of terms, and the range of the begun ones.

    The first `words` of the terms stand for one word each, in any form.
    """

    numbers: tuple[int, ...]
    words: int
    begun: slice


@dataclass(frozen=True, slots=True)
class Scores:
    """A score for each slot of an engine: 0 where nothing matches or the document is removed.

    `named` has the slots of the documents that the query names exactly, `tooled` those of others
    with a tool that it names; both ascending. `found` are the postings of each part.
    `similarities` are those of the slots `near` (ascending), and are part of their scores.
    `words` is the number of words of the query.
    """

    values: Floats
    named: Longs = field(default_factory=_no_slots)
    tooled: Longs = field(default_factory=_no_slots)
    corrected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    found: tuple[Found, ...] = ()
    near: Longs = field(default_factory=_no_slots)
    similarities: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    words: int = 0

    def of(self, part: Part[WordSegment]) -> Floats:
        """Return the score of each document of a part, with its prior."""
        values, prior = self.values[part.slots], part.segment.prior
        return values if prior is None else values * prior


def matching(part: Part[WordSegment], scores: Scores, keep: Mask | None) -> Mask:
    """Return which documents of a part match; all of them are among those to keep."""
    matches = scores.values[part.slots] > 0
    for slots in (scores.named, scores.tooled):
        matches[_within(part, slots)] = True
    return matches if keep is None else matches & keep


def rank(
    part: Part[WordSegment], scores: Scores, keep: Mask | None, limit: int, after: After | None
) -> list[RankedPlace]:
    """Return at least the `limit` best matches of a part after a place, in no order."""
    segment, values = part.segment, scores.of(part)
    places: list[RankedPlace] = []
    others = values if keep is None else np.where(keep, values, np.float32(0))
    for lead, slots in ((BY_NAME, scores.named), (BY_TOOL, scores.tooled)):
        own = _within(part, slots)
        if not len(own):
            continue
        others = others.copy()
        others[own] = 0
        if keep is not None:
            own = own[keep[own]]
        if after is not None and after.lead <= lead:
            own = own[_beyond(after, segment, values[own], own)] if after.lead == lead else own[:0]
        order = np.lexsort((own, -values[own]))[:limit]
        places += _places(segment, values, own[order], lead)
    if after is not None and after.lead == 0:
        others = others * _beyond(after, segment, others, np.arange(len(others)))
    return places + _places(segment, values, best(others, limit), 0)


def best(scores: Floats, limit: int) -> Longs:
    """Return the slots of the `limit` highest scores above zero.

    Highest first, and equal ones in order of slots.
    """
    bound = _bound(scores, limit)
    slots = np.flatnonzero(scores > bound)  # at most `limit` blocks have any
    if bound > 0:  # very many documents may have equal scores
        slots = np.concatenate([slots, np.flatnonzero(scores == bound)[:limit]])
    return slots[np.lexsort((slots, -scores[slots]))[:limit]]


def _bound(scores: Floats, limit: int) -> np.float32:
    """Return a score that at least `limit` documents reach: the highest of that many blocks do."""
    blocks = len(scores) // _BLOCK
    if blocks < limit:
        return np.float32(0)
    highest = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
    return max(np.float32(0), np.partition(highest, blocks - limit)[blocks - limit])


def _within(part: Part[WordSegment], slots: Longs) -> Longs:
    """Return those of the engine's slots that are of a part, as slots of its segment."""
    first, end = np.searchsorted(slots, (part.slots.start, part.slots.stop))
    return slots[first:end] - part.begin


def _beyond(after: After, segment: WordSegment, values: Floats, slots: Longs) -> Mask:
    score = np.float32(after.score)
    later = slots >= bisect_right(segment.names, after.name)
    beyond: Mask = (values < score) | ((values == score) & later)
    return beyond


def _places(segment: WordSegment, values: Floats, slots: Longs, lead: int) -> list[RankedPlace]:
    return [RankedPlace(lead, float(values[at]), segment.names[at], at) for at in slots.tolist()]
