"""Versions and ranges against node-semver's own fixtures and a table made by running it (P2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import InvalidInput
from capdex.version import MAX_RANGE_CHARS, Version, VersionRange

VECTORS = Path(__file__).parents[1] / "vectors" / "node-semver"


def vectors(name: str) -> list[list[Any]]:
    found: list[list[Any]] = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    return found


def policy(*texts: Any, options: Any = None) -> str | None:
    """Why a case of node-semver is outside our rules, or None where it must hold."""
    if not all(isinstance(text, str) for text in texts):
        return "not text"
    if options is True or (isinstance(options, dict) and options.get("loose")):
        return "loose mode"
    if isinstance(options, dict) and options.get("includePrerelease"):
        return "includePrerelease"
    if any("+" in text for text in texts):
        return "build metadata"
    if any(text.strip().startswith("v") for text in texts):
        return "v before a version"
    if any(len(number) > 15 for text in texts for number in text.replace("-", ".").split(".")):
        return "numbers over 15 digits"
    return None


def options(case: list[Any]) -> Any:
    return case[2] if len(case) > 2 else None


def is_refused(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except InvalidInput:
        return True
    return False


def judged(good: bool) -> str:
    return "passed" if good else "failed"


def inclusion(case: list[Any], *, included: bool) -> str:
    """Only the version has to follow P2's spelling: a range is npm's."""
    text, version = case[0], case[1]
    if outside := policy(version, options=options(case)):
        return f"refused by policy: {outside}"
    if is_refused(Version.parse, version):  # npm: no range holds what is not a version
        return judged(not included)
    return judged((Version.parse(version) in VersionRange.parse(text)) is included)


def expansion(case: list[Any]) -> str:
    text, expanded = case[0], case[1]
    outside = policy(expanded or "", options=options(case))
    if outside == "numbers over 15 digits" or len(text) > MAX_RANGE_CHARS:
        return f"refused by policy: {'size' if is_refused(VersionRange.parse, text) else 'failed'}"
    if outside:
        return f"refused by policy: {outside}"
    if expanded is None:
        return judged(is_refused(VersionRange.parse, text))
    return judged(meaning(text) == meaning(expanded))


def meaning(text: str) -> set[frozenset[tuple[str, Version]]]:
    """The alternatives of a range without repetition; those that hold nothing count once."""
    nothing = ("<", Version(0, 0, 0, (0,)))
    sets = {frozenset(bounds) for bounds in VersionRange.parse(text).alternatives}
    return {bounds for bounds in sets if nothing not in bounds} or {frozenset({nothing})}


def comparison(case: list[Any]) -> str:
    if outside := policy(case[0], case[1], options=options(case)):
        return f"refused by policy: {outside}"
    higher, lower = Version.parse(case[0]), Version.parse(case[1])
    return judged(higher > lower and not higher < lower and higher != lower)


def second_spelling(case: list[Any]) -> str:
    outside = policy(case[0], case[1], options=options(case))
    return f"refused by policy: {outside}" if is_refused(Version.parse, case[1]) else "failed"


def valid_version(case: list[Any]) -> str:
    text, major, minor, patch, prerelease, _build = case
    if outside := policy(text):
        return f"refused by policy: {outside}" if is_refused(Version.parse, text) else "failed"
    version = Version.parse(text)
    parts = (version.major, version.minor, version.patch, list(version.prerelease))
    return judged(parts == (major, minor, patch, prerelease) and str(version) == text)


def invalid_version(case: list[Any]) -> str:
    if not isinstance(case[0], str):
        return "refused by policy: not text"
    return judged(is_refused(Version.parse, case[0]))


@pytest.mark.parametrize(
    ("name", "outcome", "counts"),
    [
        (
            "range-include",
            lambda case: inclusion(case, included=True),
            {"passed": 99, "loose mode": 6, "includePrerelease": 21},
        ),
        (
            "range-exclude",
            lambda case: inclusion(case, included=False),
            {"passed": 78, "loose mode": 7, "includePrerelease": 12, "not text": 1},
        ),
        (
            "range-parse",
            expansion,
            {"passed": 105, "loose mode": 4, "includePrerelease": 11, "size": 13},
        ),
        ("comparisons", comparison, {"passed": 18, "loose mode": 12, "build metadata": 1}),
        ("equality", second_spelling, {"loose mode": 34, "build metadata": 3}),
        (
            "valid-versions",
            valid_version,
            {"passed": 12, "build metadata": 9, "v before a version": 1},
        ),
        ("invalid-versions", invalid_version, {"passed": 7, "not text": 3}),
    ],
)
def test_versions_and_ranges_mean_what_npm_says_they_mean(
    name: str, outcome: Callable[[list[Any]], str], counts: dict[str, int]
) -> None:
    outcomes = [outcome(case) for case in vectors(name)]
    assert [case for case, x in zip(vectors(name), outcomes, strict=True) if "failed" in x] == []
    assert Counter(x.removeprefix("refused by policy: ") for x in outcomes) == counts


def test_ranges_agree_with_node_semver_on_generated_cases() -> None:
    table: Any = json.loads((VECTORS / "generated.json").read_text("utf-8"))
    versions = [Version.parse(text) for text in table["versions"]]
    refused = 0
    for text, held in table["ranges"]:
        if held is None:
            assert is_refused(VersionRange.parse, text), text
            refused += 1
        else:
            wanted = VersionRange.parse(text)
            bits = "".join("1" if version in wanted else "0" for version in versions)
            assert int(bits, 2) == int(held, 16), text
    assert (len(versions), len(table["ranges"]), refused) == (23, 500, 100)
