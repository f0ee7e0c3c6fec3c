"""The scores of all documents for a query: BM25F over every term, from the live documents alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capdex.search.analyser import WRITTEN
from capdex.search.query import (
    FEW,
    Query,
    as_shown,
    corrected_shares,
    corrections,
    rarest,
    shares_of,
)
from capdex.search.ranked import Found, Scores
from capdex.search.segments.segment import Floats, WordSegment
from capdex.search.weights import BEGUN, ONE_TOOL, rarity
from capdex.text.segment_set import Part


@dataclass(frozen=True, slots=True)
class _Term:
    """A term: its number in each part, how many live documents have it, and its share."""

    numbers: Sequence[int | None]
    having: int
    share: float


class Scorer:
    """Scores documents in parts for one query after another."""

    def __init__(self, parts: Sequence[Part[WordSegment]], documents: int, slots: int) -> None:
        self._parts, self._documents, self._slots = parts, documents, slots

    def score(self, query: Query) -> Scores:
        """Return the scores of all documents for a query by its words."""
        words = rarest(query.words, self._having)
        terms = self._terms(shares_of(words))
        ranges, begun = self._begun(query.beginning)
        values = self._add(terms, ranges, begun)
        corrected: dict[str, list[str]] = {}
        if np.count_nonzero(values) < FEW:
            corrected = corrections(words, terms, self._near, self._having)
        if corrected:
            terms |= self._terms(corrected_shares(corrected, terms))
            values = self._add(terms, ranges, begun)
        written = [term for name, term in terms.items() if name.endswith(WRITTEN)]
        stems = [term for name, term in terms.items() if not name.endswith(WRITTEN)]
        of_parts: list[Found] = []
        for at, begun_of in enumerate(ranges):
            of_stems = _numbers(stems, at)
            of_parts.append(Found(of_stems + _numbers(written, at), len(of_stems), begun_of))
        return Scores(
            values, corrected=as_shown(corrected), found=tuple(of_parts), words=len(query.words)
        )

    def _terms(self, shares: Mapping[str, float]) -> dict[str, _Term]:
        terms = {term: self._term(term, share) for term, share in shares.items()}
        return {term: x for term, x in terms.items() if x.having}

    def _term(self, term: str, share: float) -> _Term:
        numbers = [part.segment.postings.find(term) for part in self._parts]
        having = sum(
            part.count(part.segment.postings.of_documents(number))
            for part, number in zip(self._parts, numbers, strict=True)
            if number is not None
        )
        return _Term(numbers, having, share)

    def _add(self, terms: Mapping[str, _Term], ranges: Sequence[slice], begun: int) -> Floats:
        values = np.zeros(self._slots, np.float32)
        weights = [np.float32(x.share * rarity(self._documents, x.having)) for x in terms.values()]
        for at, part in enumerate(self._parts):
            segment, postings = part.segment, part.segment.postings
            sums = np.zeros(len(segment.names) + len(segment.parents), np.float32)
            for term, weight in zip(terms.values(), weights, strict=True):
                if (number := term.numbers[at]) is not None:
                    some = postings.range(number, number + 1)
                    np.add.at(sums, postings.slots[some], postings.impacts[some] * weight)
            if begun:
                some = ranges[at]
                best = np.zeros(len(sums), np.float32)
                np.maximum.at(best, postings.slots[some], postings.impacts[some])
                sums += best * np.float32(BEGUN * rarity(self._documents, begun))
            values[part.slots] = _rolled_up(sums, segment)
            if part.live is not None:
                values[part.slots] *= part.live
        return values

    def _begun(self, beginning: str) -> tuple[list[slice], int]:
        """Return the postings of the terms with a beginning, and how many documents have any."""
        if not beginning:
            return [slice(0, 0)] * len(self._parts), 0
        ranges, documents = [], 0
        for part in self._parts:
            postings = part.segment.postings
            some = postings.beginning_with(beginning)
            having = np.zeros(len(part.segment.names) + len(part.segment.parents), np.bool_)
            having[postings.slots[some]] = True
            of_documents = having[: len(part.segment.names)]
            documents += int(
                np.count_nonzero(of_documents if part.live is None else of_documents & part.live)
            )
            ranges.append(some)
        return ranges, documents

    def _having(self, term: str) -> int:
        return self._term(term, 1.0).having

    def _near(self, forms: Iterable[str]) -> dict[str, int]:
        distances: dict[str, int] = {}
        for part in self._parts:
            postings = part.segment.postings
            for form in forms:
                for term, edits in postings.shapes.near(form, postings.terms):
                    distances[term] = min(edits, distances.get(term, edits))
        return distances


def _numbers(terms: Iterable[_Term], part: int) -> tuple[int, ...]:
    return tuple(number for x in terms if (number := x.numbers[part]) is not None)


def _rolled_up(sums: Floats, segment: WordSegment) -> Floats:
    """Return the score of each document: its own, or that of its best tool if that is more."""
    documents = len(segment.names)
    values = sums[:documents]
    if len(segment.parents):
        np.maximum.at(values, segment.parents, sums[documents:] * np.float32(ONE_TOOL))
    return values
