"""What a message hits: triggers of packages, each with its score, alone or with a search."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from capdex.routing.patterns import Kind, Level

_SHARES: Final = {Level.BROAD: 0.15, Level.REGEX: 0.9, Level.KEYWORD: 1.0}
TRIGGERS: Final = 1.0  # of a combined score: the weight of triggers
SEARCH: Final = 0.8  # the weight of words; a package found by both is before those of one
_HALF_WIDTH: Final = 6.0  # letters of a trigger that is worth half of an endless one


@dataclass(frozen=True, slots=True)
class TriggerHit:
    """A trigger of a package that a message hits. `width` is that of its text, in letters."""

    name: str
    kind: Kind
    text: str
    level: Level
    width: int


@dataclass(frozen=True, slots=True)
class MatchedTrigger:
    """A trigger that a message hits: its text as published, and the first place in the message.

    `span` is in characters; None if only the folded message hits it (another width of letters).
    """

    kind: Kind
    text: str
    broad: bool
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Match:
    """A package that a message hits, with a score above 0 and below 1, and its best triggers."""

    name: str
    score: float
    triggers: tuple[MatchedTrigger, ...]


@dataclass(frozen=True, slots=True)
class TriggerPage:
    """The best matches of a message; `total` counts all packages that it hits.

    `cut` is true if there were more candidates than are matched, so `total` may be larger.
    """

    matches: list[Match]
    total: int
    cut: bool


def worth(level: Level, width: int, having: int, packages: int) -> float:
    """Return the score of a trigger that `having` of the packages have, from 0 to 1.

    A wide text says more than a narrow one, and a rare trigger more than one that many have.
    """
    rarity = math.log(1 + packages / having) / math.log(1 + packages)
    width = max(1, width)
    return _SHARES[level] * width / (width + _HALF_WIDTH) * (0.6 + 0.39 * rarity)


@dataclass(frozen=True, slots=True)
class Combined:
    """A package with its combined score, and the match that is a part of it, if there is one."""

    name: str
    score: float
    match: Match | None


def combine(
    matches: Iterable[Match], found: Iterable[tuple[str, float]], limit: int
) -> list[Combined]:
    """Return the best of the matches of a message and of (name, score) of a search, best first.

    Scores of the search are taken relative to its highest one, so any scale will do; they are
    above 0. Give several times `limit` of each: what is cut off from one counts 0 there. Equal
    scores are in order of names.
    """
    hits = dict(found)
    highest = max(hits.values(), default=0.0)
    matched = {match.name: match for match in matches}
    scores = {name: SEARCH * score / highest for name, score in hits.items()} if highest else {}
    for name, match in matched.items():
        scores[name] = scores.get(name, 0.0) + TRIGGERS * match.score
    order = sorted(scores, key=lambda name: (-scores[name], name))
    return [Combined(name, scores[name], matched.get(name)) for name in order[:limit]]
