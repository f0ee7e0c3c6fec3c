"""yaml-test-suite: every case is read exactly as its JSON says, or refused; never misread (P7)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from capdex.problems import Reason, Severity
from capdex.yaml.reader import YamlReading, read_yaml

SUITE = Path(__file__).parents[2] / "vectors" / "yaml-test-suite" / "cases.json"
CASES: list[dict[str, Any]] = json.loads(SUITE.read_text("utf-8"))


def refusal(reading: YamlReading) -> Reason | None:
    """Why a file is refused: the first of its errors."""
    return next((x.code for x in reading.problems if x.severity is Severity.ERROR), None)


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def outcome(case: dict[str, Any]) -> str:
    """What reading makes of a case; `json` holds the value of each of its documents."""
    reading = read_yaml(case["yaml"].encode())
    reason = refusal(reading)
    if case.get("fail"):
        return "failed: invalid YAML was read" if reason is None else "passed: refused as invalid"
    if reason is None:
        same = "json" in case and canonical([reading.value]) == canonical(case["json"])
        return "passed: read as its JSON" if same else "failed: misread"
    return f"refused by policy: {reason}"


def test_no_case_of_the_suite_is_misread() -> None:
    outcomes = {case["id"]: outcome(case) for case in CASES}
    assert [id_ for id_, found in outcomes.items() if found.startswith("failed")] == []
    assert Counter(outcomes.values()) == {
        "passed: read as its JSON": 163,
        "passed: refused as invalid": 94,
        # anchors, aliases, tags, directives, several documents, keys that are no text
        "refused by policy: YAML_FEATURE": 90,
        # valid in YAML 1.2, but nothing for libyaml, no document, or a block cut off by the end
        "refused by policy: YAML_SYNTAX": 58,
        "refused by policy: FORBIDDEN_CHARACTER": 1,
    }
    assert len({case["id"].partition("/")[0] for case in CASES}) == 351


def test_a_case_with_a_value_that_json_has_not_is_never_read() -> None:
    without = [case for case in CASES if "json" not in case and not case.get("fail")]
    assert len(without) == 29
    assert all(refusal(read_yaml(case["yaml"].encode())) for case in without)


# What libyaml reads though YAML 1.2 forbids it, or reads otherwise: found by the suite, and by
# comparing random files with another reader.
MISREAD = {
    "comment behind a bracket": "a: [b]#c\n",
    "comment behind a comma": "[a, b,#c\n]\n",
    "comment behind quotes": 'a: "b"#c\n',
    "comment behind a quoted key": "'a'#c: d\n",
    "comment behind a block header": "a: >#c\n  b\n",
    "bracket at the indent of its key": "a: [\n  b\n]\n",
    "flow line at the indent of its key": "a: [b,\nc]\n",
    "flow line indented by a tab": "- [\n\ta\n ]\n",
    "flow line at the indent of a nested list": "- - [a,\n  b]\n",
    "quoted line at the indent of its key": 'a: "b\nc"\n',
    "quoted line indented by a tab": "a: 'b\n\tc'\n",
    "quoted line in a flow at the indent of its key": "a: ['b\nc']\n",
    "quoted line that looks like a comment": "a: ['b\n# c',\n d]\n",
    "lone dash": "[-]\n",
    "lone dash behind another": "- [a, -]\n",
    "block at the indent of its list": "-\n|\n a\n",
    "block at the indent of its key": "a:\n|\n b\n",
    "block behind longer empty lines": "a: >\n \n   \n # no comment\n",
    "block of the whole file that starts with a hash": "|\n# no comment\n",
    "block cut off by the end": "a: |\n  b",
    "block cut off behind its last line": "a: |\n  b\n   ",
    "empty block cut off": "- |+\n   ",
    "escaped line end before an empty line": '"a\\\n\n b"\n',
}


@pytest.mark.parametrize("text", MISREAD.values(), ids=MISREAD)
def test_what_readers_lay_out_differently_is_refused(text: str) -> None:
    assert refusal(read_yaml(text.encode())) is Reason.YAML_SYNTAX


LAID_OUT = {
    "comments where they may stand": ("a: [b, #c\n# d\n \t# e\n  f] # g\n", {"a": ["b", "f"]}),
    "a hash inside words": ("a: b#c\nd: 'e'\n", {"a": "b#c", "d": "e"}),
    "comment behind a block header": ("a: |- \t# c\n  b\n", {"a": "b"}),
    "flow lines": ("a: [\n  b,\n\n \t\n c\n ]\n", {"a": ["b", "c"]}),
    "flow of the whole file": ("{\n'a': 'b\n\nc'\n}\n", {"a": "b\nc"}),
    "quoted lines": ("a:\n  b: 'c\n\n   \t d'\n", {"a": {"b": "c\nd"}}),
    "list at the indent of its key": ("a:\n- 'b\n c'\n", {"a": ["b c"]}),
    "dashes in words": ("[-a, --]\n", ["-a", "--"]),
    "block with shorter empty lines": ("a: |\n \n\n  b\n   \n", {"a": "\n\nb\n \n"}),
    "empty block": ("a: |\n    \nb: >\n\n", {"a": "", "b": ""}),
    "empty block with its empty lines": ("a: |+\n\nb: c\n", {"a": "\n", "b": "c"}),
    "block with a given indent": ("a: |1\n  b\n c\n", {"a": " b\nc\n"}),
    "escaped line ends": ('a: "b\\\n  c\\\\\n\n  d"\n', {"a": "bc\\\nd"}),
}


@pytest.mark.parametrize(("text", "value"), LAID_OUT.values(), ids=LAID_OUT)
def test_what_every_reader_lays_out_alike_is_read(text: str, value: Any) -> None:
    reading = read_yaml(text.encode())
    assert refusal(reading) is None, reading.problems
    assert reading.value == value


def test_a_fault_of_layout_is_told_at_its_place() -> None:
    (problem,) = read_yaml("é: 'x'\na:\n  b: [c,\n d]\n".encode()).problems
    assert (problem.path, problem.line, problem.column) == ("a.b", 4, 2)
    assert problem.hint == "indent it by 3 spaces or more"


def test_a_thousand_faults_of_layout_are_cut_to_what_people_can_mend() -> None:
    for text in ("a: [\n" + "'b\nc',\n" * 4000 + "]\n", "[" + "a,#\n" * 4000 + "]\n"):
        assert len(read_yaml(text.encode()).problems) == 100
