"""Words of the index that differ from a misspelt one by one or two letters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex.text.edits import MIN_CHARS, MIN_CHARS_FOR_TWO, distance

_ENDING: Final = "\U0010ffff"  # above every letter of a term


@dataclass(frozen=True, slots=True)
class Shapes:
    """The letters of each term as 64 bits, and its length: an edit changes few of them."""

    letters: NDArray[np.uint64]
    lengths: NDArray[np.uint8]

    @classmethod
    def of(cls, terms: Sequence[str]) -> Shapes:
        """Return the shapes of terms; none is empty."""
        if not terms:
            return cls(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
        points = np.frombuffer("".join(terms).encode("utf-32-le", "surrogatepass"), np.uint32)
        lengths = np.fromiter(map(len, terms), np.int64, len(terms))
        begins = np.cumsum(lengths) - lengths
        bits = np.left_shift(np.uint64(1), (points & 63).astype(np.uint64))
        return cls(np.bitwise_or.reduceat(bits, begins), lengths.astype(np.uint8))

    def near(self, word: str, terms: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the terms at most as far from the word as its length allows, and how far.

        A term with two mistakes begins with the same letter.
        """
        if len(word) < MIN_CHARS:
            return
        yield from self._within(word, 1, terms, 0, len(terms))
        if len(word) >= MIN_CHARS_FOR_TWO:
            begin, end = bisect_left(terms, word[0]), bisect_left(terms, word[0] + _ENDING)
            yield from self._within(word, 2, terms, begin, end)

    def _within(
        self, word: str, edits: int, terms: Sequence[str], begin: int, end: int
    ) -> Iterator[tuple[str, int]]:
        mine = Shapes.of([word])
        changed = np.bitwise_count(self.letters[begin:end] ^ mine.letters[0])
        longer = np.abs(self.lengths[begin:end].astype(np.int16) - len(word))
        for at in np.flatnonzero((changed <= 2 * edits) & (longer <= edits)):
            term = terms[begin + int(at)]
            if distance(word, term, edits) == edits:
                yield term, edits
