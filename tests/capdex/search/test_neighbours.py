"""Names one typing mistake apart are found by their sums as by comparing each with each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from capdex.text.edits import distance
from capdex.text.neighbours import Neighbours, mistakes_of
from capdex.text.strings import Strings
from capdex.uri import MAX_NAME_CHARS

NAMES = st.text("ab9-", min_size=1, max_size=6) | st.text(
    "abz", min_size=MAX_NAME_CHARS - 1, max_size=MAX_NAME_CHARS
)


@given(st.sets(NAMES, max_size=60), NAMES, st.integers(0, 60))
def test_near_names_are_all_those_at_a_distance_of_one(
    names: set[str], asked: str, gone: int
) -> None:
    ordered = sorted(names)
    live = np.arange(len(ordered)) != gone
    neighbours = Neighbours(Strings.of(ordered))
    right = {x for x in ordered if distance(asked, x, 1) == 1}
    assert neighbours.near(asked, mistakes_of(asked)) == right
    assert neighbours.near(asked, mistakes_of(asked), live) == right - set(ordered[gone:][:1])


def test_every_kind_of_mistake_at_every_place_is_found() -> None:
    name = "weather"
    cuts = [(name[:at], name[at:]) for at in range(len(name) + 1)]
    made = {a + "q" + b for a, b in cuts} | {a + "q" + b[1:] for a, b in cuts if b}
    made |= {a + b[1:] for a, b in cuts if b} | {a + b[1] + b[0] + b[2:] for a, b in cuts if b[1:]}
    assert len(made) == 8 + 7 + 7 + 6
    assert Neighbours(sorted(made)).near(name, mistakes_of(name)) == made
