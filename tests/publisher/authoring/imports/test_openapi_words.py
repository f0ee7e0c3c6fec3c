"""Words of documents that tell a caller what to send: examples, descriptions, what may be null."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.manifest.manifest import Manifest
from capdex_publisher.authoring.imports.draft import Draft, Imported, write_package
from capdex_publisher.authoring.imports.openai import import_openai
from capdex_publisher.authoring.imports.openapi.tool import import_openapi
from capdex_router.invoke.validation import Validation

ManifestOf = Callable[[Imported], Manifest]
TEXT = {"type": "string"}


def imported(operation: Json, version: str = "3.0.3", **document: Any) -> Imported:
    method = "post" if "requestBody" in operation else "get"
    whole = {
        "openapi": version,
        "info": {"title": "Rain"},
        "servers": [{"url": "https://api.rain.dev"}],
        "paths": {"/x": {method: {"operationId": "op", **operation}}},
        **document,
    }
    return write_package(import_openapi(json.dumps(whole).encode(), "rain", ()))


def query(**words: Any) -> Json:
    return {"parameters": [{"in": "query", "name": "q", **words}]}


def body(schema: Json, **media: Any) -> Json:
    content = {"application/json": {"schema": schema, **media}}
    return {"requestBody": {"required": True, "description": "What falls.", "content": content}}


def rows(package: Imported) -> list[tuple[str, str, str]]:
    return [(x.subject, x.fate, x.before) for x in package.notes if x.subject != "replies"]


@pytest.mark.parametrize(
    "words",
    [
        {"schema": {**TEXT, "example": "a"}},
        {"schema": TEXT, "example": "a"},
        {"schema": {**TEXT, "example": "b"}, "examples": {"x": {"value": "a"}}},
        {"schema": TEXT, "examples": {"x": {"$ref": "#/components/examples/A"}}},
        {"schema": TEXT, "examples": {"x": {"dataValue": "a", "serializedValue": "q=a"}}},
    ],
    ids=["schema", "parameter", "before", "reference", "3.2"],
)
def test_examples_of_a_parameter_are_those_of_its_argument(
    words: Json, manifest_of: ManifestOf
) -> None:
    package = imported(query(**words), components={"examples": {"A": {"value": "a"}}})
    properties = manifest_of(package).tools[0].parameters["properties"]
    assert properties == {"q": {**TEXT, "examples": ["a"]}}
    assert rows(package) == []


def test_an_example_of_a_body_is_that_of_its_members(manifest_of: ManifestOf) -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
    (tool,) = manifest_of(imported(body(schema, example={"a": "x"}))).tools
    assert tool.parameters["properties"] == {"a": {**TEXT, "examples": ["x"]}, "b": TEXT}
    assert tool.parameters["description"] == "What falls."
    whole = {"type": "array", "items": TEXT}
    (tool,) = manifest_of(imported(body(whole, examples={"x": {"value": ["a"]}}))).tools
    assert tool.parameters["properties"]["body"]["examples"] == [["a"]]


def test_an_example_that_stands_elsewhere_is_said() -> None:
    package = imported(query(schema=TEXT, examples={"big": {"externalValue": "./big.json"}}))
    assert rows(package) == [("query q example", "left out", "big")]


def test_an_example_that_looks_like_a_secret_is_left_out(manifest_of: ManifestOf) -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    for schema in ({**TEXT, "example": token}, {**TEXT, "examples": ["a", token]}):
        package = imported(query(schema=schema), "3.1.0")
        assert manifest_of(package).tools[0].parameters["properties"]["q"] == TEXT
        assert [x[:2] for x in rows(package)] == [("schema word examples", "left out")]


def test_an_example_beside_a_reference_is_kept(manifest_of: ManifestOf) -> None:
    schema = {"$ref": "#/components/schemas/D", "example": "a", "nullable": True}
    package = imported(query(schema=schema), components={"schemas": {"D": TEXT}})
    argument = manifest_of(package).tools[0].parameters["properties"]["q"]
    assert argument == {"$ref": "#/$defs/D", "examples": ["a"]}
    assert rows(package) == [("schema word nullable", "left out", "true")]


def test_descriptions_of_a_parameter_and_of_its_schema_are_both_kept(
    manifest_of: ManifestOf,
) -> None:
    for told in ("A day, as 2020-01-31.", "A day"):
        schema = {**TEXT, "description": told}
        (tool,) = manifest_of(imported(query(schema=schema, description="A day"))).tools
        text = tool.parameters["properties"]["q"]["description"]
        assert text == (told if told.startswith("A day") else f"A day {told}")
    long = imported(query(schema=TEXT, description="word " * 400))
    assert rows(long)[0][:2] == ("schema word description", "changed")


@pytest.mark.parametrize(
    ("operation", "item", "told"),
    [
        ({"summary": "Tells rain.", "description": "For a day."}, {}, "Tells rain.\n\nFor a day."),
        ({"summary": "Tells rain", "description": "Tells rain. A day."}, {}, "Tells rain. A day."),
        ({"summary": "Tells rain."}, {}, "Tells rain."),
        ({}, {"summary": "Rain", "description": "Of a day."}, "Rain.\n\nOf a day."),
        ({"summary": "Rain?", "description": "Of a day."}, {}, "Rain?\n\nOf a day."),
        ({"summary": "Rain"}, {}, "Rain"),
    ],
)
def test_a_tool_is_described_by_all_that_its_operation_says(
    operation: Json, item: Json, told: str, manifest_of: ManifestOf
) -> None:
    paths = {"/x": {**item, "get": {"operationId": "op", **operation}}}
    assert manifest_of(imported({}, paths=paths)).tools[0].description == told


def test_how_a_secret_is_written_is_said_once() -> None:
    scheme = {"type": "apiKey", "in": "header", "name": "X-Key", "description": "As `Key …`."}
    security: list[Json] = [{"site": []}]
    paths = {x: {"get": {"operationId": x, "security": security}} for x in ("a", "b")}
    value = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://api.rain.dev"}],
        "paths": {f"/{x}": y for x, y in paths.items()},
        "components": {"securitySchemes": {"site": scheme}},
    }
    package = write_package(import_openapi(json.dumps(value).encode(), "rain", ("a", "b")))
    assert rows(package) == [("secret SITE", "left out", "As `Key …`.")]


def test_names_that_yaml_reads_as_other_values_are_text(manifest_of: ManifestOf) -> None:
    text = """{openapi: 3.1.0, servers: [{url: "https://a.dev"}], paths: {/x: {post: {
        operationId: op, requestBody: {content: {application/json: {schema: {
        properties: {1: {}, true: {}, 2020-01-01: {}, null: {}}, required: ["1", "true"]}}}}}}}}"""
    data = f"# YAML\n{text}".encode()
    (tool,) = manifest_of(write_package(import_openapi(data, "rain", ()))).tools
    assert list(tool.parameters["properties"]) == ["1", "true", "2020-01-01", "null"]
    assert tool.parameters["required"] == ["1", "true"]


def test_a_word_of_openapi_3_0_allows_no_null_in_3_1_and_is_said(manifest_of: ManifestOf) -> None:
    operation = query(schema={**TEXT, "nullable": True})
    old, new = imported(operation), imported(operation, version="3.1.0")
    types = [manifest_of(x).tools[0].parameters["properties"]["q"]["type"] for x in (old, new)]
    assert types == [["string", "null"], "string"]
    assert (rows(old), rows(new)) == ([], [("schema word nullable", "left out", "true")])


def test_a_member_without_a_schema_takes_any_value(manifest_of: ManifestOf) -> None:
    schema = {"type": "object", "properties": {"a": None, "b": TEXT}}  # `a:` alone, in YAML
    package = imported(body({"type": "array", "items": schema}))
    (tool,) = manifest_of(package).tools
    assert tool.parameters["properties"]["body"]["items"]["properties"] == {"a": {}, "b": TEXT}
    assert ("schema word schema", "left out", "null") in rows(package)


def test_a_word_that_is_none_of_a_schema_is_said() -> None:
    schema = {**TEXT, "maxLenght": 3, "xml": {"name": "q"}, "x-order": 1, "nullable": False}
    assert rows(imported(query(schema=schema))) == [("schema word maxLenght", "left out", "3")]


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({**TEXT, "enum": [1.0, 2.0]}, "enum"),  # of YAML without quotes
        ({**TEXT, "default": 1.0}, "default"),
        ({"type": "integer", "enum": ["1"]}, "enum"),
        ({"type": ["string", "boolean"], "const": 3}, "const"),
    ],
)
def test_a_value_that_the_type_excludes_is_left_out_and_said(
    manifest_of: ManifestOf, schema: Json, word: str
) -> None:
    package = imported(query(schema=schema), "3.1.0")
    ((what, how, _),) = rows(package)
    assert (what, how) == (f"schema word {word}", "left out")
    assert manifest_of(package).tools[0].parameters["properties"]["q"] == {"type": schema["type"]}


def test_null_is_among_the_values_of_what_may_be_null(manifest_of: ManifestOf) -> None:
    kind = {**TEXT, "nullable": True, "enum": ["a", "b"]}
    package = imported(body({"type": "object", "properties": {"kind": kind}}))
    (tool,) = manifest_of(package).tools
    assert tool.parameters["properties"]["kind"]["enum"] == ["a", "b", None]
    assert Validation().check(tool.parameters, {"kind": None}) is None
    assert rows(package) == [("schema word enum", "changed", '["a", "b"]')]


def test_values_of_the_type_and_null_are_kept(manifest_of: ManifestOf) -> None:
    schema = {"type": "number", "enum": [1, 2.5, None], "default": None}
    package = imported(query(schema=schema), "3.1.0")
    assert rows(package) == []
    assert manifest_of(package).tools[0].parameters["properties"]["q"] == schema


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(unclosed", "it is no regular expression"),
        ("^(?=a)b", "a router cannot run this"),
        ("/^[a-z]+$/", "it is written as in JavaScript"),
        ("^[a-z]+$/i", "it is written as in JavaScript"),
    ],
)
def test_a_pattern_that_is_none_is_told_from_one_that_is_too_slow(pattern: str, why: str) -> None:
    package = imported(query(schema={**TEXT, "pattern": pattern}))
    (note,) = [x for x in package.notes if x.subject == "schema word pattern"]
    assert note.after.startswith(why)


@pytest.mark.parametrize("pattern", ["^/a/$", r"^[0-9]+\$/", "/[a-z]/", "^[$/]"])
def test_a_pattern_with_slashes_is_kept(pattern: str, manifest_of: ManifestOf) -> None:
    package = imported(query(schema={**TEXT, "pattern": pattern}))
    assert rows(package) == []
    assert manifest_of(package).tools[0].parameters["properties"]["q"]["pattern"] == pattern


PART: Json = {  # a schema of another file, bundled: the root of its references is itself
    "$id": "https://a.dev/s/place",
    "type": "object",
    "properties": {
        "a": {"$ref": "#/$defs/T"},
        "b": {"$ref": "#T"},
        "c": {"$ref": "text"},
        "d": {"$ref": "#/components/schemas/N"},
    },
    "$defs": {
        "T": {**TEXT, "$anchor": "T"},
        "U": {"$id": "text", **TEXT, "maxLength": 3},
    },
}
N = {"type": "integer"}


def test_references_in_a_part_with_an_id_lead_into_that_part(manifest_of: ManifestOf) -> None:
    schemas = {"P": PART, "N": N, "T": N}
    schema = {"$ref": "https://a.dev/s/place"}
    operation = query(schema=schema)
    operation["parameters"].append({"in": "query", "name": "o", "schema": {"$ref": "https://[x"}})
    package = imported(operation, "3.1.0", components={"schemas": schemas})
    assert rows(package) == [("schema word $ref", "left out", "https://[x")]
    parameters = manifest_of(package).tools[0].parameters
    for place in "abcd":
        for value in ("x", "long", 1):
            fits = Validation().check(parameters, {"q": {place: value}}) is None
            assert fits == (value in {"c": ("x",), "d": (1,)}.get(place, ("x", "long")))


def test_references_in_a_part_of_a_tool_lead_into_that_part(manifest_of: ManifestOf) -> None:
    part = {**PART, "properties": {x: PART["properties"][x] for x in "abc"}}
    tool = {"properties": {"q": part}, "$defs": {"T": N}}
    data = json.dumps([{"name": "find", "parameters": tool}]).encode()
    parameters = manifest_of(write_package(import_openai(data, "rain"))).tools[0].parameters
    for place in "abc":
        fits = [Validation().check(parameters, {"q": {place: x}}) is None for x in ("x", "long", 1)]
        assert fits == [True, place != "c", False]


def test_a_part_that_is_too_deep_has_the_same_name_in_each_import(manifest_of: ManifestOf) -> None:
    schema: Json = TEXT
    for _ in range(40):
        schema = {"type": "array", "items": schema}
    package = imported(query(schema=schema))
    assert {"part", "part_2"} <= manifest_of(package).tools[0].parameters["$defs"].keys()


def test_a_title_that_is_cut_has_a_row() -> None:
    package = imported({}, info={"title": "Rain " * 100})
    assert ("title", "changed", "499 characters") in rows(package)


def test_a_summary_that_was_given_and_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"does not fit metadata\.summary"):
        write_package(Draft("rain", "Rain").with_values(summary="Rain " * 40))


@pytest.mark.parametrize("says", [{"enum": ["dog"]}, {"const": "dog"}])
def test_a_choice_that_says_its_own_word_is_not_named_by_its_schema(
    says: Json, manifest_of: ManifestOf
) -> None:
    dog = {"type": "object", "properties": {"kind": says}}
    choice = [{"$ref": "#/components/schemas/Dog"}, {"$ref": "#/components/schemas/Cat"}]
    schema = {"oneOf": choice, "discriminator": {"propertyName": "kind"}, "description": "A pet."}
    cat = {"type": "object", "properties": {"kind": TEXT}}
    components = {"schemas": {"Dog": {"allOf": [dog]}, "Cat": cat}}
    package = imported(body(schema), "3.1.0", components=components)
    told = manifest_of(package).tools[0].parameters["properties"]["body"]["description"]
    assert told == "What falls. A pet. kind is the name of the schema that is meant: Cat."


def test_an_operation_that_needs_no_authentication_of_its_document_is_named(
    manifest_of: ManifestOf,
) -> None:
    schemes = {"securitySchemes": {"site": {"type": "http", "scheme": "bearer"}}}
    more: Json = {"components": schemes, "security": [{"site": []}]}
    package = imported({"security": []}, **more)
    assert ("security", "left out", '[{"site": []}]') in rows(package)
    assert "auth" not in manifest_of(package).bindings["op"]


@pytest.mark.parametrize("kind", [TEXT, {**TEXT, "enum": ["Cat", "Dog"]}])
@pytest.mark.parametrize("holder", ["choice", "parent"])
def test_a_value_may_fit_several_parts_that_a_discriminator_tells_apart(
    holder: str, kind: Json, manifest_of: ManifestOf
) -> None:
    told = {"discriminator": {"propertyName": "kind"}}
    base = {"type": "object", "properties": {"kind": kind}, **(told if holder == "parent" else {})}
    cat: Json = {"allOf": [{"$ref": "#/components/schemas/Pet"}]}
    parts: list[Json] = [{"$ref": f"#/components/schemas/{x}"} for x in ("Cat", "Dog")]
    choice: Json = {"oneOf": parts, **(told if holder == "choice" else {})}
    package = imported(
        body({"type": "object", "properties": {"pet": choice}}),
        components={"schemas": {"Pet": base, "Cat": cat, "Dog": cat}},
    )
    (tool,) = manifest_of(package).tools
    assert Validation().check(tool.parameters, {"pet": {"kind": "Cat"}}) is None
    assert ("schema word oneOf", "changed", "kind") in rows(package)


@pytest.mark.parametrize(
    ("choices", "value"),
    [
        ([{**TEXT, "format": "email", "maxLength": 254}, {**TEXT, "maxLength": 0}], ""),
        ([{**TEXT, "format": "date"}, {**TEXT, "format": "date-time"}], "2026-01-31"),
        ([{**TEXT, "format": "uuid"}, {**TEXT, "enum": ["latest"]}], "latest"),
        ([{"type": "integer"}, {"type": "number"}], 5),
        ([{**TEXT, "nullable": True}, {"type": "boolean", "nullable": True}], None),
    ],
)
def test_a_value_may_fit_several_parts_that_type_and_format_tell_apart(
    choices: list[Json], value: object, manifest_of: ManifestOf
) -> None:
    schemas = {f"Part{number}": choice for number, choice in enumerate(choices)}
    parts = [{"$ref": f"#/components/schemas/{x}"} for x in schemas]
    package = imported(
        body({"type": "object", "properties": {"one": {"oneOf": parts}}}),
        components={"schemas": schemas},
    )
    (tool,) = manifest_of(package).tools
    assert Validation().check(tool.parameters, {"one": value}) is None
    assert ("schema word oneOf", "changed", "") in rows(package)


def test_choices_of_other_types_stay_as_they_are(manifest_of: ManifestOf) -> None:
    choices = [{**TEXT, "format": "date"}, {"type": "integer", "format": "int64"}, {"type": "null"}]
    package = imported(body({"type": "object", "properties": {"one": {"oneOf": choices}}}), "3.1.0")
    assert manifest_of(package).tools[0].parameters["properties"]["one"] == {"oneOf": choices}


def test_closed_parts_of_one_value_are_opened_for_each_other(manifest_of: ManifestOf) -> None:
    pet: Json = {"type": "object", "properties": {"name": TEXT}, "additionalProperties": False}
    dog = {**pet, "properties": {"bark": TEXT}, "allOf": [{"$ref": "#/components/schemas/Pet"}]}
    names = {"dog": "Dog", "pet": "Pet"}
    members = {key: {"$ref": f"#/components/schemas/{x}"} for key, x in names.items()}
    package = imported(
        body({"type": "object", "properties": members}),
        components={"schemas": {"Pet": pet, "Dog": dog}},
    )
    (tool,) = manifest_of(package).tools
    check = Validation().check
    assert check(tool.parameters, {"dog": {"name": "Rex", "bark": "wau"}}) is None
    assert check(tool.parameters, {"pet": {"name": "Rex", "bark": "wau"}}) is not None
    assert rows(package) == [("schema word additionalProperties", "left out", "false")]


def test_a_closed_schema_is_open_for_the_members_of_its_choices(manifest_of: ManifestOf) -> None:
    parts = [{"type": "object", "properties": {x: TEXT}, "required": [x]} for x in "ab"]
    choice = {"type": "object", "oneOf": parts, "additionalProperties": False}
    package = imported(body({"type": "object", "properties": {"one": choice}}))
    (tool,) = manifest_of(package).tools
    assert Validation().check(tool.parameters, {"one": {"a": "x"}}) is None
    assert rows(package) == [("schema word additionalProperties", "left out", "false")]


def test_a_body_of_text_json_is_sent_as_json(manifest_of: ManifestOf) -> None:
    whole = {"requestBody": {"required": True, "content": {"text/json": {"schema": TEXT}}}}
    package = imported(whole)
    assert ("body", "changed", "text/json") in rows(package)
    assert manifest_of(package).bindings["op"]["body"] == {"parameter": "body"}


@pytest.mark.parametrize(
    ("terms", "carried", "said"),
    [
        ({"identifier": "MIT"}, "MIT", ""),
        ({"name": "apache-2.0", "url": "https://rain.dev"}, "Apache-2.0", "apache-2.0"),
        ({"name": "MIT License"}, "MIT", "MIT License"),
        ({"name": "Apache 2.0"}, "Apache-2.0", "Apache 2.0"),
        ({"name": "Rain terms 2.0"}, None, "Rain terms 2.0"),
        ({"name": "Own terms", "identifier": "LicenseRef-rain"}, "LicenseRef-rain", ""),
        ({"url": "https://rain.dev/terms"}, None, ""),
    ],
)
def test_the_licence_of_a_document_is_carried_as_spdx_or_named(
    manifest_of: ManifestOf, terms: Json, carried: str | None, said: str
) -> None:
    package = imported({}, info={"title": "Rain", "license": terms})
    assert manifest_of(package).metadata.get("license") == carried
    assert [x.before for x in package.notes if x.subject == "license"] == [said] * bool(said)


def test_the_report_has_values_as_json_and_says_changed_of_what_is_kept() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "Rain. " * 200, "max_items": None},
            "b": {"nullable": True, "anyOf": [{"type": "string"}]},
        },
    }
    package = imported({**body(schema), "security": []}, security=[{"key": []}])
    rows = {x.subject: (x.fate, x.before) for x in package.notes}
    assert rows["security"] == ("left out", '[{"key": []}]')
    assert rows["schema word nullable"] == ("left out", "true")
    assert rows["schema word max_items"] == ("left out", "null")
    assert rows["schema word description"][0] == "changed"


def test_of_several_kinds_of_json_a_list_of_patches_is_the_last(manifest_of: ManifestOf) -> None:
    kinds = [f"application/{x}+json" for x in ("json-patch", "merge-patch", "strategic-patch")]
    operation = {"requestBody": {"content": {x: {"schema": {"type": "object"}} for x in kinds}}}
    binding = manifest_of(imported(operation)).bindings["op"]
    assert kinds[1] in (
        binding.get("body", binding).get("content"),
        *binding.get("headers", {}).values(),
    )
    alone = {"requestBody": {"content": {kinds[0]: {"schema": {"type": "array"}}}}}
    assert manifest_of(imported(alone)).bindings["op"]["body"]["content"] == kinds[0]
