"""ReDoS corpus: what RE2 compiles is taken and never backtracks, the rest is refused (P9)."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from capdex.diagnostics import Findings
from capdex.manifest.fields import Fields
from capdex.manifest.triggers import MAX_PATTERN_BYTES, compile_pattern, read_triggers
from capdex.problems import Problem, Reason, Severity

SUITE = Path(__file__).parents[2] / "vectors" / "redos" / "patterns.json"
MOST_INSTRUCTIONS = 4096
MOST_CHARS = 4096  # of an attack: an engine that backtracks needs no more to hang

_EXPRESSION = re.compile(r'"(.*)"\+"(.*)"\*([0-9]+)\+"(.*)"', re.DOTALL)

CASES: list[dict[str, Any]] = json.loads(SUITE.read_text("utf-8"))


def errors(pattern: str) -> list[Problem]:
    """What a package with this pattern for a trigger is refused for."""
    findings = Findings()
    trigger = {"type": "regex", "value": pattern}
    read_triggers(Fields({"triggers": [trigger]}, ("metadata",), findings))
    return [x for x in findings.problems() if x.severity is Severity.ERROR]


def outcome(case: dict[str, Any]) -> str:
    found = [problem.code for problem in errors(case["pattern"])]
    if len(case["pattern"].encode()) > MAX_PATTERN_BYTES:
        return "refused by policy: too long" if found == [Reason.TOO_LARGE] else "failed"
    if not case["re2_compiles_1MiB"]:
        return "refused by policy: not RE2" if found == [Reason.BAD_TRIGGER] else "failed"
    return "passed" if not found else "failed"


def test_patterns_that_re2_compiles_are_taken_and_the_others_refused() -> None:
    outcomes = {case["id"]: outcome(case) for case in CASES}
    assert [id_ for id_, found in outcomes.items() if found == "failed"] == []
    assert Counter(outcomes.values()) == {
        "passed": 591,
        "refused by policy: not RE2": 91,
        "refused by policy: too long": 17,
    }


def attack_text(attack: dict[str, Any]) -> str:
    """The text of an attack; some are kept as the Python expression they were written in."""
    if match := _EXPRESSION.fullmatch(attack.get("raw", "")):
        prefix, pump, times, suffix = match.groups()
        return str(prefix + pump * int(times) + suffix)
    return str(attack["prefix"] + attack["pump"] * attack["n"] + attack["suffix"])


def test_each_attack_on_a_taken_pattern_is_answered_in_few_steps() -> None:
    """RE2 takes as many steps as the text has characters times the program has instructions.

    That is its promise, so what is bounded here is the size of the program; and every pattern
    meets the text that was made to hang an engine that backtracks.
    """
    taken = [case for case in CASES if outcome(case) == "passed"]
    answered = 0
    for case in taken:
        pattern = compile_pattern(case["pattern"])
        assert pattern.programsize <= MOST_INSTRUCTIONS
        for attack in case["attacks"]:
            found = pattern.search(attack_text(attack)[:MOST_CHARS])
            answered += found is None or found.start() >= 0
    assert answered == sum(len(case["attacks"]) for case in taken) == 591
