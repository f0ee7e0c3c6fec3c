"""Whether one schema takes all that another one takes, held against an independent validator."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from capdex.diff.schema_compatibility import (
    MAX_GAPS,
    MAX_STEPS,
    UNDECIDED,
    SchemaComparison,
    SchemaGap,
    StepsLeft,
    compare_schemas,
)
from capdex.json_schema.keywords import same
from capdex.json_schema.subschema import Schema, accepts

META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
RECURSIVE = {
    "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}},
    "required": ["value"],
}


def takes(schema: Any, value: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(value))


def comparison(
    a: Any, b: Any, *packages: Any, state: bool = False, steps: int = MAX_STEPS
) -> SchemaComparison:
    one, other = packages or (None, None)
    left = StepsLeft.of(steps)
    return compare_schemas(Schema(a, a, one), Schema(b, b, other), left, state=state)


def gaps(a: Any, b: Any, *packages: Any, state: bool = False) -> tuple[SchemaGap, ...]:
    return comparison(a, b, *packages, state=state).narrowed


def fits(a: Any, b: Any) -> bool:
    """True if `b` is found to accept all that `a` does."""
    return not gaps(a, b)


def found(a: Any, b: Any, *, state: bool = False) -> list[tuple[str, str]]:
    return [(gap.path, gap.keyword) for gap in gaps(a, b, state=state)]


def closed(schema: Any) -> Any:
    """The schema with no other properties than those it names, wherever it names some."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copied = {key: closed(item) for key, item in schema.items()}
    if "properties" in copied and "additionalProperties" not in copied:
        copied["additionalProperties"] = False
    return copied


# against an independent validator ---------------------------------------------------------------

# Few names, texts and numbers, so that schemas and values meet.
NAMES = st.sampled_from(["a", "b", "c1"])
NUMBERS = st.sampled_from([-1, 0, 1, 2, 3, 4, 6, 0.5, 1.0, 1.5])
TEXTS = st.sampled_from(["", "a", "b", "ab", "c1", "1"])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
COUNTS = st.integers(0, 3)
PATTERNS = st.sampled_from(["^a", "b", "^[ab]$", "1$", "^(a|c)", "^.{2}$", r"\d", "(?!a)"])
# References stand below properties and items alone: a schema that is itself has no meaning.
REFERENCES = st.sampled_from(["#", "#/$defs/d"]).map(lambda text: {"$ref": text})
TABLE: dict[str, Any] = {
    "type": lambda _: TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": lambda _: st.lists(VALUES, min_size=1, max_size=3),
    "const": lambda _: VALUES,
    "properties": lambda inner: st.dictionaries(NAMES, inner | REFERENCES, max_size=2),
    "patternProperties": lambda inner: st.dictionaries(PATTERNS, inner, max_size=2),
    "required": lambda _: st.lists(NAMES, max_size=2, unique=True),
    "dependentRequired": lambda _: st.dictionaries(
        NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=1
    ),
    "dependentSchemas": lambda inner: st.dictionaries(NAMES, inner, max_size=1),
    "multipleOf": lambda _: st.sampled_from([1, 2, 3, 0.5, 6]),
    "uniqueItems": lambda _: st.booleans(),
    "pattern": lambda _: PATTERNS,
    **dict.fromkeys(["items", "additionalProperties"], lambda inner: inner | REFERENCES),
    **dict.fromkeys(
        ["propertyNames", "contains", "not", "if", "then", "else", "unevaluatedProperties"],
        lambda inner: inner,
    ),
    **dict.fromkeys(
        ["prefixItems", "allOf", "anyOf", "oneOf"],
        lambda inner: st.lists(inner, min_size=1, max_size=3),
    ),
    **dict.fromkeys(
        [f"{end}{what}" for end in ("min", "max") for what in ("Length", "Items", "Properties")]
        + ["minContains", "maxContains"],
        lambda _: COUNTS,
    ),
    **dict.fromkeys(
        ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], lambda _: NUMBERS
    ),
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """One to three keywords: more of them leave hardly any value."""
    inner = st.booleans() | (schemas(depth - 1) if depth else st.just({}))
    words = st.lists(st.sampled_from(sorted(TABLE)), min_size=1, max_size=3, unique=True)
    return {word: draw(TABLE[word](inner)) for word in draw(words)}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema, and what a few edits made of it."""
    before = draw(schemas()) | {"$defs": {"d": draw(schemas(1))}}
    after = copy.deepcopy(before)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.sampled_from(_objects(after)))
        edit = draw(st.sampled_from(["drop", "put", "anyOf", "allOf", "oneOf"]))
        words = sorted(set(at) - {"$defs", "d"})
        if edit == "drop" and words:
            del at[draw(st.sampled_from(words))]
        elif edit == "put":
            word = draw(st.sampled_from(sorted(TABLE)))
            at[word] = draw(TABLE[word](schemas(0)))
        elif edit in ("anyOf", "allOf", "oneOf") and at is not after:
            was = dict(at)
            at.clear()
            at[edit] = [was, draw(schemas(0))]
    assume(META.is_valid(after))
    return before, after


def _objects(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return [*own, *(x for item in inner for x in _objects(item))]


SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def test_a_new_property_is_told_once_where_no_others_are_allowed() -> None:
    one = closed({"type": "object", "properties": {"day": {"type": "string"}}})
    both = copy.deepcopy(one)
    both["properties"]["hour"] = {"type": "integer"}
    assert [(x.path, x.keyword) for x in comparison(one, both).widened] == [("hour", "dropped")]


@given(pairs(), st.lists(VALUES, min_size=10, max_size=10))
@SLOW
def test_what_is_called_compatible_takes_every_value(
    pair: tuple[Any, Any], values: list[Any]
) -> None:
    """Of the properties that the old schema names: others count as never written."""
    a, b = pair
    # What is closed below these takes more, not less.
    assume(not {"not", "if", "oneOf", "contains"} & {key for x in _objects(a) for key in x})
    for state in (False, True):
        if not gaps(a, b, state=state):
            assert [x for x in values if takes(closed(a), x) and not takes(b, x)] == []


@given(pairs())
@SLOW
def test_what_is_called_incompatible_has_an_example(pair: tuple[Any, Any]) -> None:
    for a, b in (pair, pair[::-1]):
        compared = comparison(a, b)
        for example in compared.examples:
            assert takes(a, example)
            assert not takes(b, example)
        assert compared.narrowed or not compared.examples


@given(schemas(), st.lists(VALUES, min_size=5, max_size=5))
@SLOW
def test_evaluating_agrees_with_an_independent_validator(
    schema: dict[str, Any], values: list[Any]
) -> None:
    schema |= {"$defs": {"d": {"type": "string"}}}
    for value in values:
        answer = accepts(Schema(schema, schema), value, iter(range(MAX_STEPS)))
        assert answer is None or answer == takes(schema, value)


@given(schemas())
@SLOW
def test_a_schema_fits_itself_and_anything_fits_no_schema_at_all(schema: dict[str, Any]) -> None:
    schema |= {"$defs": {"d": {"type": "string"}}}
    again = copy.deepcopy(schema) | {"title": "the same"}
    assert found(schema, again, state=True) == []
    assert fits({"not": {}}, schema) or fits(False, schema)


def test_a_const_that_its_enum_does_not_list_leaves_no_value() -> None:
    schema = {"enum": [None], "const": []}
    assert found(schema, dict(schema), state=True) == []
    assert found({"enum": [1, 2], "const": 1}, {"const": 1}, state=True) == []


# what counts, one by one ------------------------------------------------------------------------

TEXT, NUMBER, INTEGER = ({"type": x} for x in ("string", "number", "integer"))
OPEN = {"properties": {"a": TEXT}}

WIDER = [
    (INTEGER, NUMBER),
    (TEXT, {"type": ["string", "null"]}),
    ({"enum": ["a"]}, {"enum": ["b", "a"]}),
    ({"const": "a"}, {"enum": ["b", "a"]}),
    ({"enum": ["a", "b"]}, TEXT),
    (TEXT | {"minLength": 2}, TEXT | {"minLength": 1}),
    (NUMBER | {"minimum": 1}, NUMBER | {"exclusiveMinimum": 0}),
    ({"multipleOf": 6}, {"multipleOf": 3}),
    ({"required": ["a", "b"]}, {"required": ["a"]}),
    (OPEN | {"additionalProperties": False}, OPEN),
    ({"items": INTEGER, "maxItems": 2}, {"items": NUMBER, "maxItems": 3}),
    ({"$ref": "#/$defs/a", "$defs": {"a": INTEGER}}, NUMBER),
    (INTEGER, {"$ref": "#/$defs/b", "$defs": {"b": NUMBER}}),
    (RECURSIVE, RECURSIVE | {"required": []}),
    (INTEGER | {"multipleOf": 3}, {"multipleOf": 3}),
    (TEXT | {"pattern": "^a"}, {"pattern": "^a"}),
    (TEXT | {"format": "uuid"}, {"format": "uuid"}),
    ({"type": "array", "uniqueItems": True}, {"uniqueItems": True}),
]
# Wider in fact, and not told by a comparison keyword by keyword.
CANNOT_TELL = [
    ({"enum": [1, 2.0]}, INTEGER | {"minimum": 1}),
    ({"type": "boolean"}, {"enum": [True, False, None]}),
    ({"required": ["a", "b"]}, {"minProperties": 2}),
    ({"const": {"a": "x"}}, OPEN | {"required": ["a"], "additionalProperties": False}),
    ({"anyOf": [TEXT, INTEGER]}, {"anyOf": [{"type": "null"}, NUMBER, TEXT]}),
    ({"type": "boolean"}, {"enum": [True, False]}),
    (INTEGER | {"exclusiveMinimum": 0}, INTEGER | {"minimum": 1}),
    ({"allOf": [TEXT, {"minLength": 1}]}, TEXT | {"minLength": 1}),
    (TEXT, {"allOf": [TEXT, {}]}),
    ({"enum": ["ab", "b"]}, {"pattern": "b$"}),
    ({"const": [1, "a"]}, {"prefixItems": [INTEGER], "contains": TEXT}),
    ({"oneOf": [TEXT, INTEGER]}, {"oneOf": [TEXT, INTEGER, {"type": "null"}]}),
    (TEXT, {"not": INTEGER}),
    ({"if": TEXT, "then": {"minLength": 2}}, {"if": TEXT, "then": {"minLength": 1}}),
    ({"patternProperties": {"^a": INTEGER}}, {"patternProperties": {"^a": NUMBER}}),
    ({"propertyNames": {"const": "a"}}, {"propertyNames": {"minLength": 1}}),
    ({"contains": INTEGER, "minContains": 2}, {"contains": NUMBER}),
    (
        {"contains": NUMBER, "minContains": 0, "maxContains": 2},
        {"contains": INTEGER, "minContains": 0, "maxContains": 3},
    ),
    (INTEGER, {"multipleOf": 1}),
    ({"type": "array", "maxItems": 1}, {"uniqueItems": True}),
    ({"not": {"type": ["string", "null"]}}, {"not": TEXT}),
    (
        {"patternProperties": {"^a": INTEGER}, "additionalProperties": False},
        {"properties": {"ab": NUMBER}},
    ),
    (
        {"patternProperties": {"^a": TEXT}, "additionalProperties": False},
        {"additionalProperties": TEXT},
    ),
    ({"type": "array", "items": INTEGER, "maxItems": 1}, {"prefixItems": [INTEGER, TEXT]}),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
def test_a_wider_schema_takes_all_and_a_narrower_one_does_not(narrow: Any, wide: Any) -> None:
    assert fits(narrow, wide)
    assert not fits(wide, narrow)


@pytest.mark.parametrize(("narrow", "wide"), CANNOT_TELL)
def test_what_cannot_be_told_is_neither_compatible_nor_incompatible(narrow: Any, wide: Any) -> None:
    compared = comparison(narrow, wide)
    assert compared.narrowed
    assert not compared.decided


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"items": TEXT}, {"items": {"$ref": "#/$defs/t"}, "$defs": {"t": TEXT}}),
        ({"anyOf": [TEXT, INTEGER]}, {"anyOf": [TEXT | {"title": "text"}, INTEGER]}),
        ({"const": 1}, {"enum": [1.0]}),
        ({"minLength": 0}, {}),
    ],
)
def test_the_same_said_otherwise_fits_both_ways(one: Any, other: Any) -> None:
    assert fits(one, other)
    assert fits(other, one)


@pytest.mark.parametrize(
    ("old", "new", "gap"),
    [
        (NUMBER, INTEGER, ("", "type")),
        (TEXT, INTEGER, ("", "type")),
        ({}, TEXT, ("", "type")),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, ("", "missing")),
        (TEXT, {"enum": ["a"]}, ("", "enum")),
        ({"enum": [1]}, {"enum": [True]}, ("", "missing")),
        (TEXT, TEXT | {"pattern": "^a"}, ("", "pattern")),
        (TEXT | {"pattern": "^a"}, TEXT | {"pattern": "^a?"}, ("", "pattern")),
        (TEXT, TEXT | {"format": "uuid"}, ("", "format")),
        (TEXT, TEXT | {"maxLength": 9}, ("", "maxLength")),
        (NUMBER | {"minimum": 0}, NUMBER | {"exclusiveMinimum": 0}, ("", "exclusiveMinimum")),
        ({"multipleOf": 0.3}, {"multipleOf": 0.1}, ("", "multipleOf")),  # readers differ
        (OPEN, OPEN | {"required": ["a"]}, ("a", "required")),
        (OPEN, OPEN | {"additionalProperties": False}, ("*", "false")),
        (OPEN, {"properties": {"a": INTEGER}}, ("a", "type")),
        ({"items": TEXT}, {"items": INTEGER}, ("[]", "type")),
        ({"properties": {"a": {"items": OPEN}}}, {"properties": {"a": {"items": {}}}}, None),
        (TEXT, False, ("", "false")),
        ({"anyOf": [TEXT, INTEGER]}, {"anyOf": [TEXT, {"type": "null"}]}, ("", "anyOf")),
        ({"anyOf": [TEXT, INTEGER]}, TEXT, ("", "type")),
        ({"anyOf": [TEXT, INTEGER]}, {"oneOf": [TEXT, NUMBER, INTEGER]}, ("", "oneOf")),
        ({}, {"not": TEXT}, ("", "not")),
        ({}, {"if": TEXT, "then": False}, ("", "if")),
        ({}, {"unevaluatedProperties": False}, ("", "unevaluatedProperties")),
        ({}, {"$ref": "#here", "$defs": {"x": {"$anchor": "here"}}}, ("", "$ref")),
        (TEXT, {"$ref": "#"}, ("", "$ref")),
        ({"contains": NUMBER}, {"contains": INTEGER}, ("", "contains")),
        (RECURSIVE, RECURSIVE | {"required": ["value", "next"]}, ("next", "required")),
        ({}, {"uniqueItems": True}, ("", "uniqueItems")),
        ({}, {"uniqueItems": False}, None),
        (
            {
                "patternProperties": {"^a": INTEGER},
                "allOf": [{"patternProperties": {"^b": TEXT}, "additionalProperties": False}],
            },
            {"patternProperties": {"^c": INTEGER}},
            ("", "patternProperties"),
        ),
    ],
)
def test_a_gap_says_where_and_by_which_keyword(
    old: Any, new: Any, gap: tuple[str, str] | None
) -> None:
    assert found(old, new)[:1] == ([gap] if gap else [])


def test_an_optional_property_may_be_added_where_others_are_named() -> None:
    two = {"properties": {"a": TEXT, "b": INTEGER}}
    assert found(OPEN, two) == []
    for spoken in (True, TEXT):
        assert found(OPEN | {"additionalProperties": spoken}, two) == [("b", "type")]
    assert found({"type": "object"}, two) == [("a", "type"), ("b", "type")]
    assert found(OPEN | {"required": ["b"]}, two) == [("b", "type")]
    assert found(OPEN | {"enum": [{"b": "text"}]}, two) == [("b", "type")]


def test_a_property_that_is_named_no_longer_is_a_gap() -> None:
    two = {"properties": {"a": TEXT, "b": INTEGER}}
    assert found(two, OPEN) == [("b", "dropped")]
    moved = comparison(two, {"allOf": [OPEN, {"properties": {"b": INTEGER}}]})
    assert ("", "allOf") in [(gap.path, gap.keyword) for gap in moved.narrowed]
    assert not moved.decided
    patterned = found(two, OPEN | {"patternProperties": {"^b": INTEGER}})
    assert ("b", "dropped") not in patterned
    assert found({"properties": {"x": two}}, {"properties": {"x": {}}}) == []


def test_equal_branches_follow_when_the_document_around_them_changes() -> None:
    """A reference inside `anyOf` means its target, here the recursive definition of a tree."""
    tree = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/t"}, NUMBER]}}}
    old: dict[str, Any] = {"properties": {"tree": {"$ref": "#/$defs/t"}}, "$defs": {"t": tree}}
    new = copy.deepcopy(old)
    new["properties"]["other"] = TEXT
    assert found(old, new) == []
    new["$defs"]["t"]["required"] = ["next"]
    assert found(old, new) == [("tree.next", "anyOf"), ("tree.next", "required")]


def test_how_replicas_merge_counts_in_state_alone() -> None:
    old = {"properties": {"a": TEXT | {"x-crdt": "lww_register"}}}
    new = {"properties": {"a": TEXT | {"x-crdt": "rga_text"}}}
    assert found(old, new) == []
    assert found(old, new, state=True) == [("a", "x-crdt")]
    assert found(old, OPEN, state=True) == [("a", "x-crdt")]
    for keyword in ("items", "additionalProperties", "not"):
        assert found({keyword: old}, {}, state=True) == [("", keyword)]
    moved = comparison(old, {"properties": {"a": {"allOf": [old["properties"]["a"]]}}}, state=True)
    assert moved.narrowed
    assert not moved.decided


def test_a_tools_parameters_reach_into_the_package_schema() -> None:
    tool = {"properties": {"object": {"$ref": "#/schema"}, "title": {"$ref": "#/schema/$defs/t"}}}
    old = {"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": TEXT}}
    new = {"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"const": "x"}}}
    assert gaps(tool, tool, old, old) == ()
    changed = comparison(tool, tool, old, new)
    assert [gap.path for gap in changed.narrowed] == ["object.a", "title"]
    assert changed.decided


def test_a_schema_that_is_copied_fits_itself_with_all_its_references() -> None:
    copied = copy.deepcopy(RECURSIVE) | {"title": "the same"}
    assert found(RECURSIVE, copied, state=True) == []


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_anchors_fit_where_the_whole_document_is_the_same(keyword: str) -> None:
    """What an anchor means is not worked out here, so nothing is said of another document."""
    old = {
        "properties": {"a": {keyword: "#here"}, "b": {keyword: "#here"}},
        "$defs": {"x": TEXT | {"$anchor": "here"}},
    }
    new = copy.deepcopy(old)
    assert found(old, new) == []
    new["$defs"]["x"]["type"] = "integer"  # type: ignore[index]
    assert found(old, new) == [("a", keyword), ("b", keyword)]


def test_both_directions_are_told_and_each_thing_once() -> None:
    old = {"properties": {"gone": TEXT, "a": TEXT, "e": {"enum": [1, 2]}}, "required": ["gone"]}
    new = {"properties": {"new": TEXT, "a": {}, "e": {"enum": [2, 3]}}, "required": ["new"]}
    compared = comparison(old, new)
    assert {(x.path, x.keyword) for x in compared.narrowed} == {
        ("gone", "dropped"),
        ("new", "required"),
        ("e", "missing"),
    }
    assert {(x.path, x.keyword) for x in compared.widened} == {("a", "type"), ("e", "missing")}


@pytest.mark.parametrize(
    ("gap", "narrowed", "widened"),
    [
        (SchemaGap("a", "dropped", "a"), "it is gone", "it is new"),
        (SchemaGap("a", "missing", ["x", 1]), 'it takes "x", 1 no longer', 'it takes "x", 1 too'),
        (
            SchemaGap("a", "enum", None, [*range(12)]),
            "it takes only 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more now",
            None,
        ),
        (
            SchemaGap("a", "minLength", 1, 3),
            "minLength of it was 1, is 3",
            "minLength of it was 3, is 1",
        ),
        (SchemaGap("a", "minLength", None, 3), "minLength of it is new: 3", None),
    ],
)
def test_a_gap_reads_well_in_both_directions(
    gap: SchemaGap, narrowed: str, widened: str | None
) -> None:
    assert gap.words("it", widened=False) == narrowed
    if widened:
        assert gap.words("it", widened=True) == widened


# hostile ----------------------------------------------------------------------------------------


def test_comparing_ends_and_says_so_when_it_was_not_done() -> None:
    inner: Any = {"type": "string"}
    for _ in range(12):  # 2 ** 12 ways, each of which fails at its end
        inner = {"anyOf": [{"properties": {"a": inner}}, {"properties": {"a": {"allOf": [inner]}}}]}
    other = copy.deepcopy(inner)
    _objects(other)[-1]["type"] = "integer"
    assert gaps(inner, other)
    assert [x.keyword for x in comparison({}, TEXT, steps=0).narrowed] == [UNDECIDED]


def test_a_size_that_no_value_has_is_no_example() -> None:
    old, new = (
        {"properties": {"a": {"type": "array", "minItems": 2**53 - 1, "items": {"type": kind}}}}
        for kind in ("string", "integer")
    )
    compared = comparison(old, new)
    assert [(x.path, x.keyword) for x in compared.narrowed] == [("a[]", "type")]
    assert not compared.decided


@pytest.mark.parametrize(
    "many",
    [
        {"enum": list(range(5_000))},
        {"const": [[i] for i in range(3_000)]},
        {"properties": {f"p{i}": True for i in range(5_000)}},
        {"required": [f"p{i}" for i in range(5_000)]},
    ],
    ids=lambda many: next(iter(many)),
)
def test_many_values_take_more_steps_each_time_they_are_compared(many: dict[str, Any]) -> None:
    ways = {f"w{i}": {"not": {"$ref": "#/$defs/many"}} for i in range(400)}
    few, all_ways = (
        {"$defs": {"many": many, "other": {}}, "properties": dict(list(ways.items())[:count])}
        for count in (2, 400)
    )
    assert fits(few, copy.deepcopy(few))
    assert not fits(all_ways, copy.deepcopy(all_ways))
    direct = {**all_ways, "properties": {x: {"$ref": "#/$defs/many"} for x in ways}}
    assert [x.keyword for x in gaps(direct, copy.deepcopy(direct))][-1] == UNDECIDED


def test_comparisons_share_the_steps_to_look_for_examples() -> None:
    old, new = ({"properties": {"a": {"type": kind}}} for kind in ("string", "integer"))
    left = StepsLeft.of(looking=20)
    found = [
        compare_schemas(Schema(old, old), Schema(new, new), left, state=False) for _ in range(9)
    ]
    assert [x.decided for x in (found[0], found[-1])] == [True, False]
    assert {gap.path for x in found for gap in x.narrowed} == {"a"}
    assert next(left.looking, None) is None


def test_no_more_gaps_are_told_than_anybody_mends() -> None:
    many = {f"p{i}": TEXT for i in range(500)}
    assert len(found({"properties": many}, {"properties": {}})) == MAX_GAPS


def test_values_are_equal_as_json_says() -> None:
    assert same({"a": [1, None]}, {"a": [1.0, None]})
    assert not same(1, True)
    assert not same([0], [False])
