"""Words and phrases that jailbreak prompts have in common, weighed: points, and what gave them.

`capdex/data/jailbreak_words.json` has the weights. `benchmarks/lint` learns them from public sets
and states how much they find. No weight is negative, so text that is added takes no points away;
and only so many words count together, so that a long text collects none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

WINDOW: Final = 100  # words that count together; a window begins at every 50th word
ENOUGH: Final = 100  # points
LONGEST: Final = 3  # words of a phrase
_SPACED: Final = bytes(byte if 97 <= byte <= 122 else 32 for byte in range(256))


class WeightedPhrases(NamedTuple):
    """Points of some words, and the phrases that gave them, the heaviest first."""

    points: int
    phrases: list[tuple[str, int]]

    def explain(self, most_chars: int) -> str:
        """Name the points and the heaviest phrases: `104 points: dan 17, from now on 17`."""
        told = f"{self.points} points: "
        for number, (phrase, points) in enumerate(self.phrases):
            more = f"{', ' if number else ''}{phrase} {points}"
            if len(told) + len(more) > most_chars:
                break
            told += more
        return told


class Weights:
    """Points for each phrase of at most `LONGEST` words: `{"from now on": 17}`."""

    def __init__(self, points: Mapping[str, int]) -> None:
        self._points = {tuple(phrase.split(" ")): weight for phrase, weight in points.items()}
        self._of_length = [
            frozenset(phrase for phrase in self._points if len(phrase) == length)
            for length in range(1, LONGEST + 1)
        ]
        self._of_word: dict[str, int] = {}  # of a phrase the longest word, which is seldom common
        for phrase, weight in self._points.items():
            word = max(phrase, key=len)
            self._of_word[word] = self._of_word.get(word, 0) + weight

    def weigh(self, text: Sequence[str]) -> WeightedPhrases:
        """Weigh words together; a phrase counts once."""
        phrases = [(" ".join(phrase), self._points[phrase]) for phrase in self._present(text)]
        phrases.sort(key=lambda x: (-x[1], x[0]))
        return WeightedPhrases(sum(points for _, points in phrases), phrases)

    def heaviest(self, text: Sequence[str]) -> WeightedPhrases | None:
        """Weigh the heaviest window of a text; None where that has not `ENOUGH` points.

        The time is linear in the number of words.
        """
        if not self.may_be_enough(text):
            return None
        most = max(map(self.weigh, windows(text)), key=lambda x: x.points)
        return most if most.points >= ENOUGH else None

    def may_be_enough(self, text: Sequence[str]) -> bool:
        """Return False if no part of the text has enough points: so it is with nearly all."""
        most = sum(self._of_word[word] for word in self._of_word.keys() & text)
        if most < ENOUGH:
            return False
        return sum(self._points[phrase] for phrase in self._present(text)) >= ENOUGH

    def _present(self, text: Sequence[str]) -> Iterator[tuple[str, ...]]:
        for length, phrases in enumerate(self._of_length, 1):
            yield from phrases.intersection(zip(*(text[i:] for i in range(length)), strict=False))


def words(text: str) -> list[str]:
    """Split a text in lower case into its English words, `don't` as `dont`."""
    ascii_only = text.replace("’", "").encode("ascii", "replace")
    return ascii_only.translate(_SPACED, b"'").decode("ascii").split()


def windows(text: Sequence[str]) -> Iterator[Sequence[str]]:
    """Iterate over overlapping runs of `WINDOW` words, which together have every word."""
    step = WINDOW // 2
    for start in range(0, max(1, len(text) - step), step):
        yield text[start : start + WINDOW]


@cache
def learnt() -> Weights:
    """Return the weights that capdex has."""
    text = files("capdex").joinpath("data/jailbreak_words.json").read_text("utf-8")
    return Weights(json.loads(text)["points"])
