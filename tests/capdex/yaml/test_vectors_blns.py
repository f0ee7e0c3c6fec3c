"""Naughty strings: as a title, a description or a tag each comes back as it was, or is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from capdex.codes import reason_codes
from capdex.manifest.manifest import Manifest, read
from capdex.problems import Problem, Severity

SUITE = Path(__file__).parents[2] / "vectors" / "blns" / "strings.json"
STRINGS: list[str] = json.loads(SUITE.read_text("utf-8"))

FILE = """\
metadata:
  id: did:nuwa:cap:note@1.0.0
  name: {title}
  description: {description}
  tags: {tags}
schema: |
  {{"$id": "did:nuwa:state:note#v1", "type": "object"}}
"""
FIELDS: dict[str, Callable[[Manifest], str]] = {
    "title": lambda manifest: manifest.title,
    "description": lambda manifest: manifest.description,
    "tags": lambda manifest: manifest.tags[0],
}
STYLES: dict[str, Callable[[str], str]] = {
    "quoted": lambda text: json.dumps(text, ensure_ascii=False),
    "escaped": json.dumps,
    "block": lambda text: "|2-\n" + "".join(f"    {line}\n" for line in text.split("\n")),
}


def outcome(text: str, field: str, style: str) -> str:
    values = {"title": "A", "description": "B", "tags": "[c]", field: STYLES[style](text)}
    if field == "tags":
        values["tags"] = f"\n  - {STYLES[style](text)}"
    reading = read(FILE.format(**values).encode("utf-8", "surrogatepass"))
    errors: list[Problem] = [x for x in reading.problems if x.severity is Severity.ERROR]
    if errors:
        assert all(x.code in reason_codes() and x.line > 0 for x in errors)
        return "refused by policy"
    assert reading.manifest is not None
    return "passed" if FIELDS[field](reading.manifest) == text else "failed"


@pytest.mark.parametrize(
    ("field", "passed", "refused"),
    [("title", 486, 29), ("description", 493, 22), ("tags", 486, 29)],
)
def test_a_naughty_string_comes_back_or_is_refused(field: str, passed: int, refused: int) -> None:
    expected = {"passed": passed, "refused by policy": refused}  # unseen characters, or none
    assert Counter(outcome(text, field, "quoted") for text in STRINGS) == expected


@pytest.mark.parametrize("style", STYLES)
def test_a_naughty_string_is_the_same_however_it_is_written(style: str) -> None:
    outcomes = {text: outcome(text, "description", style) for text in STRINGS}
    assert [text for text, found in outcomes.items() if found == "failed"] == []
    assert {text for text, found in outcomes.items() if found == "passed"} <= {
        text for text in STRINGS if outcome(text, "description", "quoted") == "passed"
    }
