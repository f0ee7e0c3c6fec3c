"""Arguments as frameworks send them, read by a schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.json_schema.arguments import came, check_names, one_of, read_arguments, read_text

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "uri": {"type": "string"},
        "limit": {"type": "integer"},
        "remote": {"type": "boolean"},
        "latitude": {"type": "number"},
        "include": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "input": {"type": "object"},
        "detail": {"type": "string", "enum": ["full", "part"]},
        "unit": {"type": "string", "enum": ["m", "M", "Celsius", None]},
        "parts": {"type": "array", "items": {"type": "string", "enum": ["tools", "prompt"]}},
        "place": {"type": "object", "properties": {"city": {"type": "string"}}},
        "patch": {"type": ["array", "object"]},
        "count": {"type": ["integer", "null"]},
        "note": {"type": ["object", "string"]},
    },
    "required": ["uri"],
}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"uri": None}, {}),
        ({"uri": ""}, {"uri": ""}),  # it is required: the tool says what it thinks of it
        (dict.fromkeys(SCHEMA["properties"]), {}),
        ({"limit": "", "remote": "", "include": "", "input": "", "place": ""}, {}),
        ({"include": [], "input": {}, "place": {}}, {}),
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": "-5"}, {"limit": -5}),
        ({"limit": 5.0}, {"limit": 5}),
        ({"latitude": "59.91"}, {"latitude": 59.91}),
        ({"latitude": "-7"}, {"latitude": -7}),
        ({"limit": 0, "remote": False}, {"limit": 0, "remote": False}),
        ({"remote": "true"}, {"remote": True}),
        ({"remote": "false"}, {"remote": False}),
        ({"remote": "True"}, {"remote": True}),
        ({"remote": " FALSE"}, {"remote": False}),
        ({"detail": "Full"}, {"detail": "full"}),
        ({"unit": "m"}, {"unit": "m"}),
        ({"unit": "M"}, {"unit": "M"}),  # mega, not milli
        ({"unit": "celsius"}, {"unit": "Celsius"}),
        ({"parts": "Tools"}, {"parts": ["tools"]}),
        ({"parts": "tools, PROMPT"}, {"parts": ["tools", "prompt"]}),
        ({"counts": "7,8,"}, {"counts": [7, 8]}),
        ({"counts": "[123456789012345678901]"}, {"counts": [123_456_789_012_345_678_901]}),
        ({"patch": '[{"op": "test"}]'}, {"patch": [{"op": "test"}]}),
        ({"patch": '{"$inc": {"n": 1}}'}, {"patch": {"$inc": {"n": 1}}}),
        ({"count": "7"}, {"count": 7}),
        ({"note": "{}"}, {"note": "{}"}),  # it may be a text
        ({"include": "tools"}, {"include": ["tools"]}),
        ({"include": ["tools", None]}, {"include": ["tools"]}),
        ({"counts": "7"}, {"counts": [7]}),
        ({"counts": ["7", 8]}, {"counts": [7, 8]}),
        ({"include": '["tools", null]'}, {"include": ["tools"]}),
        ({"counts": "[7, 8]"}, {"counts": [7, 8]}),
        ({"counts": " [7] "}, {"counts": [7]}),
        ({"include": "[tools]"}, {"include": ["[tools]"]}),
        ({"include": '{"tools": true}'}, {"include": {"tools": True}}),
        ({"input": '{"text": "a"}'}, {"input": {"text": "a"}}),
        ({"place": '{"city": null}'}, {}),
        ({"limit": "null", "latitude": " null ", "remote": "Null", "detail": "null"}, {}),
        ({"include": "null", "input": "null", "place": "null", "parts": ["null"]}, {}),
        ({"uri": "null", "parts": "tools, null"}, {"uri": "null", "parts": ["tools"]}),
        ({"uri": "[1]"}, {"uri": "[1]"}),
        ({"place": {"city": None}}, {}),
        ({"include": [None]}, {}),
        ({"input": {"text": None, "of": ""}}, {"input": {"text": None, "of": ""}}),
        ({"other": None, "more": ""}, {"other": None, "more": ""}),
    ],
    ids=str,
)
def test_what_is_beyond_doubt_is_read(given: dict[str, Any], read: dict[str, Any]) -> None:
    assert read_arguments(SCHEMA, given) == read


@pytest.mark.parametrize(
    "given",
    [
        {"limit": "five"}, {"limit": "5.5"}, {"limit": 5.5}, {"limit": "٥"}, {"limit": "9" * 19},
        {"latitude": "1e5"}, {"limit": True}, {"remote": "yes"}, {"remote": 1}, {"uri": 5},
        {"place": "Oslo"},
        {"include": {"tools": True}}, {"detail": "Whole"}, {"detail": 5}, {"parts": ["Files"]},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_in_doubt_stays_as_it_is(given: dict[str, Any]) -> None:
    assert read_arguments(SCHEMA, given) == given


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["city", "x"]), inner)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), VALUES))
def test_arguments_that_were_read_are_read_as_they_are(arguments: dict[str, Any]) -> None:
    read = read_arguments(SCHEMA, arguments)
    assert None not in [value for key, value in read.items() if key in SCHEMA["properties"]]
    assert read_arguments(SCHEMA, read) == read
    nothing = dict.fromkeys(SCHEMA["properties"].keys() - arguments.keys())
    assert read_arguments(SCHEMA, arguments | nothing) == read


@given(
    st.dictionaries(st.sampled_from(["properties", "required", "enum", "items", "type"]), VALUES),
    st.dictionaries(st.sampled_from(["city", "x"]), VALUES),
)
def test_a_schema_of_a_stranger_never_fails(schema: dict[str, Any], given: dict[str, Any]) -> None:
    for one in (schema, {"properties": {"city": schema, "x": schema}}):
        read_arguments(one, given, texts=False)


@pytest.mark.parametrize(
    ("name", "fix"),
    [("limits", "did you mean limit?"), ("zzzz", "it takes uri, limit"), ("x" * 500, "it takes")],
)
def test_a_name_that_the_tool_does_not_take_is_refused(name: str, fix: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        check_names("find", ["uri", "limit"], {"uri": "x", name: 1})
    assert raised.value.fix.startswith(fix)
    assert len(raised.value.message) < 120
    check_names("find", ["uri", "limit"], {"uri": "x", name: None})  # null is absent


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "it is missing"), ([["deep"]], "it is a list"), ({"a": 1}, "it is an object"),
        (5, "it is 5"), (True, "it is true"), ("x\u202e", r"it is 'x\u202e'"),
        ("x" * 500, f"it is '{'x' * 64}'"),
    ],
)  # fmt: skip
def test_an_error_says_what_came_and_what_to_give(value: object, said: str) -> None:
    assert came(value) == said
    with pytest.raises(InvalidInput) as raised:
        one_of("detail", value, ("full", "part"))
    assert raised.value.message == "detail is not one of full, part"
    assert (raised.value.why, raised.value.fix) == (said, "give one of them")
    if not isinstance(value, str):
        with pytest.raises(InvalidInput) as raised:
            read_text({"uri": value}, "uri")
        assert (raised.value.why, raised.value.fix) == (said, 'give {"uri": "…"}')
