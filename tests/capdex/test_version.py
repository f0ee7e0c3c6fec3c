"""Versions and ranges (P2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.version import (
    MAX_VERSION_CHARS,
    Version,
    VersionRange,
    latest,
    max_satisfying,
    parse_selector,
)


@pytest.mark.parametrize("text", ["1.2.3*", ">3.3*.2", "2 - =0.0.0-1", "<*1.2.3"])
def test_spellings_that_npm_takes_by_accident_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        VersionRange.parse(text)


def test_a_star_beside_a_named_prerelease_takes_no_prerelease_as_in_npm() -> None:
    assert Version.parse("1.0.0-rc.1") in VersionRange.parse("1.0.0-rc.1 || 2")
    assert Version.parse("1.0.0-rc.1") not in VersionRange.parse("1.0.0-rc.1 || *")


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
