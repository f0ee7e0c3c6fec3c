"""Edits of JSON with comments: one member comes or goes, every other byte stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_router.faces.hosts.jsonc import MAX_DEPTH, put, read, remove

PATH = ("servers", "capdex")
ENTRY: dict[str, Any] = {"command": "capdex", "args": ["router"]}

ZED = """\
// Zed settings
{
  /* how it looks */
  "theme": "One Dark", // dark
  "context_servers": {
    // my own
    "mine": {
      "command": "x",
    }, // keep this
  },
  "vim_mode": true,
}
"""
ZED_WITH = """\
// Zed settings
{
  /* how it looks */
  "theme": "One Dark", // dark
  "context_servers": {
    // my own
    "mine": {
      "command": "x",
    }, // keep this
    "capdex": {
      "command": "capdex"
    },
  },
  "vim_mode": true,
}
"""


def test_a_file_with_comments_gets_one_member_more_and_less() -> None:
    after = put(ZED, ("context_servers", "capdex"), {"command": "capdex"})
    assert after == ZED_WITH
    assert remove(after, ("context_servers", "capdex")) == ZED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "a": 1\n}'),
        ("{}\n", '{\n  "a": 1\n}\n'),
        ("{ }", '{\n  "a": 1\n}'),
        ('{"b": 2}', '{"b": 2, "a": 1}'),
        ('{"b": 2,}', '{"b": 2, "a": 1}'),
        ('{\n\t"b": 2\n}', '{\n\t"b": 2,\n\t"a": 1\n}'),
        ('{\r\n    "b": 2\r\n}', '{\r\n    "b": 2,\r\n    "a": 1\r\n}'),
        ('{\n  "b": 2 // x\n}', '{\n  "b": 2, // x\n  "a": 1\n}'),
        ("{\n  // x\n}", '{\n  // x\n  "a": 1\n}'),
        ("{ /* x */ }", '{ /* x */\n  "a": 1\n}'),
        ('{\n  "a": 2, "b": 3\n}', '{\n  "a": 1, "b": 3\n}'),
        ('\ufeff{"a": 2}', '\ufeff{"a": 1}'),
        ('{"a": 2, "a": 3}', '{"a": 2, "a": 1}'),
    ],
)
def test_a_member_is_put(before: str, after: str) -> None:
    assert put(before, ("a",), 1) == after
    assert read(after)["a"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', "{}"),
        ('{\n  "a": 1\n}', "{}"),
        ('{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2}'),
        ('{"b": 2, "a": 1,}', '{"b": 2,}'),
        ('{\n  "b": 2,\n  "a": 1\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2,\n  "a": 1,\n}', '{\n  "b": 2,\n}'),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2, // x\n  "a": 1\n}', '{\n  "b": 2 // x\n}'),
        ('{\n  "b": 2, // x\n  "a": 1, "c": 3\n}', '{\n  "b": 2, // x\n  "c": 3\n}'),
        ('{\n  "b": 2, // x\n  "a": 1, // y\n  "c": 3\n}',
         '{\n  "b": 2, // x\n  // y\n  "c": 3\n}'),
        ("{}", "{}"),
        ('{"b": {"a": 1}}', '{"b": {"a": 1}}'),
    ],
)  # fmt: skip
def test_a_member_is_removed(before: str, after: str) -> None:
    assert remove(before, ("a",)) == after
    assert "a" not in read(after)


def test_objects_on_the_way_are_made() -> None:
    after = put('{\n    "x": []\n}\n', PATH, ENTRY)
    assert read(after) == {"x": [], "servers": {"capdex": ENTRY}}
    assert '\n    "servers": {\n        "capdex": {\n' in after
    for broken in ('{"servers": 7}', "[]", "7"):
        with pytest.raises(InvalidInput, match="not an object"):
            put(broken, PATH, ENTRY)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": ' + "9" * 5_000 + "}", "line 1, column 7"),
        ("", "line 1, column 1"),
        ("{", "line 1, column 2"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('{\n  "a": tru\n}', "line 2, column 8"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{"a" 1}', "line 1, column 6"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a": "x\ny"}', "line 1, column 7"),
        ("{,}", "line 1, column 2"),
        ("[,]", "line 1, column 2"),
        ("[1 2]", "line 1, column 4"),
        ("[1,,2]", "line 1, column 4"),
        ("/* x", "line 1, column 1"),
        ("01", "line 1, column 1"),
        ("nullx", "line 1, column 1"),
        ("[" * (MAX_DEPTH + 2), f"line 1, column {MAX_DEPTH + 2}"),
    ],
)
def test_a_broken_text_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    assert refused.value.why.startswith(place)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
STEPS = st.sampled_from([None, 2, 4, "\t"])


@given(OBJECTS, OBJECTS, STEPS, st.booleans())
def test_what_is_put_and_removed_leaves_every_byte(
    whole: dict[str, Any], servers: dict[str, Any], step: Any, crlf: bool
) -> None:
    assume("capdex" not in servers)
    assume(servers)
    text = json.dumps({**whole, "servers": servers}, indent=step)
    text = text.replace("\n", "\r\n") if crlf else text
    after = put(text, PATH, ENTRY)
    assert read(after) == {**whole, "servers": {**servers, "capdex": ENTRY}}
    assert remove(after, PATH) == text


PARTS = st.sampled_from(
    [
        *"{}[],:1 \n\t",
        "null",
        "{}",
        "// x\n",
        "/* y */",
        '"a"',
        '"servers"',
        '"capdex"',
        '"a": 1',
        '"capdex": {}',
    ]
)


@given(st.lists(PARTS, max_size=14).map("".join))
def test_whatever_can_be_read_can_be_edited(text: str) -> None:
    try:
        value = read(text)
    except InvalidInput:
        return
    if not isinstance(value, dict):
        return
    assert read(put(text, ("capdex",), 7)) == {**value, "capdex": 7}
    assert read(remove(text, ("capdex",))) == {k: v for k, v in value.items() if k != "capdex"}


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read(text)
    except InvalidInput:
        return
