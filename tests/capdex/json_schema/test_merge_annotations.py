"""How state merges, and patterns that would match anything: flagged, never refused."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.diagnostics import Findings
from capdex.json_schema.merge_annotations import CONTAINERS, STRATEGIES
from capdex.json_schema.schema import check_schema
from capdex.manifest.fields import Fields
from capdex.manifest.triggers import UNRELATED, read_triggers
from capdex.problems import Reason, Severity


def flagged(mark: str, value: Any) -> list[tuple[Reason, str, Severity]]:
    findings = Findings({})
    check_schema({"properties": {"a": {"type": "string", mark: value}}}, (), findings)
    return [(x.code, x.path, x.severity) for x in findings.problems()]


@pytest.mark.parametrize("word", [*STRATEGIES, *CONTAINERS])
def test_known_ways_to_merge_are_taken(word: str) -> None:
    assert flagged("x-crdt", word) == []
    assert flagged("x-asm", {"container": "map", "type": word, "note": 1}) == []


@pytest.mark.parametrize(
    ("mark", "value", "path"),
    [
        ("x-crdt", "lww-register", "properties.a.x-crdt"),
        ("x-crdt", 7, "properties.a.x-crdt"),
        ("x-crdt", None, "properties.a.x-crdt"),
        ("x-asm", {"container": "counter"}, "properties.a.x-asm.container"),
        ("x-asm", {"crdt": ["flag"]}, "properties.a.x-asm.crdt"),
        ("x-asm", {"strategy": "last"}, "properties.a.x-asm.strategy"),
    ],
)
def test_unknown_ways_to_merge_are_flagged(mark: str, value: Any, path: str) -> None:
    assert flagged(mark, value) == [(Reason.BAD_SCHEMA, path, Severity.WARNING)]


def test_a_slip_of_the_finger_is_told() -> None:
    findings = Findings({})
    check_schema({"x-crdt": "lww_registr"}, (), findings)
    assert findings.problems()[0].hint == "did you mean lww_register?"


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("weather", 0),
        (r"(?i)\b(in|my|the)\b", 1),
        ("[aeiou]", 1),
        (".{3,}", 1),
        (".*", 1),
        ("[a-z]{30}", 0),
    ],
)
def test_patterns_that_match_unrelated_messages_are_flagged(pattern: str, flags: int) -> None:
    findings = Findings({})
    metadata = Fields({"triggers": [{"type": "regex", "value": pattern}]}, ("metadata",), findings)
    (trigger,) = read_triggers(metadata)
    assert trigger.value == pattern
    assert [x.severity for x in findings.problems()] == [Severity.WARNING] * flags


def test_the_unrelated_messages_differ() -> None:
    assert len(set(UNRELATED)) == 12
