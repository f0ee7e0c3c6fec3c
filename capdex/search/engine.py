"""The engine: segments with the documents removed from them; each change makes another engine.

A search may be filtered by values that a package has or has not, and by bounds of its numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from capdex.errors import InvalidInput
from capdex.search.document import Document
from capdex.search.query import Query
from capdex.search.ranked import After, RankedHit, RankedPage, RankedPlace, Scores, matching, rank
from capdex.search.scoring import Scorer
from capdex.search.segments.segment import TOOL_KEY, Floats, Longs, Mask, WordSegment
from capdex.search.segments.vectors import Vector, Vectors
from capdex.search.semantic import fuse
from capdex.search.weights import fields_of
from capdex.text.segment_set import SegmentSet, Source

MAX_LIMIT: Final = 1000  # hits of one page


@dataclass(frozen=True, slots=True)
class Filters:
    """All of these must hold of a package; values are compared as they stand.

    `any_of`: it has one of the values of each key; `none_of`: it has none of them; `at_least`: it
    has each number, and that is as high; `at_most`: it has the number, and that is as low.
    """

    any_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    none_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.any_of or self.none_of or self.at_least or self.at_most)

    def mask(self, segment: WordSegment) -> Mask:
        """Return which documents of a segment fulfil the filters, a bool for each slot."""
        keep = np.ones(len(segment.names), np.bool_)
        for key, values in self.any_of.items():
            keep &= segment.having(key, values)
        for key, values in self.none_of.items():
            keep &= ~segment.having(key, values)
        nothing = np.full(len(segment.names), np.nan)  # no comparison with it is true
        for key, least in self.at_least.items():
            keep &= segment.numbers.get(key, nothing) >= least
        for key, most in self.at_most.items():
            keep &= segment.numbers.get(key, nothing) <= most
        return keep


class Engine(SegmentSet[WordSegment]):
    """A value: documents that can be searched. Safe to use from several threads at once."""

    def add(self, documents: Iterable[Document]) -> Engine:
        """Return an engine with these documents, in place of those of the same names."""
        return self.with_segment(WordSegment.build(documents))

    def scores(self, query: str) -> Scores:
        """Return the lexical score of every document for a query; an empty one matches all alike.

        Raises InvalidInput for a query above MAX_QUERY_CHARS.
        """
        if not query.strip():
            return Scores(self._ones())
        read = Query.read(query)
        scores = Scorer(self.parts, self.packages, self.slots).score(read)
        named, tooled = self._leads(read)
        if len(named) > 1:  # a copy and its original, in whose text the query need not be
            scores.values[named] = scores.values[named].max()
        return replace(scores, named=named, tooled=tooled)

    def fuse(self, scores: Scores, vector: Vector, filters: Filters | None = None) -> Scores:
        """Return scores with the similarity of documents to a query's vector added.

        The vector is one of `quantise`, as those of `with_vectors`. Only documents that fulfil the
        filters count.
        """
        keeps = [filters.mask(part.segment) if filters else None for part in self.parts]
        return fuse(self.parts, self.packages, scores, vector, keeps)

    def with_vectors(self, vectors: Mapping[str, Vector]) -> Engine:
        """Return an engine whose live documents of these names have these vectors."""
        sources: list[Source[WordSegment]] = []
        for part in self.parts:
            segment = part.segment
            given = {at: y for x, y in vectors.items() if (at := part.find(x)) is not None}
            if given:
                if segment.vectors is None:
                    rows = np.zeros((len(segment.names), len(next(iter(given.values())))), np.int8)
                else:
                    rows = segment.vectors.rows.copy()
                rows[list(given)] = list(given.values())
                segment = replace(segment, vectors=Vectors(rows))
            sources.append((segment, part.live))
        return Engine(sources)

    def without_vectors(self) -> Engine:
        """Return an engine with the same documents, and no vectors."""
        return Engine((replace(x.segment, vectors=None), x.live) for x in self.parts)

    @property
    def encoded(self) -> bool:
        """True if any document has a vector."""
        return any(part.segment.vectors is not None for part in self.parts)

    def number(self, name: str, key: str) -> float | None:
        """Return a number of a live document; None if there is none."""
        for part, at in self.places(name):
            numbers = part.segment.numbers.get(key)
            return None if numbers is None else float(numbers[at])
        return None

    def unencoded(self, limit: int) -> list[str]:
        """Return the names of at most so many documents that have no vector."""
        names: list[str] = []
        for part in self.parts:
            missing = np.ones(len(part.segment.names), np.bool_)
            if part.segment.vectors is not None:
                missing &= ~part.segment.vectors.known
            if part.live is not None:
                missing &= part.live
            places = np.flatnonzero(missing)[: limit - len(names)]
            names += [part.segment.names[at] for at in places.tolist()]
        return names

    def original(self, name: str) -> str | None:
        """Return the older name that a live document may be taken for; None for none."""
        return next((part.segment.like(at) for part, at in self.places(name)), None)

    def page(
        self,
        scores: Scores,
        *,
        filters: Filters | None = None,
        limit: int = 20,
        after: After | None = None,
    ) -> RankedPage:
        """Return the best of the documents with a score above 0 that fulfil the filters.

        The values may be changed ones of `scores`, fused with others, but 0 where a document is
        removed. Raises InvalidInput for a limit outside 1 to MAX_LIMIT.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput(f"a page has 1 to {MAX_LIMIT} hits, not {limit}")
        if after is not None:
            for part, at in self.places(after.name):  # scores change with what others there are
                score = float(scores.of(part)[at])
                after = replace(after, score=score) if score > 0 else after
        places: list[tuple[RankedPlace, int]] = []
        total = 0
        for at, part in enumerate(self.parts):
            keep = filters.mask(part.segment) if filters else None
            total += int(np.count_nonzero(matching(part, scores, keep)))
            places += ((place, at) for place in rank(part, scores, keep, limit + 1, after))
        places.sort(key=lambda x: (-x[0].lead, -x[0].score, x[0].name))
        more = len(places) > limit
        hits = self._hits(scores, places[:limit])
        last = After(hits[-1].lead, hits[-1].score, hits[-1].name) if more else None
        return RankedPage(hits, total, last, scores.corrected)

    def facets(
        self,
        scores: Scores,
        keys: Iterable[str],
        *,
        filters: Filters | None = None,
        limit: int = 20,
    ) -> dict[str, list[tuple[str, int]]]:
        """Return the commonest values of facets among all matches, with their numbers, by key."""
        counts: dict[str, Counter[str]] = {key: Counter() for key in keys}
        for part in self.parts:
            keep = filters.mask(part.segment) if filters else None
            matches = matching(part, scores, keep)
            for key, counted in counts.items():
                counted.update(part.segment.facets.count(key, matches))
        return {
            key: sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:limit]
            for key, counted in counts.items()
        }

    def _hits(self, scores: Scores, places: Sequence[tuple[RankedPlace, int]]) -> list[RankedHit]:
        """Return hits for places, each with the number of its part, and the fields of each."""
        matches: dict[tuple[int, int], tuple[int, int]] = {}
        for at, terms in enumerate(scores.found):
            slots = np.array([place.slot for place, of_part in places if of_part == at], np.int64)
            if len(slots):
                postings = self.parts[at].segment.postings
                masks, words = postings.matches_of(slots, *terms)
                pairs = zip(masks.tolist(), words.tolist(), strict=True)
                matches |= zip(((at, slot) for slot in slots.tolist()), pairs, strict=True)
        near = dict(zip(scores.near.tolist(), scores.similarities.tolist(), strict=True))
        hits: list[RankedHit] = []
        for place, at in places:
            mask, count = matches.get((at, place.slot), (0, 0))
            fields, similarity = fields_of(mask), near.get(self.parts[at].begin + place.slot)
            like = self.parts[at].segment.like(place.slot)
            hits.append(
                RankedHit(place.name, place.score, place.lead, fields, similarity, count, like)
            )
        return hits

    def _ones(self) -> Floats:
        values = np.ones(self.slots, np.float32)
        for part in self.parts:
            if part.live is not None:
                values[part.slots] = part.live
        return values

    def _leads(self, query: Query) -> tuple[Longs, Longs]:
        """Return the slots that a query names, and those of others with a tool that it names.

        What sinks is named by its own name alone, written without spaces, and never by a tool's. A
        query that names a copy names its original, too.
        """
        named: list[int] = []
        tooled = [np.zeros(0, np.int64)]
        for part, at in self.places(query.name):
            original = part.segment.like(at)
            of_originals = [x.begin + y for x, y in self.places(original or "")]
            if of_originals or query.spelt or not part.segment.sunk(np.array([at])).any():
                named += (part.begin + at, *of_originals)
        for part in self.parts:
            if query.squashed:
                slots = part.segment.facets.find(TOOL_KEY, query.squashed).astype(np.int64)
                slots = slots if part.live is None else slots[part.live[slots]]
                tooled.append(slots[~part.segment.sunk(slots)] + part.begin)
        leads = np.unique(np.array(named, np.int64))
        return leads, np.setdiff1d(np.concatenate(tooled), leads)
