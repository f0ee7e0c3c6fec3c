"""What a message hits: triggers of packages, each with its score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from capdex.routing.patterns import Kind, Level

_SHARES: Final = {Level.BROAD: 0.15, Level.REGEX: 0.9, Level.KEYWORD: 1.0}
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
