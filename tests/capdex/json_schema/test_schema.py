"""JSON Schema 2020-12 as packages use it (P8), compared with an independent validator."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from capdex.diagnostics import Findings
from capdex.json_schema.keywords import KEYWORDS
from capdex.json_schema.schema import (
    CONTAINERS,
    STRATEGIES,
    BadJson,
    check_package_schema,
    check_schema,
    is_schema_uri,
    parse_json,
)
from capdex.problems import Problem, Reason, Severity

META = Draft202012Validator(Draft202012Validator.META_SCHEMA)


def problems(schema: Any, package_schema: dict[str, Any] | None = None) -> list[Problem]:
    findings = Findings()
    check_schema(schema, ("schema",), findings, package_schema=package_schema)
    return list(findings.problems())


ATOMS = (
    st.sampled_from(
        [None, True, False, 0, 1, -1, 1.0, 1.5, 0.0, "", "a", "string", "a#", "#a#", []]
    )
    | st.lists(st.sampled_from(["a", "b", "object", "null", 1]), max_size=3)
    | st.sampled_from([{}, {"a": ["b"]}, {"a": True}, {"a": 1}, {"a": {}}, {"a": ["b", "b"]}])
)
WORDS = sorted(set(KEYWORDS) - {"$ref", "$dynamicRef", "$recursiveRef", "$schema", "$id"})
SCHEMAS = st.recursive(
    st.dictionaries(st.sampled_from(WORDS), ATOMS, max_size=3) | ATOMS,
    lambda inner: st.dictionaries(
        st.sampled_from(WORDS),
        inner | st.lists(inner, max_size=2) | st.fixed_dictionaries({"p": inner}),
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_the_table_agrees_with_the_meta_schema(schema: Any) -> None:
    assert (not problems(schema)) == META.is_valid(schema)


@pytest.mark.parametrize(
    "keyword", sorted(set(KEYWORDS) - {"$ref", "$dynamicRef", "$schema", "$id"})
)
@pytest.mark.parametrize("value", [None, True, 0, -1, 1.5, "a", "1", [], ["a", "a"], {}, {"a": 1}])
def test_each_keyword_agrees_with_the_meta_schema(keyword: str, value: Any) -> None:
    if keyword == "$recursiveRef" and isinstance(value, str):
        return  # a reference that our rules follow and the meta-schema does not
    assert (not problems({keyword: value})) == META.is_valid({keyword: value})


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema", "$id"])
def test_reserved_keywords_hold_text(keyword: str) -> None:
    (problem,) = problems({keyword: 1})
    assert (problem.code, problem.path) == (Reason.BAD_SCHEMA, f"schema.{keyword}")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$ref": "#a", "$defs": {"x": {"$anchor": "a"}}},
        {"$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a"}}},
        {"$defs": {"x": {"$anchor": "a"}, "y": {"$anchor": "b"}}, "$anchor": "A"},
        {"allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#a"}], "$defs": {"x": {"$anchor": "a"}}},
        {"allOf": [{"$ref": "#/allOf/1"}, {}]},
        {"$ref": "#/$defs/a~1b~0c%25", "$defs": {"a/b~c%": True}},
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}},
        {"const": {"$ref": "http://example.org/"}, "default": {"$id": 1}, "enum": [{"$ref": 1}]},
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"dependencies": {"a": ["b"], "c": {}}},
    ],
)
def test_local_references_and_data_are_fine(schema: Any) -> None:
    assert problems(schema) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://169.254.169.254/"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "other.json#/a"},
        {"$ref": ""},
        {"$ref": "#/nothing"},
        {"$ref": "#/required", "required": ["a"]},
        {"$ref": "#/allOf/01", "allOf": [{}, {}]},
        {"$ref": "#/allOf/7", "allOf": [{}]},
        {"$ref": "#nowhere"},
        {"$defs": {"x": {"$anchor": "a"}, "y": {"$anchor": "a", "type": "integer"}}},
        {"$anchor": "a", "$defs": {"x": {"$dynamicAnchor": "a"}}},
        {"$ref": "#a", "$defs": {"x": {"$anchor": "a", "not": {"$anchor": "a"}}}},
        {"$dynamicRef": "http://example.org/"},
        {"properties": {"a": {"$id": "https://example.org/a"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$ref": "#/x-hidden", "x-hidden": {"$ref": "http://example.org/"}},
        {"properties": {"a": 1}},
        {"items": [{}]},
    ],
)
def test_what_could_lead_out_of_the_package_is_refused(schema: Any) -> None:
    assert [x.code for x in problems(schema)] == [Reason.BAD_SCHEMA]


def test_a_tool_may_point_into_the_package_schema() -> None:
    package = {"properties": {"a": {"type": "string"}}}
    assert problems({"$ref": "#/schema"}, package) == []
    assert problems({"$ref": "#/schema/properties/a"}, package) == []
    assert len(problems({"$ref": "#/schema/properties/b"}, package)) == 1
    assert len(problems({"$ref": "#/schema"})) == 1


def test_a_misspelt_type_gets_a_hint() -> None:
    (problem,) = problems({"properties": {"a": {"type": "strnig"}}})
    assert (problem.path, problem.hint) == ("schema.properties.a.type", "did you mean string?")


def test_subschemas_are_counted() -> None:
    assert problems({"allOf": [{} for _ in range(999)]}) == []
    assert [x.code for x in problems({"allOf": [{} for _ in range(1000)]})] == [Reason.TOO_MANY]


@pytest.mark.parametrize(
    ("schema", "codes"),
    [
        ({"$id": "did:nuwa:state:note#v1"}, []),
        ({"$id": "https://example.org/note"}, [Reason.BAD_SCHEMA_URI]),
        ({"$id": 1}, [Reason.BAD_SCHEMA_URI]),
        ({}, [Reason.BAD_SCHEMA_URI]),
        ([], [Reason.BAD_SCHEMA]),
        (True, [Reason.BAD_SCHEMA]),
        ({"$id": "did:nuwa:state:note#v1", "type": "x"}, [Reason.BAD_SCHEMA]),
    ],
)
def test_the_package_schema_is_an_object_with_a_schema_uri(
    schema: Any, codes: list[Reason]
) -> None:
    findings = Findings()
    uri = check_package_schema(schema, ("schema",), findings)
    assert [x.code for x in findings.problems()] == codes
    assert (uri == "did:nuwa:state:note#v1") == (
        Reason.BAD_SCHEMA_URI not in codes and bool(schema) and schema is not True
    )


@pytest.mark.parametrize("text", ["did:nuwa:state:note#v1", "did:nuwa:state:a-b#1.2.0-rc.1"])
def test_schema_uris(text: str) -> None:
    assert is_schema_uri(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "did:nuwa:state:note",
        "did:nuwa:cap:note#v1",
        "did:nuwa:state:Note#v1",
        "did:nuwa:state:note#v1\n",
        "did:nuwa:state:" + "a" * 200 + "#v1",
    ],
)
def test_what_is_no_schema_uri(text: str) -> None:
    assert not is_schema_uri(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a":1,"a":2}',
        '{"a":NaN}',
        "[-Infinity]",
        "[1e999]",
        "[9007199254740992]",
        "[" + "1" * 5000 + "]",
        "[" * 33 + "]" * 33,
        "[" * 50_000,
        '"' + '\\"' * 20_000,
        '["\\ud800"]',
        '["\\u202e"]',
        '"a\nb"',
    ],
)
def test_what_is_not_strict_json_is_refused(text: str) -> None:
    with pytest.raises(BadJson):
        parse_json(text)


def test_strict_json_reads() -> None:
    text = '{"a": [1, 1.5, "[{", "\\u0000\\"", null], "b": {"c": true}}'
    assert parse_json(text) == {"a": [1, 1.5, "[{", '\x00"', None], "b": {"c": True}}


@given(st.text())
def test_any_text_is_json_or_bad(text: str) -> None:
    with suppress(BadJson):
        assert parse_json(text) == json.loads(text)


# how state merges -------------------------------------------------------------------------------


def flagged(mark: str, value: Any) -> list[tuple[Reason, str, Severity]]:
    findings = Findings()
    check_schema({"properties": {"a": {"type": "string", mark: value}}}, (), findings)
    return [(x.code, x.path, x.severity) for x in findings.problems()]


@pytest.mark.parametrize("word", [*STRATEGIES, *CONTAINERS])
def test_known_ways_to_merge_are_taken(word: str) -> None:
    assert flagged("x-crdt", word) == []
    assert flagged("x-asm", {"container": "map", "type": word, "note": 1}) == []


@pytest.mark.parametrize(
    ("mark", "value", "path"),
    [
        ("x-crdt", "lww-register", "properties.a.x-crdt"),
        ("x-crdt", 7, "properties.a.x-crdt"),
        ("x-crdt", None, "properties.a.x-crdt"),
        ("x-asm", {"container": "counter"}, "properties.a.x-asm.container"),
        ("x-asm", {"crdt": ["flag"]}, "properties.a.x-asm.crdt"),
        ("x-asm", {"strategy": "last"}, "properties.a.x-asm.strategy"),
    ],
)
def test_unknown_ways_to_merge_are_flagged(mark: str, value: Any, path: str) -> None:
    assert flagged(mark, value) == [(Reason.BAD_SCHEMA, path, Severity.WARNING)]


def test_a_slip_of_the_finger_is_told() -> None:
    findings = Findings()
    check_schema({"x-crdt": "lww_registr"}, (), findings)
    assert findings.problems()[0].hint == "did you mean lww_register?"
