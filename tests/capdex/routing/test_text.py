"""Text as triggers see it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.routing.text import (
    MAX_MESSAGE_BYTES,
    bounded,
    fold,
    has_word,
    is_negated,
    views,
    width,
)


@pytest.mark.parametrize(
    ("message", "word", "there"),
    [
        ("show the weather", "weather", True),
        ("weather", "weather", True),
        ("a weathervane", "weather", False),
        ("weathervane, weather", "weather", True),
        ("(weather)", "weather", True),
        ("weather_now", "weather", False),
        ("été chaud", "t", False),
        ("帮我记账吧", "记账", True),
        ("查weather吧", "weather", True),
        ("날씨는 어때", "날씨", True),
        ("c++ and c", "c++", True),
        ("WEATHER", "weather", True),
        ("ｗｅａｔｈｅｒ", "weather", True),
        ("wеather", "weather", False),  # the first e is Cyrillic
        ("die STRASSE", "straße", True),
        ("", "", False),
    ],
)
def test_a_keyword_is_a_whole_word_except_where_words_have_no_ends(
    message: str, word: str, there: bool
) -> None:
    assert has_word(fold(message), fold(word)) is there


@pytest.mark.parametrize(
    ("message", "negated"),
    [
        ("do not show the weather", True),
        ("don’t show the weather", True),
        ("the weather, not the news", False),
        ("no, show the weather", False),
        ("will the weather be fine or not?", False),
        ("why not show the weather", False),
        ("zeig mir das weather nicht", True),
        ("不要weather", True),
        ("a knotted weather rope", False),
    ],
)
def test_a_negation_counts_in_the_clause_of_the_hit(message: str, negated: bool) -> None:
    start = message.index("weather")
    assert is_negated(fold(message), start, start + len("weather")) is negated


def test_an_ideograph_is_as_wide_as_two_letters() -> None:
    assert (width("note"), width("记笔记"), width("")) == (4, 6, 0)


def test_a_message_that_folding_changes_is_searched_twice() -> None:
    assert views("Straße", fold("Straße")) == ("Straße".encode(), b"strasse")
    assert views("NOTE", fold("NOTE")) == (b"NOTE",)
    assert views("记账", fold("记账")) == ("记账".encode(),)


@given(st.text(max_size=200), st.integers(0, 200))
def test_text_is_bounded_before_and_after_folding(text: str, times: int) -> None:
    cut = bounded(text * times)
    assert (text * times).startswith(cut)
    assert len(cut.encode()) <= MAX_MESSAGE_BYTES
    assert len(fold(cut).encode()) <= MAX_MESSAGE_BYTES


def test_a_character_that_folds_to_eighteen_does_not_grow_a_message() -> None:
    assert len(unicodedata.normalize("NFKC", "ﷺ")) == 18
    assert len(fold(bounded("ﷺ" * 10_000)).encode()) <= MAX_MESSAGE_BYTES


def test_half_of_a_surrogate_pair_is_searched_as_a_question_mark() -> None:
    assert views("a\ud800", fold("a\ud800"))[0] == b"a?"
