"""Bounds on the work of validation."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.json_schema.bounds import (
    MAX_DEPTH,
    MAX_EVALUATIONS,
    MAX_NODES,
    evaluations,
    measure,
)


def doubling(word: str, times: int) -> Json:
    """Return a schema of few parts, each of which refers to the next one twice."""
    parts: Json = {
        f"p{i}": {word: [{"$ref": f"#/$defs/p{i + 1}"}, {"$ref": f"#/$defs/p{i + 1}"}]}
        for i in range(times)
    }
    return {"$ref": "#/$defs/p0", "$defs": {**parts, f"p{times}": {"type": "string"}}}


def tree(*names: str) -> Json:
    """Return the schema of a tree with branches of these names."""
    return {"type": "object", "properties": {name: {"$ref": "#"} for name in names}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, 1),
        ({"type": "object", "properties": {"a": {}, "b": {"type": "string"}}}, 1),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3),
        ({"properties": {"a": {"oneOf": [{}] * 5}}, "additionalProperties": {}}, 6),
        ({"items": {"allOf": [{}, {}]}, "prefixItems": [{"not": {}}], "contains": {}}, 4),
        ({"dependentSchemas": {"a": {"if": {}, "then": {}, "else": {}}}}, 5),
        ({"$ref": "#a", "$defs": {"x": {"$anchor": "a", "$ref": "#/$defs/y~1z"}, "y/z": {}}}, 3),
        ({"$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a"}}}, 2),
        ({"allOf": [{}, {}], "unevaluatedProperties": False}, 5),
        (tree("left", "right", "middle"), 2),
        ({"items": {"$ref": "#"}}, 2),
        ({"prefixItems": [True, {"enum": [1, {"$ref": "#"}]}]}, 1),
        ({"properties": [], "allOf": 1, "$ref": 2, "items": [{}]}, 1),
        (doubling("anyOf", 3), 30),
    ],
)
def test_the_parts_that_judge_one_place_are_counted(schema: Json, expected: int) -> None:
    assert evaluations(schema) == expected


@pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
def test_references_that_multiply_are_refused(word: str) -> None:
    with pytest.raises(InvalidInput, match="too complex"):
        evaluations(doubling(word, 200))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}},
        {"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]},
        {"anyOf": [tree("a")["properties"], tree("a"), tree("a")]},
        {"anyOf": [{}] * (MAX_EVALUATIONS + 1)},
        {"$id": "https://a/", "$ref": "b", "$defs": {"b": {"$id": "b", "$ref": "https://a/"}}},
    ],
)
def test_schemas_that_meet_themselves_too_often_are_refused(schema: Json) -> None:
    with pytest.raises(InvalidInput, match="too complex"):
        evaluations(schema)


def test_a_wide_and_deep_schema_is_simple() -> None:
    wide = {f"p{i}": {"type": "string"} for i in range(900)}
    assert evaluations({"properties": wide}) == 1
    deep: Json = {"type": "string"}
    for _ in range(900):
        deep = {"properties": {"a": deep}, "items": deep}
    assert evaluations(deep) == 1


def test_a_schema_of_any_json_is_simple() -> None:
    again = {"$ref": "#"}
    any_json = {"items": again, "properties": {"a": again}, "additionalProperties": again}
    assert evaluations(any_json) == 2


def test_parts_that_meet_in_very_many_ways_are_refused() -> None:
    kinds = [
        {"properties": {f"p{i}": {"$ref": f"#/$defs/k{(i * j) % 17}"} for i in range(10)}}
        for j in range(17)
    ]
    parts: Json = {
        f"k{j}": {"anyOf": [one, {"items": {"$ref": "#"}}]} for j, one in enumerate(kinds)
    }
    with pytest.raises(InvalidInput, match="too complex"):
        evaluations({"anyOf": [{"$ref": f"#/$defs/k{j}"} for j in range(17)], "$defs": parts})


def test_a_reference_to_nothing_counts_nothing() -> None:
    assert evaluations({"$ref": "#/$defs/none/1"}) == evaluations({"$ref": "#none"}) == 1
    assert evaluations({"$ref": "#/allOf/" + "9" * 5000, "allOf": [{}]}) == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)
WORDS = st.sampled_from(
    ["properties", "items", "allOf", "anyOf", "$ref", "$defs", "prefixItems", "$id", "$anchor"]
)
SCHEMAS = st.recursive(
    st.just({}) | st.sampled_from(["#", "#/$defs/items", "#a", "x"]) | JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@given(SCHEMAS.filter(lambda schema: isinstance(schema, dict)))
def test_any_object_is_counted_or_refused(schema: Json) -> None:
    with contextlib.suppress(InvalidInput):
        assert 1 <= evaluations(schema) <= MAX_EVALUATIONS


def size(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(size, inner))


@given(JSON)
def test_values_are_counted(value: Any) -> None:
    assert measure(value) == size(value)


def test_values_that_are_too_deep_or_too_many_are_refused() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert measure(value) == MAX_DEPTH
    with pytest.raises(InvalidInput, match="nested deeper"):
        measure([value])
    with pytest.raises(InvalidInput, match="values in it"):
        measure([0] * MAX_NODES)
