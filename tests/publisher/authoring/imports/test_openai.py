"""Lists of OpenAI tools become packages, in both forms of a tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, InvalidInput
from capdex.json import Json
from capdex.manifest.manifest import Manifest, read
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.openai import import_openai
from capdex_router.invoke.validation import Validation

ManifestOf = Callable[[Imported], Manifest]

RAIN = {
    "name": "get rain/now",
    "description": "Tells the rain.",
    "parameters": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"city": {"type": "string"}, "when": {"$ref": "#/definitions/day"}},
        "required": ["city"],
        "definitions": {"day": {"type": "string"}},
    },
}
BARE = {key: x for key, x in RAIN.items() if key != "parameters"}


def imported(value: Any) -> Imported:
    return write_package(import_openai(json.dumps(value).encode(), "rain_tools"))


FLAT: Json = {
    "type": {"type": "str", "description": "Of rain.", "required": True},
    "days": {"type": "int", "required": False},
}


@pytest.mark.parametrize(
    "parameters",
    [
        {"parameter_definitions": FLAT},
        {"parameters": FLAT},
        {"parameters": [{"name": name, **x} for name, x in FLAT.items()]},
    ],
    ids=["Cohere", "Bedrock agents, xLAM", "Qwen-Agent"],
)
def test_parameters_without_a_schema_around_are_read(
    parameters: Json, manifest_of: ManifestOf
) -> None:
    package = imported([{"name": "rain", "description": "Tells the rain.", **parameters}])
    [tool] = manifest_of(package).tools
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "type": {"type": "string", "description": "Of rain."},
            "days": {"type": "integer"},
        },
        "required": ["type"],
    }
    assert {x.subject for x in package.notes} == {"name", "bindings"}


def test_types_with_the_names_that_python_has_are_those_of_json_schema(
    manifest_of: ManifestOf,
) -> None:
    sides = {"type": "tuple", "items": {"type": "float"}}
    parts: Json = {"n": {"type": "int"}, "s": {"type": "str"}, "b": {"type": "bool"}}
    inner: Json = {"type": "dict", "properties": parts}
    given = {"type": "dict", "properties": {"sides": sides, "inner": inner}}
    package = imported([{"name": "area", "parameters": given | {"required": ["sides"]}}])
    [tool] = manifest_of(package).tools
    [sent, inner] = tool.parameters["properties"].values()
    assert (tool.parameters["type"], tool.parameters["required"]) == ("object", ["sides"])
    assert sent == {"type": "array", "items": {"type": "number"}}
    assert inner["type"] == "object"
    assert [x["type"] for x in inner["properties"].values()] == ["integer", "string", "boolean"]
    assert {x.subject for x in package.notes} == {"name", "bindings"}


@pytest.mark.parametrize(
    "value",
    [
        [{"type": "function", "function": RAIN}],
        [{"type": "function", **RAIN}],
        {"model": "m", "tools": [{"type": "function", "function": RAIN}]},
        {"type": "function", "function": RAIN},
        [BARE | {"input_schema": RAIN["parameters"]}],
        {"tools": [BARE | {"inputSchema": RAIN["parameters"]}]},
    ],
)
def test_a_list_a_request_and_one_tool_are_read_in_each_form(
    value: Any, manifest_of: ManifestOf
) -> None:
    package = imported(value)
    manifest = manifest_of(package)
    [tool] = manifest.tools
    assert (manifest.uri.name, tool.name) == ("rain-tools", "get_rain_now")
    assert tool.parameters == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "when": {"$ref": "#/$defs/day"}},
        "required": ["city"],
        "$defs": {"day": {"type": "string"}},
    }
    assert package.to_edit[-1].endswith('"https://api.example.com/rain-tools/get_rain_now"')


def test_what_is_left_out_is_said(manifest_of: ManifestOf) -> None:
    function = {"type": "function", "function": RAIN}
    bad = {"name": "broken", "parameters": {"type": "object", "properties": 7}}
    value = [function, function, {"type": "web_search"}, {"type": "function", "function": bad}]
    package = imported(value + [function] * 70)
    said = {(x.source, x.subject): (x.fate, x.before, x.after) for x in package.notes}
    assert said["document", "entry 3"] == ("refused", "web_search", "it is not a function")
    reason = "it is not a mapping to schemas"
    assert said["broken", "schema word properties"] == ("left out", "7", reason)
    assert ("refused", "", "a package has at most 64 tools") in said.values()
    assert [x.name for x in manifest_of(package).tools][:2] == ["get_rain_now", "get_rain_now_2"]


CARD = {"name": "Rain Agent", "url": "https://rain.dev/a2a", "skills": [], "capabilities": {}}


@pytest.mark.parametrize(
    "value", [None, 7, [], {}, [1], {"tools": 1}, [{"type": "web_search"}], CARD]
)
def test_what_holds_no_tools_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="holds no list of tools"):
        imported(value)


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "items", "enum", "$ref", "$id"])
            | st.text(max_size=4),
            below,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.text(min_size=1, max_size=80), values, values)
def test_any_tool_gives_a_package_or_a_typed_error(name: str, text: Any, schema: Any) -> None:
    function = {"name": name, "description": text, "parameters": schema}
    try:
        package = imported([{"type": "function", "function": function}])
    except CapdexError as error:
        assert error.message  # noqa: PT017 - or a package
        return
    assert read(package.text.encode()).manifest is not None


INTEGER = {"type": "integer"}


@pytest.mark.parametrize(
    ("reference", "more"),
    [
        ("#/definitions/N", {"definitions": {"N": INTEGER}}),
        ("#/$defs/N", {"$defs": {"N": INTEGER}}),
        ("#/definitions/a~1b~0c%7Bd%7D", {"definitions": {"a/b~c{d}": INTEGER}}),
        ("#/definitions/n%C3%A9e", {"definitions": {"née": INTEGER}}),
        ("#/definitions/definitions", {"definitions": {"definitions": INTEGER}}),
        (
            "#/definitions/A/definitions/N",
            {"definitions": {"A": {"definitions": {"N": INTEGER}}}},
        ),
        ("#/properties/definitions/items", {"definitions": {"N": {}}}),
        ("#/properties/t/items/0", {}),
        ("#/properties/t/additionalItems", {}),
        ("#/dependencies/card", {"dependencies": {"card": INTEGER, "x": ["y"]}}),
        ("https://rain.dev/s#/definitions/N", {"definitions": {"N": INTEGER}}),
        ("#n", {"$defs": {"N": {"$anchor": "n", **INTEGER}}}),
    ],
)
def test_references_lead_to_the_same_schema_in_the_words_of_today(
    reference: str, more: Json
) -> None:
    own = {
        "q": {"$ref": reference},
        "definitions": {"type": "array", "items": INTEGER},
        "t": {"type": "array", "items": [INTEGER], "additionalItems": INTEGER},
    }
    schema = {"$id": "https://rain.dev/s", "type": "object", "properties": own, **more}
    data = json.dumps([{"name": "find", "parameters": schema}]).encode()
    reading = read(write_package(import_openai(data, "mine")).text.encode())
    (tool,) = reading.require().tools
    assert Validation().check(tool.parameters, {"q": 1}) is None
    assert "integer" in str(Validation().check(tool.parameters, {"q": "x"}))


def test_a_definition_of_two_names_that_differ_is_named() -> None:
    both = {"definitions": {"N": INTEGER}, "$defs": {"N": {"type": "string"}}}
    data = json.dumps([{"name": "find", "parameters": {"type": "object", **both}}]).encode()
    notes = write_package(import_openai(data, "mine")).notes
    assert ("schema word $defs", "left out") in [(x.subject, x.fate) for x in notes]


def test_what_is_read_only_is_required_where_no_document_says_that_it_is_left_out() -> None:
    own = {"id": {"type": "string", "readOnly": True}}
    schema = {"type": "object", "properties": own, "required": ["id"]}
    data = json.dumps([{"name": "find", "parameters": schema}]).encode()
    (tool,) = read(write_package(import_openai(data, "mine")).text.encode()).require().tools
    assert tool.parameters == schema


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def of_list(value: Any) -> tuple[Manifest, dict[str, tuple[str, str]]]:
    package = write_package(import_openai(json.dumps(value).encode(), "mine"))
    rows = {x.subject: (str(x.fate), x.before) for x in package.notes if x.subject != "bindings"}
    return read(package.text.encode()).require(), rows


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "find", "parameters_json_schema": CITY},
        {"name": "find", "params_json_schema": CITY},
        {"name": "find", "args_schema": CITY},
        {"name": "find", "parameters": {**CITY, "type": "OBJECT"}},
    ],
)
def test_parameters_are_read_under_the_names_of_all_makers(tool: Json) -> None:
    manifest, rows = of_list([tool])
    assert (manifest.tools[0].parameters, rows) == (CITY, {})


def test_the_arguments_of_langchain_are_members_of_an_object() -> None:
    manifest, _ = of_list([{"name": "find", "args": CITY["properties"]}])
    assert manifest.tools[0].parameters["properties"] == CITY["properties"]


def test_a_reply_to_tools_list_keeps_outputs_and_effects_and_says_that_it_goes_on() -> None:
    hints = {"readOnlyHint": True, "destructiveHint": True, "openWorldHint": False}
    tool = {"name": "find", "inputSchema": CITY, "outputSchema": CITY, "annotations": hints}
    manifest, rows = of_list({"result": {"tools": [tool], "nextCursor": "p2"}})
    assert manifest.tools[0].output_schema == CITY
    assert manifest.tools[0].annotations.read_only is True
    assert rows.pop("annotation openWorldHint") == ("left out", "false")
    assert rows == {"nextCursor": ("left out", "p2")}


def test_whole_numbers_of_gemini_are_text_in_json() -> None:
    names = {"type": "ARRAY", "items": {"type": "STRING"}, "maxItems": "5", "minItems": "x"}
    manifest, rows = of_list(
        [{"functionDeclarations": [{"name": "f", "parameters": {"properties": {"n": names}}}]}]
    )
    assert manifest.tools[0].parameters["properties"]["n"]["maxItems"] == 5
    assert rows == {"schema word minItems": ("left out", "x")}


def test_words_that_an_sdk_in_python_spells_in_its_way_are_read_and_null_says_nothing() -> None:
    names = {"type": "ARRAY", "min_items": 1, "max_items": None, "items": {"type_": "STRING"}}
    choice = {"any_of": [{"type": "STRING", "pattern": None}], "enum": None, "title": None}
    given = {"type": "OBJECT", "properties": {"my_names": names, "any_of": choice}, "items": None}
    manifest, rows = of_list([{"function_declarations": [{"name": "f", "parameters": given}]}])
    assert manifest.tools[0].parameters["properties"] == {
        "my_names": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "any_of": {"anyOf": [{"type": "string"}]},
    }
    assert rows == {}


def test_a_choice_whose_parts_differ_in_a_constant_stays_oneof() -> None:
    parts = {x: {"type": "object", "properties": {"kind": {"const": x}}} for x in ("cat", "dog")}
    choice = {"oneOf": [{"$ref": f"#/$defs/{x}"} for x in parts]}
    given = {"properties": {"pet": {**choice, "discriminator": {"propertyName": "kind"}}}}
    needs = {x: {**y, "required": ["kind"]} for x, y in parts.items()}
    manifest, rows = of_list([{"name": "f", "inputSchema": {**given, "$defs": needs}}])
    assert manifest.tools[0].parameters["properties"]["pet"] == choice
    assert rows == {}


@pytest.mark.parametrize(
    ("tool", "word"),
    [
        ({"type": "function", "function": {"name": "f"}, "parameters": CITY}, "parameters"),
        ({"type": "function", "function": {"name": "f"}, "x": 1}, "x"),
        ({"name": "f", "parameters": CITY, "inputSchema": CITY}, "inputSchema"),
        ({"name": "f", "description": ["Finds."]}, "description"),
    ],
)
def test_a_word_in_a_place_where_it_is_not_read_is_named(tool: Json, word: str) -> None:
    _, rows = of_list([tool])
    assert {key: fate for key, (fate, _) in rows.items()} == {word: "left out"}


@pytest.mark.parametrize(
    ("group", "found"),
    [
        ({"type": "namespace", "name": "crm", "tools": [{"name": "f"}]}, {"name of a namespace"}),
        ({"functionDeclarations": [{"name": "f"}], "urlContext": {}}, {"urlContext of a group"}),
    ],
)
def test_what_else_a_group_of_tools_says_is_named(group: Json, found: set[str]) -> None:
    manifest, rows = of_list({"model": "m", "tools": [group]})
    assert [x.name for x in manifest.tools] == ["f"]
    assert {key for key, (fate, _) in rows.items() if fate == "left out"} == found


def test_examples_of_anthropic_are_those_of_the_parameters() -> None:
    manifest, rows = of_list(
        [{"name": "f", "input_schema": CITY, "input_examples": [{"city": "x"}]}]
    )
    assert (manifest.tools[0].parameters["examples"], rows) == ([{"city": "x"}], {})


@pytest.mark.parametrize("word", ["instructions", "system", "systemInstruction"])
def test_what_a_request_tells_a_model_is_named(word: str) -> None:
    _, rows = of_list({"model": "m", word: "Be brief.", "tools": [{"name": "f"}]})
    assert rows == {word: ("left out", "Be brief.")}


def test_a_reference_of_another_draft_is_named() -> None:
    schema = {"type": "object", "properties": {"a": {"$recursiveRef": "#"}}}
    _, rows = of_list([{"name": "f", "parameters": schema}])
    assert rows == {"schema word $recursiveRef": ("left out", "#")}


def test_an_entry_without_a_type_is_refused_by_its_words() -> None:
    _, rows = of_list([{"name": "f"}, {"googleSearch": {}}])
    assert rows == {"entry 2": ("refused", "googleSearch")}


@pytest.mark.parametrize(
    "parameters",
    [
        {"$ref": "T", "definitions": {"A": {"$id": "T", "properties": {"t": {"$ref": "T"}}}}},
        {"properties": {"t": {"$id": "T", "type": "array", "items": {"$ref": "T"}}}},
        {"$id": "T", "properties": {"t": {"$ref": "T"}}},
        {"properties": {"t": {"$ref": "#T"}}, "$defs": {"A": {"$anchor": "T", "type": "null"}}},
    ],
)
def test_a_reference_by_the_name_of_a_schema_leads_to_it(parameters: Json) -> None:
    manifest, rows = of_list([{"name": "f", "parameters": {"type": "object", **parameters}}])
    assert rows == {}
    text = json.dumps(manifest.tools[0].parameters)
    ways = ("#/$defs/A", "#/properties/t", "#", "#T")
    assert any(f'"$ref": "{way}"' in text for way in ways)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object"}, ["parameters"]),
        ({"type": "object", "properties": {}}, []),
        ({"type": "object", "additionalProperties": True}, []),
        ({"type": "object", "additionalProperties": False}, []),
    ],
)
def test_a_schema_of_any_object_is_told_to_take_no_argument(schema: Json, says: list[str]) -> None:
    notes = imported([{"name": "rain", "inputSchema": schema}]).notes
    found = [x for x in notes if x.source == "rain"]
    assert [x.subject for x in found] == says
    assert all("a router refuses an argument" in x.after for x in found)
    closed = {"unevaluatedProperties": False, **schema}  # as the router closes it
    refused = Validation().check(closed, {"city": "Oslo"}) is not None
    assert refused is (schema.get("additionalProperties") is not True)


def test_the_tools_of_a_realtime_session_are_read() -> None:
    tool = {"type": "function", "name": "rain", "parameters": {"type": "object"}}
    manifest, _ = of_list({"type": "session.update", "session": {"tools": [tool]}})
    assert [x.name for x in manifest.tools] == ["rain"]


@pytest.mark.parametrize("words", [("$defs", "definitions"), ("definitions", "$defs")])
def test_definitions_stay_beside_a_word_of_another_draft_that_is_no_mapping(
    words: tuple[str, str],
) -> None:
    both = dict(zip(words, ("x", {"A": {"type": "null"}}), strict=True))
    manifest, _ = of_list([{"name": "f", "parameters": {"type": "object", **both}}])
    assert manifest.tools[0].parameters["$defs"] == {"A": {"type": "null"}}
