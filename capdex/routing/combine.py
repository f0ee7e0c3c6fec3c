"""One ranking of what a message hits and what a search for it finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from capdex.routing.matches import Match

TRIGGERS: Final = 1.0  # of a combined score: the weight of triggers
SEARCH: Final = 0.8  # the weight of words; a package found by both is before those of one


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
