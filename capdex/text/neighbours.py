"""Names that one typing mistake makes of another, found by sums of their letters.

A letter adds its code times a factor of its place. So the sums of all names that one mistake makes
of a name follow from its own, and are looked up among sorted ones.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex.text.edits import distance
from capdex.uri import MAX_NAME_CHARS

Sums = NDArray[np.uint64]

AT_ONCE: Final = 65_536  # names that are summed together: some 50 MB
# Drawn anew in each process: nobody can choose names whose sums are equal.
FACTORS: Final = np.random.default_rng().integers(1, 2**63, MAX_NAME_CHARS + 1, np.uint64)
_LETTERS: Final = np.frombuffer(f"{string.ascii_lowercase}{string.digits}-".encode(), np.uint8)


class Neighbours:
    """Names, among which those near others are found."""

    def __init__(self, names: Sequence[str]) -> None:
        some = [_sums(names[at : at + AT_ONCE]) for at in range(0, len(names), AT_ONCE)]
        sums = np.concatenate([np.zeros(0, np.uint64), *some])
        self._names, self._order = names, np.argsort(sums).astype(np.int32)
        self._sums = sums[self._order]

    def near(self, name: str, mistaken: Sums, live: NDArray[np.bool_] | None = None) -> set[str]:
        """Return the names one mistake away from a name; `mistaken` is `mistakes_of` it.

        Only those count whose place is set in `live`; None: all.
        """
        places = np.searchsorted(self._sums, mistaken)
        inside = places < len(self._sums)
        places, mistaken = places[inside], mistaken[inside]
        slots = self._order[places[self._sums[places] == mistaken]]
        slots = slots if live is None else slots[live[slots]]
        return {other for at in slots.tolist() if distance(name, other := self._names[at], 1) == 1}


def mistakes_of(name: str) -> Sums:
    """Return the sums of all names that one mistake makes of a name, sorted.

    A mistake inserts, leaves out or replaces a letter, or swaps it with the next one.
    """
    letters = np.frombuffer(name.encode("ascii"), np.uint8).astype(np.uint64)
    here, later, sooner = FACTORS[: len(name)], FACTORS[1 : len(name) + 1], FACTORS[: len(name) - 1]
    before = _running(letters * here)
    after = before[-1] - before
    moved_on = _running(letters * later)
    moved_back = _running(letters[1:] * sooner)
    added = FACTORS[: len(name) + 1, None] * _LETTERS
    swapped = (letters[1:] - letters[:-1]) * (here[:-1] - here[1:])
    sums = [
        (before + moved_on[-1] - moved_on)[:, None] + added,
        (before[:-1] + after[1:])[:, None] + added[:-1],
        before[:-1] + moved_back[-1] - moved_back,
        before[-1] + swapped,
    ]
    return np.unique(np.concatenate([x.ravel() for x in sums]))


def _running(numbers: Sums) -> Sums:
    """Return the sums of the first 0, 1, 2 … of some numbers."""
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(numbers)])


def _sums(names: Sequence[str]) -> Sums:
    letters = np.frombuffer("".join(names).encode("ascii"), np.uint8).astype(np.uint64)
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    begins = np.cumsum(lengths) - lengths
    places = np.arange(len(letters)) - np.repeat(begins, lengths)
    return np.add.reduceat(letters * FACTORS[places], begins)
