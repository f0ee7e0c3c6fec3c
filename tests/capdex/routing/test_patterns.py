"""One trigger by itself."""

from __future__ import annotations

import pytest

from capdex.manifest.triggers import Trigger
from capdex.routing.patterns import MAX_SIZE, Message, Pattern, is_denied, pattern_of, traits


@pytest.mark.parametrize(
    "trigger",
    [
        Trigger("regex", "a" * 513),
        Trigger("regex", "\ud800"),
        Trigger("regex", rf"\pL{{{MAX_SIZE}}}"),
        Trigger("keyword", "x" * 129),
        Trigger("keyword", " "),
        Trigger("embedding", "a phrase"),
    ],
)
def test_what_cannot_be_matched_is_no_pattern(trigger: Trigger) -> None:
    assert pattern_of(trigger) is None


@pytest.mark.parametrize("text", [".*", "", r"\w+", "[a-z]", "a|e|i|o|u", "(the|my|a) ", "(?i)^"])
def test_a_regex_that_hits_unrelated_messages_is_broad(text: str) -> None:
    assert traits(Pattern("regex", text)).broad


@pytest.mark.parametrize("text", ["the", "a"])
def test_a_common_or_short_keyword_is_broad(text: str) -> None:
    assert traits(Pattern("keyword", text)).broad


def test_what_names_a_matter_is_not_broad() -> None:
    for pattern in (Pattern("regex", "weather|forecast"), Pattern("keyword", "记")):
        assert not traits(pattern).broad


@pytest.mark.parametrize(
    ("pattern", "message", "denied"),
    [
        (Pattern("keyword", "weather"), "don't show me the weather", True),
        (Pattern("keyword", "weather"), "no idea. show me the weather", False),
        (Pattern("regex", "weather|forecast"), "never show the Forecast", True),
        (Pattern("regex", "番号：１"), "番号：１", False),
        (Pattern("regex", "("), "not this", True),
    ],
)
def test_a_hit_in_a_negated_clause_is_denied(pattern: Pattern, message: str, denied: bool) -> None:
    assert is_denied(pattern, Message.of(message)) is denied
