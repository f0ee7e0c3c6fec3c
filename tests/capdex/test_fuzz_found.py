"""Inputs that fuzzing found, each by the name of what was wrong with it."""

from __future__ import annotations

import pytest

from capdex.manifest import read


@pytest.mark.parametrize("data", [b"? x", b"a: b\n? x", b"- a\n-", b"? [x]"])
def test_an_empty_value_at_an_end_without_a_line_feed_stands_inside_the_file(data: bytes) -> None:
    lines = data.decode().split("\n")
    for problem in read(data).problems:
        assert problem.line <= len(lines)
        assert problem.column <= len(lines[problem.line - 1]) + 1
