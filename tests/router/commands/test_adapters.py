"""Adapters that come with the router, and those of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, InvalidInput
from capdex_router.commands import adapters
from capdex_router.commands.intents.match import is_guarded

DATA = Path(__file__).parent / "data"
MANIFEST = {"domain": "email", "name": "inboxd", "summary": "Gmail management", "version": "1.0.0"}


@pytest.mark.parametrize("binary", ["rg", "grep", "tar", "wc", "ls"])
def test_each_sample_makes_an_argument_list(binary: str) -> None:
    found = adapters.find(binary)
    assert found.intents
    assert found.manifest.binary == binary
    assert not any(is_guarded(intent) for intent in found.intents)
    for sample in found.samples:
        argv = found.intents[sample.intent].template.argv(sample.values)
        assert argv[0] == binary


@pytest.mark.parametrize(("binary", "name"), [("git", "git"), ("g++", "g"), ("[", "program")])
def test_an_unknown_program_has_a_manifest_without_intents(binary: str, name: str) -> None:
    found = adapters.find(binary)
    assert (found.manifest.name, found.manifest.binary, found.intents) == (name, binary, ())


def test_two_files_of_a_tool_are_an_adapter_for_the_program_of_its_commands() -> None:
    found = adapters.parse(json.dumps(MANIFEST).encode(), (DATA / "inboxd.json").read_bytes())
    assert (found.manifest.name, found.manifest.binary) == ("inboxd", "inbox")
    assert len(found.intents) == 5


def one_file(**more: Any) -> bytes:
    intents = [{"patterns": ["a"], "command": "b {x}"}]
    return json.dumps({**MANIFEST, "intents": intents, **more}).encode()


@pytest.mark.parametrize(
    "more",
    [
        {"intents": []},
        {"intents": [{"patterns": [], "command": "a"}, {"patterns": [], "command": "b"}]},
        {"samples": [[1, {}]]},
        {"samples": [[-1, {}]]},
        {"samples": [[0]]},
        {"samples": 7},
        {"samples": [["0", {}]]},
        {"samples": [[0, {}]] * 65},
    ],
)
def test_a_wrong_adapter_is_refused(more: dict[str, Any]) -> None:
    assert adapters.parse(one_file()).manifest.binary == "b"
    with pytest.raises(InvalidInput):
        adapters.parse(one_file(**more))


@given(st.binary(max_size=200))
def test_any_bytes_are_an_adapter_or_refused(data: bytes) -> None:
    try:
        adapters.parse(data)
    except CapdexError:
        return
