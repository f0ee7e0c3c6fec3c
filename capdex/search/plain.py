"""The search engine in plain Python, for the packages of one machine: no numpy, no segments.

It finds what capdex.search.engine finds by words, in the same order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from capdex.search.document import Document
from capdex.search.query import (
    FEW,
    Query,
    as_shown,
    corrected_shares,
    corrections,
    rarest,
    shares_of,
)
from capdex.search.weights import BEGUN, ONE_TOOL, rarity, weigh
from capdex.text.edits import MIN_CHARS, MIN_CHARS_FOR_TWO, distance

_ABOVE = "\U0010ffff"  # every letter of a term is below it
_Tool = tuple[str, int]  # the name of its document, and its number in it
_Key = TypeVar("_Key", str, _Tool)


@dataclass(frozen=True, slots=True)
class FoundNames:
    """Names of documents, best first, and the words that were taken for each misspelt one."""

    names: list[str]
    corrected: Mapping[str, tuple[str, ...]]


class PlainEngine:
    """Documents in dictionaries. One thread reads and changes it."""

    def __init__(self) -> None:
        self._impacts: dict[str, dict[str, float]] = {}  # of each term, by name
        self._tools: dict[str, dict[_Tool, float]] = {}  # the same of each tool
        self._terms: dict[str, tuple[str, ...]] = {}  # of each name
        self._of_tools: dict[str, dict[_Tool, tuple[str, ...]]] = {}
        self._shapes: dict[int, dict[str, int]] = {}  # letters of each term, by its length
        self._order: list[str] | None = None  # all terms

    def put(self, document: Document) -> None:
        """Add a document, in place of one of the same name."""
        self.remove(document.name)
        weighed = weigh(document)
        self._terms[document.name] = tuple(weighed.whole)
        self._order = None
        for term, impact in weighed.whole.items():
            self._impacts.setdefault(term, {})[document.name] = impact
            self._shapes.setdefault(len(term), {}).setdefault(term, _letters(term))
        tools = {(document.name, at): tool for at, tool in enumerate(weighed.tools)}
        if tools:
            self._of_tools[document.name] = {key: tuple(tool) for key, tool in tools.items()}
        for key, tool in tools.items():
            for term, impact in tool.items():
                self._tools.setdefault(term, {})[key] = impact

    def remove(self, name: str) -> None:
        """Remove a document; an unknown one is passed over."""
        for key, terms in self._of_tools.pop(name, {}).items():
            for term in terms:
                del self._tools[term][key]
        for term in self._terms.pop(name, ()):
            self._order = None
            del self._impacts[term][name]
            if not self._impacts[term]:
                del self._impacts[term], self._shapes[len(term)][term]
                self._tools.pop(term, None)

    def search(self, text: str, limit: int) -> FoundNames:
        """Return at most `limit` documents with any word of a text.

        Raises InvalidInput for a text above MAX_QUERY_CHARS.
        """
        query = Query.read(text)
        words = rarest(query.words, self._having)
        shares = shares_of(words)
        scores = self._scores(shares, query.beginning)
        corrected: dict[str, list[str]] = {}
        if len(scores) < FEW:
            known = {term for term in shares if term in self._impacts}
            corrected = corrections(words, known, self._near, self._having)
        if corrected:
            shares |= corrected_shares(corrected, known)
            scores = self._scores(shares, query.beginning)
        names = sorted(scores, key=lambda name: (-scores[name], name))
        return FoundNames(names[:limit], as_shown(corrected))

    def _having(self, term: str) -> int:
        return len(self._impacts.get(term, ()))

    def _scores(self, shares: Mapping[str, float], beginning: str) -> dict[str, float]:
        """Return the score of each document: its own, or that of its best tool if that is more."""
        begun = self._begun(beginning)
        documents = {name for term in begun for name in self._impacts[term]}
        last = BEGUN * self._rarity(len(documents))
        weights = {term: share * self._rarity(self._having(term)) for term, share in shares.items()}
        scores = _added(self._impacts, weights, begun, last)
        for (name, _), score in _added(self._tools, weights, begun, last).items():
            scores[name] = max(scores[name], ONE_TOOL * score)
        return scores

    def _rarity(self, having: int) -> float:
        return rarity(len(self._terms), having)

    def _begun(self, beginning: str) -> list[str]:
        if not beginning:
            return []
        if self._order is None:
            self._order = sorted(self._impacts)
        first = bisect_left(self._order, beginning)
        return self._order[first : bisect_left(self._order, beginning + _ABOVE)]

    def _near(self, forms: Iterable[str]) -> dict[str, int]:
        distances: dict[str, int] = {}
        for form in forms:
            if len(form) < MIN_CHARS:
                continue
            for most in (1, 2) if len(form) >= MIN_CHARS_FOR_TWO else (1,):
                for term in self._alike(form, most):
                    if distance(form, term, most) == most:
                        distances[term] = min(most, distances.get(term, most))
        return distances

    def _alike(self, form: str, most: int) -> list[str]:
        """Return terms of about the same letters; one with two mistakes begins with the same."""
        letters = _letters(form)
        return [
            term
            for length in range(len(form) - most, len(form) + most + 1)
            for term, own in self._shapes.get(length, {}).items()
            if (own ^ letters).bit_count() <= 2 * most and (most == 1 or term[0] == form[0])
        ]


def _added(
    impacts: Mapping[str, Mapping[_Key, float]],
    weights: Mapping[str, float],
    begun: Iterable[str],
    last: float,
) -> dict[_Key, float]:
    """Return the sums of impacts, and the best of the begun terms, as they weigh."""
    scores: dict[_Key, float] = {}
    for term, weight in weights.items():
        for key, impact in impacts.get(term, {}).items():
            scores[key] = scores.get(key, 0.0) + impact * weight
    best: dict[_Key, float] = {}
    for term in begun:
        for key, impact in impacts.get(term, {}).items():
            best[key] = max(impact, best.get(key, 0.0))
    for key, impact in best.items():
        scores[key] = scores.get(key, 0.0) + impact * last
    return scores


def _letters(term: str) -> int:
    return reduce(lambda bits, letter: bits | 1 << (ord(letter) & 63), term, 0)
