"""Collecting problems: paths, places and bounds."""

from __future__ import annotations

import pytest

from capdex.diagnostics import (
    MAX_PROBLEMS,
    MAX_SUGGESTIONS,
    Findings,
    Path,
    show,
    show_change,
    show_path,
)
from capdex.problems import Reason, Severity


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("tools", 2, "function", "parameters"), "tools[2].function.parameters"),
        (("schema", "$ref"), "schema.$ref"),
        (("tool_bindings", "state.create"), 'tool_bindings["state.create"]'),
        (("a b",), '["a b"]'),
    ],
)
def test_a_path_reads_like_code(path: Path, text: str) -> None:
    assert show_path(path) == text


def test_a_hostile_value_is_shown_short_and_visible() -> None:
    assert show("a\u202eb\n") == '"a\\u202eb\\n"'
    assert len(show("x" * 1000)) == 60


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), (1.5, "1.5"), ({"a": [False, "ü"]}, '{"a": [false, "ü"]}')],
)
def test_a_value_is_shown_as_packages_write_it(value: object, text: str) -> None:
    assert show(value) == text


def test_a_missing_value_is_placed_where_it_should_have_been() -> None:
    marks: dict[tuple[str | int, ...], tuple[int, int]] = {("a",): (3, 5)}
    findings = Findings(lambda path: marks.get(path))
    assert findings.place(("a", "b", 0)) == (3, 5)
    assert findings.place(("x",)) == (1, 1)


def test_errors_are_never_crowded_out_by_notes() -> None:
    findings = Findings()
    for _ in range(2 * MAX_PROBLEMS):
        findings.note(Reason.UNKNOWN_FIELD, (), "a note")
    assert not findings.failed
    findings.error(Reason.BAD_VALUE, (), "an error")
    assert findings.failed
    assert len(findings.problems()) == MAX_PROBLEMS + 1
    assert Severity.ERROR in {x.severity for x in findings.problems()}


def test_suggestions_run_out() -> None:
    findings = Findings()
    for _ in range(MAX_SUGGESTIONS):
        assert findings.suggest("promt", ["prompt", "tools"]) == "did you mean prompt?"
    assert findings.suggest("promt", ["prompt", "tools"]) == ""


def test_a_list_that_changed_is_shown_as_packages_write_it() -> None:
    was, now = [{"secret": "KEY", "optional": True}], [{"secret": "KEY"}]
    shown = 'was [{"secret": "KEY", "optional": true}], is [{"secret": "KEY"}]'
    assert show_change(was, now) == shown
