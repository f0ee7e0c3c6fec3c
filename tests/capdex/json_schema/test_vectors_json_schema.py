"""JSON-Schema-Test-Suite: each schema is valid to us where it is to the meta-schema (P8).

Except what packages may not do, all of it about leaving the file: other dialects, an `$id` inside,
references to elsewhere. `jsonschema` with its meta-schema is the judge.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from capdex.diagnostics import Findings
from capdex.json_schema.schema import check_schema
from capdex.problems import Problem

SUITE = Path(__file__).parents[2] / "vectors" / "json-schema-test-suite" / "schemas.json"
SCHEMAS: list[tuple[str, str, Any]] = json.loads(SUITE.read_text("utf-8"))
META = Draft202012Validator(Draft202012Validator.META_SCHEMA)

POLICIES = {
    "points out of the package": "a reference to elsewhere",
    "points at nothing": "a reference to nothing",
    "points at no schema": "a reference to nothing",
    "$id belongs at the top": "an $id inside",
    "is not the dialect of packages": "another dialect",
    "stands twice in one schema": "an anchor twice",
}


def problems(schema: Any) -> list[Problem]:
    findings = Findings()
    check_schema(schema, (), findings)
    return list(findings.problems())


def policy(problem: Problem) -> str | None:
    """Which rule of packages a problem is about; None where it is about JSON Schema."""
    return next((name for text, name in POLICIES.items() if text in problem.message), None)


def outcome(schema: Any) -> str:
    found = problems(schema)
    policies = sorted({policy(problem) or "" for problem in found})
    if policies and all(policies):
        return f"refused by policy: {', '.join(policies)}"
    valid = META.is_valid(schema)
    if valid is bool(found):
        return "failed"
    return "passed: valid" if valid else "passed: invalid"


def test_the_schemas_of_the_suite_are_valid_or_lead_out_of_the_package() -> None:
    assert all(META.is_valid(schema) for _, _, schema in SCHEMAS)
    assert Counter(outcome(schema) for _, _, schema in SCHEMAS) == {
        "passed: valid": 403,
        "refused by policy: a reference to elsewhere": 15,
        "refused by policy: a reference to elsewhere, an $id inside": 30,
        "refused by policy: a reference to elsewhere, an $id inside, an anchor twice": 15,
        "refused by policy: a reference to elsewhere, a reference to nothing, an $id inside": 3,
        "refused by policy: a reference to elsewhere, a reference to nothing, an $id inside, "
        "an anchor twice": 1,
        "refused by policy: an $id inside": 17,
        "refused by policy: an $id inside, an anchor twice": 1,
        "refused by policy: an $id inside, another dialect": 3,
        "refused by policy: another dialect": 1,
    }


def spoilt() -> Iterator[Any]:
    """Each schema with the value of each of its keywords replaced, by one after the other."""
    values: Iterator[Any] = cycle([None, 7, "x", -1, [], {}, True, ["a", "a"], 0.5, [[]], {"a": 1}])
    for _, _, schema in SCHEMAS:
        if isinstance(schema, dict):
            for keyword in schema:
                yield {**schema, keyword: next(values)}


def test_a_spoilt_schema_of_the_suite_is_judged_as_the_meta_schema_judges_it() -> None:
    outcomes = [outcome(schema) for schema in spoilt()]
    assert Counter(x if x.startswith("passed") else x.partition(":")[0] for x in outcomes) == {
        "passed: valid": 102,
        "passed: invalid": 1156,
        "refused by policy": 78,
    }


def test_schemas_refused_by_policy_do_name_what_leads_out() -> None:
    """Without their `$id`s, references and anchors, the refused ones are good."""
    refused = [schema for _, _, schema in SCHEMAS if outcome(schema).startswith("refused")]
    assert [schema for schema in refused if problems(stripped(schema))] == []


def stripped(value: Any) -> Any:
    if isinstance(value, list):
        return [stripped(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = ("$id", "$ref", "$dynamicRef", "$schema", "$anchor", "$dynamicAnchor")
    return {k: stripped(v) for k, v in value.items() if not (k in out and isinstance(v, str))}
