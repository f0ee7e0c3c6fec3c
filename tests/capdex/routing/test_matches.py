"""Matches of triggers and hits of a search in one ranking."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capdex.routing.matches import Match, combine

NAMES = st.sampled_from("abcdef")
SCORES = st.floats(0.01, 0.99)
FOUND = st.dictionaries(NAMES, st.floats(0.01, 100.0))


@given(st.dictionaries(NAMES, SCORES), FOUND, st.integers(1, 8), st.floats(0.1, 10.0))
def test_the_scale_of_the_search_changes_no_order(
    matched: dict[str, float], found: dict[str, float], limit: int, scale: float
) -> None:
    matches = [Match(name, score, ()) for name, score in matched.items()]
    ranked = combine(matches, found.items(), limit)
    assert len(ranked) == min(limit, len({*matched, *found}))
    assert ranked == sorted(ranked, key=lambda x: (-x.score, x.name))
    assert all((x.match is not None) == (x.name in matched) for x in ranked)
    scaled = combine(matches, [(name, score * scale) for name, score in found.items()], limit)
    for one, other in zip(ranked, scaled, strict=True):
        assert abs(one.score - other.score) < 1e-9


def test_a_package_that_both_find_is_before_one_of_each() -> None:
    ranked = combine([Match("a", 0.5, ()), Match("b", 0.5, ())], [("b", 3.0), ("c", 4.0)], 9)
    assert [x.name for x in ranked] == ["b", "c", "a"]


def test_nothing_found_is_nothing_ranked() -> None:
    assert combine([], [], 5) == []
