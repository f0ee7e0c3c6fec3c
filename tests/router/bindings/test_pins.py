"""Pins of remote tools: what was agreed to, kept over a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capdex.errors import Code, Refused, UsageError
from capdex_router.bindings.pins import Pins, fingerprint

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


def test_a_fingerprint_is_of_the_name_the_description_and_the_schema() -> None:
    first = fingerprint("a", "b", SCHEMA)
    assert first == fingerprint("a", "b", dict(reversed(SCHEMA.items())))
    assert len({first, fingerprint("b", "b", SCHEMA), fingerprint("a", "c", SCHEMA)}) == 3
    assert fingerprint("a", "b", {**SCHEMA, "required": ["a"]}) != first


def test_a_new_tool_is_pinned_for_each_capability_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "new" / "pins.json"
    Pins(path).check("a", "did:x", "t", "1")
    Pins(path).check("b", "did:x", "t", "2")
    with pytest.raises(Refused) as changed:
        Pins(path).check("a", "did:x", "t", "2")
    assert changed.value.code is Code.PERMISSION_DENIED
    assert changed.value.line == (
        "the service changed its tool 't' since its first use: "
        "its description or input schema is not what it was"
    )
    assert changed.value.fix == "a person can accept it: capdex remove a, then install it again"
    assert sorted(x.name for x in path.parent.iterdir()) == ["pins.json", "pins.json.lock"]


def test_the_pins_of_a_removed_capability_are_forgotten(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "pins.json")
    for name in ("a", "ab", 'a"'):
        pins.check(name, "did:x", "t", "1")
    pins.forget("a")
    again = Pins(tmp_path / "pins.json")
    again.check("a", "did:x", "t", "2")
    for name in ("ab", 'a"'):
        with pytest.raises(Refused):
            again.check(name, "did:x", "t", "2")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"[" * 100_000, b"\xff"])
def test_a_damaged_file_accepts_nothing(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    path.write_bytes(content)
    with pytest.raises(UsageError) as damaged:
        Pins(path).check("a", "did:x", "t", "1")
    assert damaged.value.code is Code.UNREADABLE
    assert path.read_bytes() == content
