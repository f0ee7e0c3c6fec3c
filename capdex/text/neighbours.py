"""Names that one typing mistake makes of another, found by sums of their letters.

A letter adds its code times a factor of its place. So the sums of all names that one mistake makes
of a name follow from its own, and are looked up among sorted ones.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex.text.edits import distance
from capdex.uri import MAX_NAME_CHARS

Sums = NDArray[np.uint64]

AT_ONCE: Final = 65_536  # names that are summed together: some 50 MB
# Drawn anew in each process: nobody can choose names whose sums are equal. numpy.random takes 2 MB.
FACTORS: Final = np.frombuffer(secrets.token_bytes(8 * (MAX_NAME_CHARS + 1)), np.uint64)
_LOOKALIKES: Final = (("rn", "m"), ("m", "rn"), ("vv", "w"), ("w", "vv"))
_LETTERS: Final = np.frombuffer(f"{string.ascii_lowercase}{string.digits}-".encode(), np.uint8)


class Neighbours:
    """Names, among which those near others are found."""

    def __init__(self, names: Sequence[str]) -> None:
        sums = sums_of(names)
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
        return {other for at in slots.tolist() if is_mistake(name, other := self._names[at])}


def mistakes_of(name: str) -> Sums:
    """Return the sums of all names that one mistake makes of a name, sorted.

    A mistake is one of `is_mistake`.
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
        sums_of(list(_lookalikes(name))),
    ]
    return np.sort(np.concatenate([x.ravel() for x in sums]))


def is_mistake(name: str, other: str) -> bool:
    """True if one mistake makes one name of another: a letter more, less, other or swapped.

    Another is `rn` in place of an `m`, or `vv` of a `w`, or the reverse (P1).
    """
    return distance(name, other, 1) == 1 or other in _lookalikes(name)


def _lookalikes(name: str) -> Iterator[str]:
    for here, there in _LOOKALIKES:
        for at in range(len(name)):
            if name.startswith(here, at):
                yield name[:at] + there + name[at + len(here) :]


def without_lookalikes(name: str) -> str:
    """Return a text that is the same for names of which one looks like the other."""
    return name.replace("rn", "m").replace("vv", "w")


def sums_of(names: Sequence[str]) -> Sums:
    """Return a sum for each name: equal for equal names, and hardly for others."""
    some = [_sums(names[at : at + AT_ONCE]) for at in range(0, len(names), AT_ONCE)]
    return np.concatenate([np.zeros(0, np.uint64), *some])


def _running(numbers: Sums) -> Sums:
    """Return the sums of the first 0, 1, 2 … of some numbers."""
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(numbers)])


def _sums(names: Sequence[str]) -> Sums:
    letters = np.frombuffer("".join(names).encode("ascii"), np.uint8).astype(np.uint64)
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    begins = np.cumsum(lengths) - lengths
    places = np.arange(len(letters)) - np.repeat(begins, lengths)
    return np.add.reduceat(letters * FACTORS[places], begins)
