"""Pages name tests that exist, and docs/conformance.md claims nothing without one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/conformance.md").read_text("utf-8")
RESULTS = {"met", "in part", "not offered", "not ours"}
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for table in re.findall(r"^\| requirement \|.*\n\|.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    for line in table.splitlines()
]
ROUTER = (ROOT / "docs/router.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`([\w/.]+)::(\w+)`", PAGE + ROUTER)))


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


@pytest.mark.parametrize(("path", "test"), NAMED, ids=lambda part: part)
def test_every_test_that_a_page_names_exists(path: str, test: str) -> None:
    assert test in names_in(path)


def test_every_row_has_a_result_and_what_is_met_has_a_test() -> None:
    assert ROWS
    for row in ROWS:
        requirement, _, tests, result = row
        assert result in RESULTS, requirement
        assert (result == "not offered") == (tests == "–"), requirement
