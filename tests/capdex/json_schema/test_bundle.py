"""The parameters of a tool as one schema by itself, which any validator understands."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from capdex.json_schema.bundle import self_contained

PACKAGE: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "did:nuwa:state:note#v1",
    "type": "object",
    "properties": {
        "title": {"$ref": "#/$defs/line"},
        "parent": {"$ref": "#"},
        "mood": {"$ref": "#mood"},
        "a/b~c": {"type": "boolean"},
    },
    "required": ["title"],
    "$defs": {"line": {"type": "string", "maxLength": 5}, "m": {"$anchor": "mood", "enum": ["ok"]}},
}


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def accepts(schema: dict[str, Any], value: Any) -> bool:
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema).is_valid(value)


def test_parameters_without_a_reference_to_the_package_stay_as_they_are() -> None:
    own = parameters(city={"$ref": "#/$defs/city"}) | {"$defs": {"city": {"type": "string"}}}
    assert self_contained(own, PACKAGE) == own


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({"title": "short"}, True),
        ({"title": "too long"}, False),
        ({"title": "a", "parent": {"title": "b", "mood": "ok"}}, True),
        ({"title": "a", "parent": {"mood": "ok"}}, False),
        ({"title": "a", "mood": "bad"}, False),
    ],
)
def test_the_schema_of_the_package_keeps_its_meaning(value: Any, *, valid: bool) -> None:
    schema = self_contained(parameters(object={"$ref": "#/schema"}), PACKAGE)
    assert accepts(schema, {"object": value}) is valid


def test_a_path_below_the_package_schema_is_followed_with_its_escapes() -> None:
    schema = self_contained(
        parameters(flag={"$ref": "#/schema/properties/a~1b~0c"}, all={"$ref": "#/%73chema"}),
        PACKAGE,
    )
    assert accepts(schema, {"flag": True})
    assert not accepts(schema, {"flag": "yes"})
    assert not accepts(schema, {"all": {}})


def test_definitions_and_anchors_of_the_tool_keep_their_names() -> None:
    tool = parameters(object={"$ref": "#/schema"}, mine={"$ref": "#/$defs/schema"}) | {
        "$defs": {"schema": {"$anchor": "mood", "type": "integer"}}
    }
    schema = self_contained(tool, PACKAGE)
    assert accepts(schema, {"mine": 1, "object": {"title": "a", "mood": "ok"}})
    assert not accepts(schema, {"mine": "ok"})
    assert not accepts(schema, {"object": {"title": "a", "mood": 1}})


def test_values_that_only_look_like_references_stay() -> None:
    likeness = {"$ref": "#/schema"}
    tool = parameters(a={"const": likeness}, b={"enum": [likeness]}, c={"default": likeness})
    tool["properties"]["$ref"] = {"$ref": "#/schema"}
    made = self_contained(tool, PACKAGE)["properties"]
    assert [made["a"]["const"], made["b"]["enum"], made["c"]["default"]] == [
        likeness,
        [likeness],
        likeness,
    ]
    assert made["$ref"] == {"$ref": "#/$defs/schema"}
