"""Filters: Mongo's meaning of each operator, and the bounds of all."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput
from capdex_router.state.filter import compiled
from capdex_router.state.values import equal

NOTE = {
    "title": "Oslo in winter",
    "n": 3,
    "x": 1.0,
    "done": False,
    "none": None,
    "tags": ["a", "b", 3],
    "in": {"deep": {"er": 7}},
    "rows": [{"k": 1, "v": "x"}, {"k": 2, "v": "y"}],
    "empty": [],
}


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ({}, True),
        ({"n": 3}, True), ({"n": 3.0}, True), ({"n": "3"}, False), ({"x": 1}, True),
        ({"done": False}, True), ({"done": 0}, False), ({"n": 3, "done": True}, False),
        ({"none": None}, True), ({"missing": None}, True), ({"n": None}, False),
        ({"tags": "a"}, True), ({"tags": ["a", "b", 3]}, True), ({"tags": ["a"]}, False),
        ({"in": {"deep": {"er": 7}}}, True), ({"in.deep.er": 7}, True), ({"in.deep": 7}, False),
        ({"rows.k": 2}, True), ({"rows.1.v": "y"}, True), ({"rows.0.v": "y"}, False),
        ({"n": {"$eq": 3}}, True), ({"n": {"$ne": 3}}, False), ({"missing": {"$ne": 3}}, True),
        ({"tags": {"$ne": "a"}}, False),
        ({"n": {"$gt": 2}}, True), ({"n": {"$gte": 3, "$lt": 4}}, True), ({"n": {"$lte": 2}}, False),
        ({"n": {"$gt": "2"}}, False), ({"title": {"$gt": "A"}}, True), ({"done": {"$gte": 0}}, False),
        ({"n": {"$in": [1, 3]}}, True), ({"n": {"$nin": [1, 3]}}, False), ({"tags": {"$in": ["b"]}}, True),
        ({"missing": {"$in": [None]}}, True), ({"missing": {"$nin": [1]}}, True),
        ({"tags": {"$all": ["a", 3]}}, True), ({"tags": {"$all": ["a", "z"]}}, False),
        ({"tags": {"$all": []}}, False),
        ({"tags": {"$size": 3}}, True), ({"empty": {"$size": 0}}, True), ({"n": {"$size": 1}}, False),
        ({"n": {"$exists": True}}, True), ({"missing": {"$exists": False}}, True),
        ({"none": {"$exists": True}}, True),
        ({"n": {"$type": "integer"}}, True), ({"done": {"$type": "number"}}, False),
        ({"none": {"$type": "null"}}, True), ({"tags": {"$type": "array"}}, True),
        ({"rows": {"$elemMatch": {"k": 1, "v": "x"}}}, True),
        ({"rows": {"$elemMatch": {"k": 1, "v": "y"}}}, False),
        ({"tags": {"$elemMatch": {"$gt": 2, "$lt": 4}}}, True),
        ({"$and": [{"n": 3}, {"x": 1}]}, True), ({"$or": [{"n": 4}, {"x": 1}]}, True),
        ({"$or": [{"n": 4}]}, False), ({"$nor": [{"n": 4}, {"x": 2}]}, True),
        ({"n": {"$not": {"$gt": 5}}}, True), ({"n": {"$not": {"$gt": 2}}}, False),
        ({"title": {"$regex": "(?i)^oslo"}}, True), ({"title": {"$regex": "summer"}}, False),
        ({"tags": {"$regex": "^b$"}}, True), ({"n": {"$regex": "3"}}, False),
        ({"tags": {"$contains": "b"}}, True), ({"title": {"$contains": "in win"}}, True),
        ({"tags": {"$contains": "z"}}, False), ({"n": {"$contains": 3}}, False),
        ({"__proto__": {"$exists": False}}, True),
    ],
)  # fmt: skip
def test_a_filter_holds(where: Any, holds: bool) -> None:
    assert compiled(where)(NOTE) is holds


@pytest.mark.parametrize(
    "where",
    [
        None, [], "x", {"$where": "1"}, {"n": {"$where": "1"}}, {"n": {"$gt": None}},
        {"n": {"$gt": [1]}}, {"n": {"$gt": True}}, {"n": {"$in": 1}}, {"n": {"$in": list(range(300))}},
        {"n": {"$size": "1"}}, {"n": {"$exists": 1}}, {"n": {"$type": "double"}}, {"n": {"$type": 1}},
        {"n": {"$elemMatch": 1}}, {"$and": []}, {"$or": {}}, {"$not": {"n": 1}}, {"n": {"$not": 1}},
        {"n": {"$regex": "("}}, {"n": {"$regex": "a" * 600}}, {"n": {"$regex": r"(a)\1"}},
        {"n": {"$regex": ".{1000}{1000}"}}, {"n": {"$regex": 1}}, {"n": {"$regex": "a", "$options": "i"}},
        {"n": {"$eq": 1, "m": 2}}, {"$inc": 1}, {"n" * 300: 1}, {".".join("abcdefghijklmnopqrst"): 1},
        {str(n): 1 for n in range(200)}, {"n": {"$eq": float("nan"), "$foo": 1}},
    ],
)  # fmt: skip
def test_anything_else_is_refused(where: Any) -> None:
    with pytest.raises(InvalidInput):
        compiled(where)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"title": {"$like": "x"}}, "$regex $contains"),
        ({"title": {"$regex": "x", "$options": "i"}}, "(?i)"),
        ({"$not": {"title": "x"}}, "where a field, $and, $or or $nor must stand"),
    ],
)
def test_an_operator_of_another_dialect_is_answered_with_those_that_there_are(
    where: Any, told: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        compiled(where)
    assert told in f"{refused.value.why}; {refused.value.fix}"


def test_nesting_is_bounded() -> None:
    where: Any = {"n": 1}
    for _ in range(50):
        where = {"$and": [where]}
    with pytest.raises(InvalidInput, match="cannot be used"):
        compiled(where)


@pytest.mark.load
def test_a_regex_bomb_is_linear() -> None:
    holds = compiled({"t": {"$regex": "^(a+)+$"}})
    started = time.process_time()
    assert not holds({"t": "a" * 200_000 + "b"})
    assert time.process_time() - started < 2  # of the processor; the bound of every hostile case


@pytest.mark.load
def test_choices_among_many_items_are_linear() -> None:
    holds = compiled({"a": {"$in": [2, [2], {"b": 2}] * 85}})
    started = time.process_time()
    assert not holds({"a": [1] * 100_000})
    assert time.process_time() - started < 2  # of the processor


@pytest.mark.parametrize(
    ("test", "value"),
    [
        ({"$in": [2]}, 1), ({"$all": [2]}, 1), ({"$contains": 2}, 1), ({"$gt": 2}, 1),
        ({"$elemMatch": {"$gt": 2}}, 1), ({"$elemMatch": {"b": 2}}, {"b": 1}), ({"$in": [[2]]}, [1]),
    ],
)  # fmt: skip
def test_what_one_query_compares_is_bounded(
    test: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex_router.state.filter.MAX_COMPARED", 1_000)
    holds = compiled({"a": test})
    assert not holds({"a": [value] * 100})
    with pytest.raises(InvalidInput, match="compares more than 1000 values") as refused:
        any(holds({"a": [value] * 100}) for _ in range(10))
    assert refused.value.code == Code.TOO_LARGE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["a", "b", "a.b", "$eq", "$in", "$not", "$or", "$elemMatch", "$all", "$gt",
                         "$regex", "$contains", "$size"]), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(JSON, JSON)
def test_any_filter_answers_or_is_refused(where: Any, value: Any) -> None:
    try:
        holds = compiled(where)
    except InvalidInput:
        return
    assert holds(value) in (True, False)


SIMILAR = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 0.5, "", "a", 2**53, 2.0**53]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
        st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=5,
)  # fmt: skip


@given(st.lists(SIMILAR, max_size=4), SIMILAR)
def test_a_value_is_one_of_the_choices_if_it_equals_one(choices: Any, value: Any) -> None:
    values = [value, *value] if isinstance(value, list) else [value]
    wanted = any(equal(x, y) for x in values for y in choices)
    assert compiled({"n": {"$in": choices}})({"n": value}) is wanted
