"""The search engine in plain Python, for the packages of one machine: no numpy, no segments.

It finds what capdex.search.engine finds, in the same order, of documents without tools.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

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
from capdex.search.weights import BEGUN, rarity, weigh
from capdex.text.edits import MIN_CHARS, MIN_CHARS_FOR_TWO, distance

_ABOVE = "\U0010ffff"  # every letter of a term is below it


@dataclass(frozen=True, slots=True)
class FoundNames:
    """Names of documents, best first, and the words that were taken for each misspelt one."""

    names: list[str]
    corrected: Mapping[str, tuple[str, ...]]


class PlainEngine:
    """Documents in dictionaries. One thread reads and changes it."""

    def __init__(self) -> None:
        self._impacts: dict[str, dict[str, float]] = {}  # of each term, by name
        self._terms: dict[str, tuple[str, ...]] = {}  # of each name
        self._shapes: dict[int, dict[str, int]] = {}  # letters of each term, by its length
        self._order: list[str] | None = None  # all terms

    def put(self, document: Document) -> None:
        """Add a document, in place of one of the same name."""
        self.remove(document.name)
        impacts = weigh(document).whole
        self._terms[document.name] = tuple(impacts)
        self._order = None
        for term, impact in impacts.items():
            self._impacts.setdefault(term, {})[document.name] = impact
            self._shapes.setdefault(len(term), {}).setdefault(term, _letters(term))

    def remove(self, name: str) -> None:
        """Remove a document; an unknown one is passed over."""
        for term in self._terms.pop(name, ()):
            self._order = None
            del self._impacts[term][name]
            if not self._impacts[term]:
                del self._impacts[term], self._shapes[len(term)][term]

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
        scores: dict[str, float] = {}
        for term, share in shares.items():
            having = self._impacts.get(term, {})
            weight = share * rarity(len(self._terms), len(having))
            for name, impact in having.items():
                scores[name] = scores.get(name, 0.0) + impact * weight
        best: dict[str, float] = {}
        for term in self._begun(beginning):
            for name, impact in self._impacts[term].items():
                best[name] = max(impact, best.get(name, 0.0))
        weight = BEGUN * rarity(len(self._terms), len(best))
        for name, impact in best.items():
            scores[name] = scores.get(name, 0.0) + impact * weight
        return scores

    def _begun(self, beginning: str) -> list[str]:
        if not beginning:
            return []
        if self._order is None:
            self._order = sorted(self._impacts)
        first = bisect_left(self._order, beginning)
        return self._order[first : bisect_left(self._order, beginning + _ABOVE)]

    def _near(self, forms: Iterable[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for form in forms:
            if len(form) < MIN_CHARS:
                continue
            for most in (1, 2) if len(form) >= MIN_CHARS_FOR_TWO else (1,):
                for term in self._alike(form, most):
                    if distance(form, term, most) == most:
                        found[term] = min(most, found.get(term, most))
        return found

    def _alike(self, form: str, most: int) -> list[str]:
        """Return terms of about the same letters; one with two mistakes begins with the same."""
        letters = _letters(form)
        return [
            term
            for length in range(len(form) - most, len(form) + most + 1)
            for term, own in self._shapes.get(length, {}).items()
            if (own ^ letters).bit_count() <= 2 * most and (most == 1 or term[0] == form[0])
        ]


def _letters(term: str) -> int:
    return reduce(lambda bits, letter: bits | 1 << (ord(letter) & 63), term, 0)
