"""Triggers: what a router can match with, and what it cannot (P9)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.diagnostics import Findings
from capdex.manifest.fields import Fields
from capdex.manifest.triggers import UNRELATED, Trigger, _matched, compile_pattern, read_triggers
from capdex.problems import Problem, Reason, Severity


def read(*triggers: Any) -> tuple[tuple[Trigger, ...], list[Problem]]:
    findings = Findings()
    fields = Fields({"triggers": list(triggers)}, ("metadata",), findings)
    return read_triggers(fields), list(findings.problems())


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "regex", "value": "note|记(.*)笔记"},
        {"type": "regex", "value": "^(a+)+$"},
        {"type": "keyword", "value": "weather"},
        {"type": "embedding", "value": "do I need an umbrella"},
        {"type": "embedding", "model": "minilm@6", "value": "f00ff"},
        {"type": "embedding", "model": "bge-m3@1.5", "value": "uAQID"},
    ],
)
def test_a_usable_trigger_is_read(trigger: dict[str, str]) -> None:
    triggers, problems = read(trigger)
    assert triggers == (Trigger(**trigger),)
    assert problems == []


@pytest.mark.parametrize(
    ("trigger", "reason", "field"),
    [
        ("note", Reason.WRONG_TYPE, ""),
        ({"value": "a"}, Reason.MISSING_FIELD, ".type"),
        ({"type": "keyword"}, Reason.MISSING_FIELD, ".value"),
        ({"type": "keyword", "value": 1}, Reason.WRONG_TYPE, ".value"),
        ({"type": "keyword", "value": "  "}, Reason.BAD_TRIGGER, ".value"),
        ({"type": "keyword", "value": "a" * 129}, Reason.TOO_LARGE, ".value"),
        ({"type": "keyword", "value": "a\nb"}, Reason.BAD_TRIGGER, ".value"),
        ({"type": "regexp", "value": "a"}, Reason.BAD_TRIGGER, ".type"),
        ({"type": "regex", "value": "(a)\\1"}, Reason.BAD_TRIGGER, ".value"),
        ({"type": "regex", "value": "(?=a)"}, Reason.BAD_TRIGGER, ".value"),
        ({"type": "regex", "value": "(a{1000}){1000}"}, Reason.BAD_TRIGGER, ".value"),
        ({"type": "regex", "value": "(\\pL{100}){9}"}, Reason.BAD_TRIGGER, ".value"),
        ({"type": "regex", "value": "é" * 257}, Reason.TOO_LARGE, ".value"),
        ({"type": "embedding", "value": "a" * 1025}, Reason.TOO_LARGE, ".value"),
        ({"type": "embedding", "model": "minilm", "value": "f00"}, Reason.BAD_TRIGGER, ".model"),
        ({"type": "embedding", "model": 1, "value": "f00"}, Reason.WRONG_TYPE, ".model"),
        ({"type": "embedding", "model": "a@1", "value": "words"}, Reason.BAD_TRIGGER, ".value"),
        ({"type": "embedding", "model": "a@1", "value": "f" * 4097}, Reason.BAD_TRIGGER, ".value"),
    ],
)
def test_an_unusable_trigger_is_refused(trigger: Any, reason: Reason, field: str) -> None:
    triggers, problems = read(trigger)
    assert triggers == ()
    errors = [x for x in problems if x.severity is Severity.ERROR]
    assert (errors[0].code, errors[0].path) == (reason, f"metadata.triggers[0]{field}")


def test_a_misspelt_type_gets_a_hint() -> None:
    _, (problem,) = read({"type": "regexp", "value": "a"})
    assert problem.hint == "did you mean regex?"


def test_a_pattern_that_matches_everything_is_warned_about() -> None:
    triggers, (problem,) = read({"type": "regex", "value": ".*"})
    assert len(triggers) == 1
    assert (problem.code, problem.severity) == (Reason.BAD_TRIGGER, Severity.WARNING)


def test_there_are_at_most_64_triggers() -> None:
    one = {"type": "keyword", "value": "a"}
    assert read(*[one] * 64)[1] == []
    triggers, (problem,) = read(*[one] * 65)
    assert (len(triggers), problem.code) == (64, Reason.TOO_MANY)


def test_no_triggers_are_warned_about() -> None:
    triggers, (problem,) = read()
    assert triggers == ()
    assert (problem.code, problem.severity) == (Reason.MISSING_FIELD, Severity.WARNING)


def test_re2_does_not_backtrack() -> None:
    assert compile_pattern("^(a+)+$").search("a" * 100_000 + "!") is None


@given(st.text())
def test_any_pattern_is_judged(pattern: str) -> None:
    triggers, problems = read({"type": "regex", "value": pattern})
    assert triggers or problems


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "weather",
            "e",
            "^.",
            ".$",
            r"\A\w",
            r"\w\W?\z",
            r"(?m)^W",
            r"\bthe\b",
            r"[^a-z]",
            r"\Bx",
        ),
        *(
            "zebra",
            r"dentist[\s\S]*Summarise",
            r"\n",
            r"(?s)Oslo.*cat",
            "明天|今日|capital|cat|Python",
        ),
    ],
)
def test_unrelated_messages_are_counted_as_if_each_were_searched(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    each = sum(compiled.search(text) is not None for text in UNRELATED)
    assert _matched(compiled, pattern) == each


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
    (trigger,), problems = read({"type": "regex", "value": pattern})
    assert trigger.value == pattern
    assert [x.severity for x in problems] == [Severity.WARNING] * flags


def test_the_unrelated_messages_differ() -> None:
    assert len(set(UNRELATED)) == 12


def test_a_reader_of_the_manifest_alone_does_not_look_for_patterns_that_match_too_much() -> None:
    findings = Findings()
    fields = Fields({"triggers": [{"type": "regex", "value": ".*"}]}, ("metadata",), findings)
    assert read_triggers(fields, lint=False) == (Trigger("regex", ".*"),)
    assert findings.problems() == ()
