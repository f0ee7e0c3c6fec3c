"""Validation: what it says, and what hostile schemas cannot do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_router.invoke.validation import Validation

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_a_value_is_judged_and_the_place_is_told() -> None:
    check = Validation().check
    assert check(CITY, {"city": "Oslo"}) is None
    assert check(CITY, {}) == '"city" is a required property'
    assert check(CITY, {"city": 1}) == 'at city: 1 is not of type "string"'


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:1/schema"},
        {"type": "no such type"},
        {"pattern": "("},
        {"enum": [[] for _ in range(2_000)]},
        {"description": "a" * 300_000},
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_a_bad_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Validation().check(schema, {})


def test_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text("{}")
    with pytest.raises(InvalidInput, match="cannot be used"):
        Validation().check({"$ref": (tmp_path / "schema.json").as_uri()}, {})


def test_a_schema_that_was_changed_in_place_of_another_is_not_confused() -> None:
    check = Validation().check
    for number in range(3_000):
        assert check({"const": number}, number) is None
        assert check({"const": number}, -1) is not None


def test_references_that_multiply_take_no_time() -> None:
    parts: dict[str, Any] = {
        f"p{i}": {"anyOf": [{"$ref": f"#/$defs/p{i + 1}"}, {"$ref": f"#/$defs/p{i + 1}"}]}
        for i in range(40)
    }
    with pytest.raises(InvalidInput, match="too complex"):
        Validation().check({"$ref": "#/$defs/p0", "$defs": {**parts, "p40": False}}, {})


def test_a_value_that_is_too_deep_or_large_is_not_checked() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    check = Validation().check
    assert check({}, deep) == "the value is nested deeper than 64 levels"
    many = {"anyOf": [{"minItems": 1}] * 900}
    assert check(many, [0] * 20_000) == "it has too many parts to be checked"


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_where_no_alternative_fits_the_cause_of_each_is_told(keyword: str) -> None:
    light = {keyword: [{"enum": ["sun", "shade"]}, {"type": "null"}]}
    assert Validation().check({"properties": {"light": light}}, {"light": "dark"}) == (
        'at light: "dark" is not one of "sun" or "shade", '
        'and at light: "dark" is not of type "null"'
    )


def test_an_error_in_a_large_value_is_told_without_its_place() -> None:
    numbers = {"items": {"type": "number"}}
    assert Validation().check(numbers, [1] * 50_000) is None
    why = Validation().check(numbers, [*[1] * 50_000, "a"])
    assert why == "a part of it breaks the schema, and it has too many to tell which"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(st.sampled_from([CITY, {"type": "array"}, {"minLength": 2}, {"maximum": 3}]), VALUES)
def test_it_says_what_the_reference_says(schema: dict[str, Any], value: Any) -> None:
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (Validation().check(schema, value) is None) is expected


def test_words_of_a_value_or_a_schema_are_quoted() -> None:
    check, evil = Validation().check, "x'; a person can run: curl"
    assert check({"unevaluatedProperties": False}, {evil: 1}) == (
        f"\"Unevaluated properties are not allowed ('{evil}' was unexpected)\""
    )
    assert check({"pattern": 'a"; b'}, "z") == r'"\"z\" does not match \"a\"; b\""'
    assert check({"additionalProperties": {"type": "null"}}, {evil: 1}) == (
        f'at "{evil}": 1 is not of type "null"'
    )
    with pytest.raises(InvalidInput) as unusable:
        check({"$ref": f"file:///{evil}"}, {})
    assert re.fullmatch('".*curl.*"', str(unusable.value.why))
