"""Files of CMP tools, of both shapes, and those that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, InvalidInput
from capdex_router.commands.intents.manifest import (
    MAX_FILE_BYTES,
    CommandManifest,
    parse_capability,
    parse_manifest,
)

DATA = Path(__file__).parents[1] / "data"
MANIFEST = {
    "domain": "email",
    "name": "inboxd",
    "summary": "Gmail management: triage, delete, restore",
    "version": "1.0.0",
}


def capability(**intent: Any) -> bytes:
    return json.dumps({"intents": [{"patterns": ["a"], "command": "b", **intent}]}).encode()


def test_a_manifest_is_read_and_written() -> None:
    found = parse_manifest(json.dumps(MANIFEST).encode())
    assert (found.to_json(), found.binary) == (MANIFEST, "inboxd")
    assert parse_manifest(json.dumps({**MANIFEST, "binary": "inbox"}).encode()).binary == "inbox"


def test_an_adapter_is_a_manifest_and_a_capability_in_one_file() -> None:
    data = (DATA / "rg.json").read_bytes()
    found = CommandManifest("files", "ripgrep", "Fast file content search", "0.0.0", "rg")
    assert parse_manifest(data) == found
    search, count = parse_capability(data)
    assert (search.kind, count.kind) == ("jsonLines", None)


def test_parameters_make_an_input_schema() -> None:
    restore = parse_capability((DATA / "inboxd.json").read_bytes())[3]
    assert restore.input_schema() == {
        "type": "object",
        "properties": {"count": {"type": "integer", "default": 1}},
        "required": [],
    }


def test_the_short_form_of_returns_becomes_a_schema() -> None:
    summary = parse_capability((DATA / "inboxd.json").read_bytes())[0]
    properties = {"name": {"type": "string"}, "unread": {"type": "integer"}}
    assert summary.output_schema() == {
        "type": "array",
        "items": {"type": "object", "properties": properties},
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"intents": {}}',
        b"[" * 1000 + b"]" * 1000,
        b'{"intents": []}' + b" " * MAX_FILE_BYTES,
        capability(command=7),
        capability(command="a | b"),
        capability(command="a", patterns="a"),
        capability(patterns=["re:("]),
        capability(patterns=["a" * 300]),
        capability(patterns=["a\x1b[2J"]),
        capability(confirm="yes"),
        capability(outputParser="xml"),
        capability(outputParser="x" * 50_000),
        capability(params={"x": {"type": "string"}}),
        capability(command="a {x}", params={"x": {"type": "object"}}),
        capability(returns=7),
    ],
)
def test_a_wrong_capability_is_refused_in_a_bounded_answer(data: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_capability(data)
    assert len(caught.value.line) < 3_000


@pytest.mark.parametrize(
    "change", [{"name": "a b"}, {"domain": ""}, {"summary": 1}, {"name": None}]
)
def test_a_wrong_manifest_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        parse_manifest(json.dumps({**MANIFEST, **change}).encode())


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for parse in (parse_manifest, parse_capability):
        try:
            parse(data)
        except CapdexError:
            continue


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["patterns", "command", "params", "returns", "type", "x"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        intents = parse_capability(json.dumps({"intents": [value]}).encode())
    except CapdexError:
        return
    assert intents[0].input_schema()["type"] == "object"
    intents[0].output_schema()
