"""Lists of OpenAI tools become packages, in both forms of a tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, InvalidInput
from capdex.manifest.manifest import Manifest, read
from capdex_publisher.authoring.imports import Imported, import_openai, write_package

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


@pytest.mark.parametrize("value", [None, 7, [], {}, [1], {"tools": 1}, [{"type": "web_search"}]])
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
