"""The literal parts of patterns."""

from __future__ import annotations

import contextlib

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from capdex.manifest.triggers import compile_pattern
from capdex.routing.literals import MAX_CHOICES, required, size


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("weather|forecast", (("weather",), ("forecast",))),
        ("记(.*)笔记|note|add note about", (("记", "笔记"), ("note",), ("add note about",))),
        (r"(?i)\b(repo|codebase)\b", (("repo",), ("codebase",))),
        (r"\bset (a|the) alarm\b", (("set a alarm",), ("set the alarm",))),
        ("colou?r", (("colo", "r"),)),
        ("ab+c", (("ab", "c"),)),
        ("xab{0,3}cd", (("xa", "cd"),)),
        ("ab{2}?c", (("ab", "c"),)),
        (r"github\.com/[A-Za-z\]-]+x", (("github.com/", "x"),)),
        (r"\Qa.b|c\Ed", (("a.bc"[:3] + "|cd",),)),
        (r"\x41\x{42}\pL\p{Han}\d", (("ab",),)),
        ("a(?i)*bc", (("bc",),)),
        ("(?i:News)(?P<n>x)", (("newsx",),)),
        (".*ab", (("ab",),)),
        ("[[:alpha:]]+ab", (("ab",),)),
        ("", ()),
    ],
)
def test_each_choice_has_the_texts_that_its_matches_have(
    pattern: str, expected: tuple[tuple[str, ...], ...]
) -> None:
    compile_pattern(pattern)
    assert required(pattern) == expected


def test_a_pattern_of_very_many_choices_has_few() -> None:
    assert len(required("(ab|cd)" * 100)) <= MAX_CHOICES
    assert required("(" + "|".join(["ab", "cd"] * 40) + ")") == ()


def test_a_deeply_nested_pattern_is_read() -> None:
    assert required("(" * 255 + "ab" + ")" * 255) == (("ab",),)


SYNTAX = ["(", ")", "|", "*", "+", "?", ".", "[ab]", "[^]]", "(?:", "(?i)", "{2}", "{0,1}", r"\b"]
PIECES = st.sampled_from(
    [*SYNTAX, r"\d", r"\.", r"\Qa|", r"\E", "^", "$", r"\pN", "a", "b", "note", "记", " ", "É"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.text("ab note记É.5ß", max_size=20))
def test_a_message_that_matches_has_the_texts_that_are_required(pattern: str, message: str) -> None:
    with contextlib.suppress(re2.error):
        if compile_pattern(f"(?i){pattern}").search(message) is not None:
            known = message.casefold()
            choices_ = required(pattern)
            assert not choices_ or any(all(run in known for run in runs) for runs in choices_)


@pytest.mark.parametrize(
    "pattern",
    ["weather|.*", "x", " ", r"\d+ \w+", "", "a|note", "\\", r"\012", r"\n", r"\x{110000}"],
)
def test_a_pattern_with_a_choice_of_less_than_two_letters_requires_nothing(pattern: str) -> None:
    assert required(pattern) == ()


@given(st.lists(PIECES | st.sampled_from([r"\pL", "{0,100}"]), max_size=12).map("".join))
def test_the_size_of_a_pattern_is_about_that_of_its_program(pattern: str) -> None:
    assert size(pattern) >= 0
    with contextlib.suppress(re2.error):
        assert compile_pattern(f"(?i){pattern}").programsize <= 10 * size(pattern) + 20


@given(st.text(max_size=64))
def test_any_text_is_read_without_an_error(pattern: str) -> None:
    assert isinstance(required(pattern), tuple)
