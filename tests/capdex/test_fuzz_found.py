"""Inputs that fuzzing found, each by the name of what was wrong with it."""

from __future__ import annotations

import pytest

from capdex.diagnostics import Findings
from capdex.manifest.fields import Fields
from capdex.manifest.manifest import read
from capdex.manifest.triggers import read_triggers
from capdex.problems import Reason


@pytest.mark.parametrize("data", [b"? x", b"a: b\n? x", b"- a\n-", b"? [x]"])
def test_an_empty_value_at_an_end_without_a_line_feed_stands_inside_the_file(data: bytes) -> None:
    lines = data.decode().split("\n")
    for problem in read(data).problems:
        assert problem.line <= len(lines)
        assert problem.column <= len(lines[problem.line - 1]) + 1


def test_a_pattern_that_re2_quotes_in_its_complaint_keeps_to_its_line() -> None:
    findings = Findings()
    trigger = {"type": "regex", "value": "(a\n\tsecond: line\u3000"}
    assert read_triggers(Fields({"triggers": [trigger]}, (), findings)) == ()
    (problem,) = findings.problems()
    assert problem.code is Reason.BAD_TRIGGER
    assert problem.message.isprintable()
    assert "missing )" in problem.message
