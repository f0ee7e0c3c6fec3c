"""Versions and ranges against node-semver's own fixtures and a table made by running it (P2)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.version import (
    MAX_RANGE_CHARS,
    MAX_VERSION_CHARS,
    Version,
    VersionRange,
    latest,
    max_satisfying,
    parse_selector,
)

VECTORS = Path(__file__).parents[1] / "vectors" / "node-semver"


def vectors(name: str) -> list[list[Any]]:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


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


def within_policy(name: str) -> list[list[Any]]:
    """The range cases that our rules cover; only the version has to follow P2's spelling."""
    cases = [case for case in vectors(name) if policy(case[1], options=options(case)) is None]
    return [case for case in cases if case[1] not in ("not a version", "glorp")]


@pytest.mark.parametrize("case", within_policy("range-include"), ids=repr)
def test_a_range_holds_what_npm_says_it_holds(case: list[Any]) -> None:
    assert Version.parse(case[1]) in VersionRange.parse(case[0])


@pytest.mark.parametrize("case", within_policy("range-exclude"), ids=repr)
def test_a_range_leaves_out_what_npm_says_it_leaves_out(case: list[Any]) -> None:
    assert Version.parse(case[1]) not in VersionRange.parse(case[0])


@pytest.mark.parametrize("case", vectors("range-parse"), ids=lambda case: repr(case[0])[:60])
def test_a_range_means_what_npm_expands_it_to(case: list[Any]) -> None:
    text, expanded = case[0], case[1]
    outside = policy(expanded or "", options=options(case))
    too_large = outside == "numbers over 15 digits" or len(text) > MAX_RANGE_CHARS
    if too_large or (outside is None and expanded is None):
        with pytest.raises(InvalidInput):
            VersionRange.parse(text)
    elif outside is None:
        assert meaning(text) == meaning(expanded)


def meaning(text: str) -> set[frozenset[tuple[str, Version]]]:
    """The alternatives of a range without repetition; those that hold nothing count once."""
    nothing = ("<", Version(0, 0, 0, (0,)))
    sets = {frozenset(bounds) for bounds in VersionRange.parse(text).alternatives}
    return {bounds for bounds in sets if nothing not in bounds} or {frozenset({nothing})}


def test_the_vectors_outside_our_rules_are_few_and_known() -> None:
    cases = [case for name in ("range-include", "range-exclude") for case in vectors(name)]
    outside = [policy(case[1], options=options(case)) for case in cases]
    counts = {reason: outside.count(reason) for reason in outside}
    assert counts == {None: 177, "loose mode": 13, "includePrerelease": 33, "not text": 1}


def test_ranges_agree_with_node_semver_on_generated_cases() -> None:
    table: Any = json.loads((VECTORS / "generated.json").read_text(encoding="utf-8"))
    versions = [Version.parse(text) for text in table["versions"]]
    for text, held in table["ranges"]:
        if held is None:
            with pytest.raises(InvalidInput):
                VersionRange.parse(text)
        else:
            wanted = VersionRange.parse(text)
            bits = "".join("1" if version in wanted else "0" for version in versions)
            assert int(bits, 2) == int(held, 16), text


@pytest.mark.parametrize("text", ["1.2.3*", ">3.3*.2", "2 - =0.0.0-1", "<*1.2.3"])
def test_spellings_that_npm_takes_by_accident_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        VersionRange.parse(text)


def test_a_star_beside_a_named_prerelease_takes_no_prerelease_as_in_npm() -> None:
    assert Version.parse("1.0.0-rc.1") in VersionRange.parse("1.0.0-rc.1 || 2")
    assert Version.parse("1.0.0-rc.1") not in VersionRange.parse("1.0.0-rc.1 || *")


@pytest.mark.parametrize("case", vectors("comparisons"), ids=repr)
def test_versions_are_ordered_as_npm_orders_them(case: list[Any]) -> None:
    if reason := policy(case[0], case[1], options=options(case)):
        assert reason in ("loose mode", "v before a version", "build metadata")
        return
    higher, lower = Version.parse(case[0]), Version.parse(case[1])
    assert higher > lower
    assert not higher < lower
    assert higher != lower


@pytest.mark.parametrize("case", vectors("equality"), ids=repr)
def test_second_spellings_of_a_version_are_refused(case: list[Any]) -> None:
    assert policy(case[0], case[1], options=options(case)) in ("loose mode", "build metadata")
    with pytest.raises(InvalidInput):
        Version.parse(case[1])


@pytest.mark.parametrize("case", vectors("valid-versions"), ids=repr)
def test_valid_versions_are_read_or_refused_by_policy(case: list[Any]) -> None:
    text, major, minor, patch, prerelease, _build = case
    if policy(text):
        with pytest.raises(InvalidInput):
            Version.parse(text)
    else:
        assert Version.parse(text) == Version(major, minor, patch, tuple(prerelease))
        assert str(Version.parse(text)) == text


@pytest.mark.parametrize("case", vectors("invalid-versions"), ids=lambda case: repr(case[0])[:40])
def test_invalid_versions_are_refused(case: list[Any]) -> None:
    if isinstance(case[0], str):
        with pytest.raises(InvalidInput):
            Version.parse(case[0])


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "1.2", "1.2.3.4", "01.2.3", "1.02.3", "1.2.03", "1.2.3-", "1.2.3-01", "1.2.3-a..b",
        "1.2.3-a_b", "v1.2.3", "=1.2.3", " 1.2.3", "1.2.3 ", "1.2.3\n", "1.2.3+build", "-1.2.3",
        "1.2.3-é", "１.2.3", "1.2.3-1000000000000000", "1000000000000000.0.0",
        "1.0.0-" + "a" * MAX_VERSION_CHARS,
    ],
)  # fmt: skip
def test_what_is_not_strict_semver_is_not_a_version(text: str) -> None:
    with pytest.raises(InvalidInput):
        Version.parse(text)


def test_prereleases_are_ordered_as_semver_section_11_orders_them() -> None:
    written = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11"
    ordered = [Version.parse(text) for text in [*written.split(), "1.0.0-rc.1", "1.0.0"]]
    assert sorted(set(ordered)) == ordered


def test_latest_is_the_highest_stable_version_else_the_highest_prerelease() -> None:
    versions = [Version.parse(text) for text in ("1.0.0", "2.0.0-rc.1", "0.9.0")]
    assert latest(versions) == Version(1, 0, 0)
    assert latest(versions[1:2]) == versions[1]
    assert latest([]) is None


def test_the_highest_version_of_a_range_is_found() -> None:
    versions = [Version.parse(text) for text in ("1.2.0", "1.10.0", "2.0.0", "1.11.0-rc.1")]
    assert max_satisfying(versions, VersionRange.parse("^1.2")) == Version(1, 10, 0)
    assert max_satisfying(versions, VersionRange.parse("^3")) is None


def test_a_range_is_written_back_as_it_was_read() -> None:
    assert str(VersionRange.parse(" >= 1.2\t<2 ")) == " >= 1.2\t<2 "
    assert Version(9, 9, 9) in VersionRange.parse("")


def test_a_range_over_its_limit_is_refused() -> None:
    with pytest.raises(InvalidInput):
        VersionRange.parse("1 || " * 60)


@pytest.mark.parametrize("text", ["", " 1.2.3", "^1 ", "1  - 2", "1\t- 2", "v1.2.3", "1.2.3+b"])
def test_a_selector_is_stricter_where_one_version_seems_meant(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_selector(text)


def test_a_selector_is_a_version_before_it_is_a_range() -> None:
    assert parse_selector("1.2.3") == Version(1, 2, 3)
    assert parse_selector("1.2") == VersionRange.parse("1.2")
    assert parse_selector(">=1.2 <2 || 3.x") == VersionRange.parse(">=1.2 <2 || 3.x")


numbers = st.integers(0, 10**15 - 1)
prereleases = st.lists(numbers | st.from_regex(r"[0-9]{0,3}[A-Za-z-][0-9A-Za-z-]{0,5}", fullmatch=True), max_size=2)  # fmt: skip # noqa: E501
versions = st.builds(lambda a, b, c, tail: Version(a, b, c, tuple(tail)), numbers, numbers, numbers, prereleases).filter(lambda v: len(str(v)) <= MAX_VERSION_CHARS)  # fmt: skip # noqa: E501


@given(versions)
def test_every_version_survives_writing_and_reading(version: Version) -> None:
    assert Version.parse(str(version)) == version
    assert version in VersionRange.parse(str(version))


@given(versions, versions)
def test_one_order_holds_between_any_two_versions(one: Version, other: Version) -> None:
    assert (one < other) + (one == other) + (one > other) == 1


@given(st.text(alphabet="0123vxX*^~<>=|-. +\t\n①é", max_size=40) | st.text(max_size=40))
def test_reading_a_range_raises_nothing_but_invalid_input(text: str) -> None:
    for parse in (Version.parse, VersionRange.parse, parse_selector):
        try:
            assert str(parse(text)) == text
        except InvalidInput:
            continue
