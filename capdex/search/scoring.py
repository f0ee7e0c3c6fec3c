"""The scores of all documents for a query: BM25F over every term, from the live documents alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from capdex.search.analyser import WRITTEN, stem
from capdex.search.query import Query, Word
from capdex.search.segments.segment import Floats, WordSegment
from capdex.search.weights import BEGUN, MISTAKEN, ONE_TOOL, rarity
from capdex.text.segment_set import Part

MAX_WORDS: Final = 128  # of a query that are looked up; the rarest say the most
FEW: Final = 3  # documents: below this, words that no document has are taken for misspelt
MAX_MISSPELT: Final = 8  # words of a query that are corrected
MAX_CORRECTIONS: Final = 3  # of one word


class Found(NamedTuple):
    """The postings of a query in a part: numbers of terms, and the range of the begun ones.

    The first `words` of the terms stand for one word each, in any form.
    """

    numbers: tuple[int, ...]
    words: int
    begun: slice


@dataclass(frozen=True, slots=True)
class Scored:
    """The score of each slot, the words taken for each misspelt one, and each part's postings."""

    values: Floats
    corrected: dict[str, tuple[str, ...]]
    found: tuple[Found, ...]


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

    def score(self, query: Query) -> Scored:
        """Return the scores of all documents for a query."""
        words = self._rarest(query.words)
        terms = self._terms(_shares(words))
        ranges, begun = self._begun(query.beginning)
        values = self._add(terms, ranges, begun)
        corrected: dict[str, list[str]] = {}
        if np.count_nonzero(values) < FEW and (corrected := self._correct(words, terms)):
            terms |= self._terms(_corrected_shares(corrected, terms))
            values = self._add(terms, ranges, begun)
        shown = {
            word: tuple(dict.fromkeys(term.removesuffix(WRITTEN) for term in found))
            for word, found in corrected.items()
        }
        written = [term for name, term in terms.items() if name.endswith(WRITTEN)]
        stems = [term for name, term in terms.items() if not name.endswith(WRITTEN)]
        found: list[Found] = []
        for at, begun_of in enumerate(ranges):
            of_stems = _numbers(stems, at)
            found.append(Found(of_stems + _numbers(written, at), len(of_stems), begun_of))
        return Scored(values, shown, tuple(found))

    def _rarest(self, words: Sequence[Word]) -> Sequence[Word]:
        """Return the words that say the most, in their order."""
        if len(words) <= MAX_WORDS:
            return words
        having = [self._term(word.token, 1.0).having for word in words]
        # a word that no document has says nothing
        ranked = sorted(range(len(words)), key=lambda at: (having[at] == 0, having[at], at))
        return [words[at] for at in sorted(ranked[:MAX_WORDS])]

    def _terms(self, shares: Mapping[str, float]) -> dict[str, _Term]:
        found = {term: self._term(term, share) for term, share in shares.items()}
        return {term: x for term, x in found.items() if x.having}

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
            found = np.zeros(len(segment.names) + len(segment.parents), np.float32)
            for term, weight in zip(terms.values(), weights, strict=True):
                if (number := term.numbers[at]) is not None:
                    some = postings.range(number, number + 1)
                    np.add.at(found, postings.slots[some], postings.impacts[some] * weight)
            if begun:
                some = ranges[at]
                best = np.zeros(len(found), np.float32)
                np.maximum.at(best, postings.slots[some], postings.impacts[some])
                found += best * np.float32(BEGUN * rarity(self._documents, begun))
            values[part.slots] = _rolled_up(found, segment)
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

    def _correct(self, words: Iterable[Word], terms: Mapping[str, _Term]) -> dict[str, list[str]]:
        """Return the nearest terms to each misspelt word, the commonest of the nearest first."""
        misspelt = [x for x in words if x.written and not any(y in terms for y in x.shares)]
        corrected: dict[str, list[str]] = {}
        for word in misspelt[:MAX_MISSPELT]:
            near = [
                (edits, -having, term)
                for term, edits in self._near(word).items()
                if (having := self._term(term, 1.0).having)
            ]
            if near:
                near = [x for x in near if x[0] == min(near)[0]]
                corrected[word.written] = [x[2] for x in sorted(near)[:MAX_CORRECTIONS]]
        return corrected

    def _near(self, word: Word) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in self._parts:
            postings = part.segment.postings
            for form in sorted({word.token, word.written, word.written + WRITTEN}):
                for term, edits in postings.shapes.near(form, postings.terms):
                    found[term] = min(edits, found.get(term, edits))
        return found


def _numbers(terms: Iterable[_Term], part: int) -> tuple[int, ...]:
    return tuple(number for x in terms if (number := x.numbers[part]) is not None)


def _shares(words: Iterable[Word]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for word in words:
        for term, share in word.shares.items():
            shares[term] = max(share, shares.get(term, 0.0))
    return shares


def _corrected_shares(
    corrected: Mapping[str, Sequence[str]], known: Mapping[str, _Term]
) -> dict[str, float]:
    return {
        term: MISTAKEN
        for found in corrected.values()
        for term in _with_stems(found)
        if term not in known
    }


def _with_stems(terms: Iterable[str]) -> Iterator[str]:
    for term in terms:
        yield term
        if term.endswith(WRITTEN):
            yield stem(term.removesuffix(WRITTEN))


def _rolled_up(found: Floats, segment: WordSegment) -> Floats:
    """Return the score of each document: its own, or that of its best tool if that is more."""
    documents = len(segment.names)
    values = found[:documents]
    if len(segment.parents):
        np.maximum.at(values, segment.parents, found[documents:] * np.float32(ONE_TOOL))
    return values
