"""Made-up packages and questions with as many common and rare words as real ones; always the same.

The word of rank r is used in proportion to 1 / (r + 3), as in natural language.
"""

from __future__ import annotations

import random
from bisect import bisect
from itertools import accumulate
from typing import Final

SYLLABLE_TEXT: Final = "ba co di fe gu ha ji ko la me ni po qua ri so tu va wen xi yo zer tra plo"
SYLLABLES: Final = SYLLABLE_TEXT.split()
WORDS: Final = 60_000
GLUE: Final = ("how", "do", "I", "find", "the", "for", "my", "with", "and", "in")


def _words() -> list[str]:
    draw = random.Random(1)  # noqa: S311 - texts of a benchmark
    found: dict[str, None] = {}
    while len(found) < WORDS:
        found["".join(draw.choices(SYLLABLES, k=draw.choice((2, 2, 3, 3, 4))))] = None
    return list(found)


VOCABULARY: Final = _words()
_SUMS: Final = list(accumulate(1 / (rank + 3) for rank in range(WORDS)))


def describe(number: int) -> str:
    """Return the description of the package of a number: 20 to 60 words."""
    draw = random.Random(number)  # noqa: S311 - texts of a benchmark
    return " ".join(_draw(draw, draw.randint(20, 60)))


def questions(packages: int) -> dict[str, list[str]]:
    """Return 300 questions of each kind, about packages below a number."""
    draw = random.Random(2)  # noqa: S311 - texts of a benchmark
    kinds = {"one word": (1, 0), "two words": (2, 0), "sentence": (5, 4), "question": (12, 8)}
    found: dict[str, list[str]] = {}
    for kind, (words, glue) in kinds.items():
        found[kind] = []
        for _ in range(300):
            said = draw.sample(describe(draw.randrange(packages)).split(), words)
            said += draw.choices(GLUE, k=glue)
            draw.shuffle(said)
            found[kind].append(" ".join(said))
    return found


def _draw(draw: random.Random, count: int) -> list[str]:
    return [VOCABULARY[bisect(_SUMS, draw.random() * _SUMS[-1])] for _ in range(count)]
