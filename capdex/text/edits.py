"""How many letters one word differs from another by: a word that is misspelt, and those near it."""

from __future__ import annotations

from typing import Final

MIN_CHARS: Final = 5  # shorter words have too many neighbours
MIN_CHARS_FOR_TWO: Final = 8  # letters of a word that may have two mistakes


def distance(one: str, other: str, most: int) -> int:
    """Return how many letters are inserted, left out, replaced or swapped with the next one.

    Any number above `most` stands for more than that (Damerau-Levenshtein, adjacent swaps).
    """
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        two_before, before, row = before, row, [i]
        for j, b in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, two_before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
