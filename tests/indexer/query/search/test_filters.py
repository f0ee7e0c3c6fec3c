"""Filters read from JSON (indexer/capdex_indexer/query/search/filters.py)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.search.engine import Filters
from capdex_indexer.query.search.filters import MAX_VALUES, SearchFilters

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("given_", "means"),
    [
        ({}, Filters()),
        ({"tag": "City"}, Filters({"tag": ("city",)})),
        ({"tag": ["a", "b"], "tool": "T"}, Filters({"tag": ("a", "b"), "tool": ("T",)})),
        ({"kind": "Skill"}, Filters({"kind": ("skill",)})),
        ({"not": {"license": ["MIT"]}}, Filters(none_of={"license": ("mit",)})),
        ({"has_prompt": True}, Filters({"section": ("prompt",)})),
        ({"has_prompt": False}, Filters(none_of={"section": ("prompt",)})),
        ({"published_since": "1970-01-02"}, Filters(at_least={"published": 86400.0})),
        (
            {"published_since": "1970-01-01T02:00+01:00"},
            Filters(at_least={"published": 3600.0}),
        ),
        ({"context_window": 8000}, Filters(at_most={"context_window": 8000})),
    ],
)
def test_filters_are_read(given_: dict[str, Any], means: Filters) -> None:
    assert SearchFilters.parse(given_).of_engine() == means


@pytest.mark.parametrize(
    ("given_", "fix"),
    [
        ({"tags": "x"}, "did you mean tag?"),
        ({"not": {"tags": "x"}}, "did you mean tag?"),
        ({"published_since": "yesterday"}, "write it like 2026-01-31"),
        ({"published_since": "2026-13-01"}, "write it like 2026-01-31"),
        ({"published_since": 5}, "write it like 2026-01-31"),
        ({"kind": "tool"}, "give one of skill, tools"),
        ({"not": {"kind": "tool"}}, "give one of skill, tools"),
        (
            {"verdict": "good"},
            "give one of verified, signed, unsigned, invalid, unresolvable, mismatch",
        ),
        ({"tag": 1}, None),
        ({"tag": ""}, None),
        ({"tag": []}, None),
        ({"tag": ["x", 1]}, None),
        ({"tag": "x" * 300}, None),
        ({"tag": ["x"] * (MAX_VALUES + 1)}, None),
        ({"not": {"has_prompt": True}}, None),
        ({"not": "x"}, None),
        ({"has_prompt": "yes"}, None),
        ({"context_window": True}, None),
        ({"context_window": -1}, None),
    ],
)
def test_a_wrong_filter_is_refused(given_: dict[str, Any], fix: str | None) -> None:
    with pytest.raises(InvalidInput) as refused:
        SearchFilters.parse(given_)
    assert fix is None or refused.value.fix == fix


@given(st.dictionaries(st.sampled_from(["tag", "not", "published_since", "x"]), JSON))
def test_any_json_is_read_or_refused(given_: dict[str, Any]) -> None:
    with suppress(InvalidInput):
        SearchFilters.parse(given_).of_engine()
