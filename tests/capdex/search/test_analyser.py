"""Words to search by (capdex/search/analyser.py)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.search.analyser import MAX_TOKEN_CHARS, WRITTEN, document_terms, query_words


def document_tokens(text: str) -> list[str]:
    return document_terms(text)[0]


def query_tokens(text: str) -> list[str]:
    return list(dict.fromkeys(token for token, _ in query_words(text)[0]))


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("weather", "Weather forecasts"),
        ("forecasting", "the forecast"),
        ("cafe", "Café"),
        ("ｆｕｌｌ", "full"),
        ("笔记", "帮我记录笔记"),
        ("会議", "会議を予約する"),
        ("회의", "회의를 예약하다"),
        ("笔", "记笔记"),
        ("記", "記"),
        ("อากาศ", "สภาพอากาศ"),
        ("मौसम", "आज का मौसम"),
        ("forecast", "getForecast"),
        ("weather", "get_weather"),
        ("iphone", "for the iPhone"),
        ("iPhone", "an iphone"),
        ("straße", "STRASSE"),
        ("c++ 17", "c 17"),
        ("the", "the who"),
        ("погода", "Прогноз погоды погода"),
        ("🎉", "party 🎉"),
        ("👍🏽", "👍 ok"),
        ("שלום", "שָׁלוֹם עולם"),
    ],
)
def test_a_query_shares_a_token_with_the_text_it_means(query: str, document: str) -> None:
    assert set(query_tokens(query)) & set(document_tokens(document))


@pytest.mark.parametrize(
    ("query", "last"), [("get weath", "weath"), ("weath*", "weath"), ("weath ", ""), ("*", "")]
)
def test_the_word_that_a_query_ends_in_may_have_an_asterisk_after_it(query: str, last: str) -> None:
    assert query_words(query)[1] == last


def test_a_query_of_two_characters_asks_for_them_together() -> None:
    assert query_tokens("笔记") == ["笔记"]


def test_stopwords_are_dropped_unless_nothing_else_is_asked() -> None:
    assert query_tokens("what is the weather in Paris") == ["weather", "pari"]
    assert query_tokens("to be or not to be") == ["to", "be", "or", "not"]


@pytest.mark.parametrize("nothing", ["", " ", "\0", "!?", "…", "\u200d", '"" OR *', "\ud800"])
def test_text_without_words_has_no_tokens(nothing: str) -> None:
    assert [x for x in query_tokens(nothing) if x != "or"] == []


@given(st.text(st.characters(), max_size=200))
def test_tokens_are_whole_words(text: str) -> None:
    tokens = document_tokens(text) + query_tokens(text)
    for token in tokens:
        assert 0 < len(token) <= MAX_TOKEN_CHARS + 2
        assert not re.search(r"[\s\x00'\"\\]", token)
        assert all(x.isalnum() for x in token if x.isascii())
        token.encode("utf-8")


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_ascii_is_read_as_any_other_text(text: str) -> None:
    tokens, written = document_terms(text)
    others, more = document_terms(text + " é")
    assert (others, more) == ([*tokens, "e"], written)


def test_a_word_as_written_is_a_term_beside_its_stem() -> None:
    assert document_terms("Forecasting for a city") == (
        ["forecast", "for", "a", "citi"],
        ["forecasting" + WRITTEN, "city" + WRITTEN],
    )


@given(st.text(st.characters(codec="utf-8"), max_size=100))
def test_a_text_is_found_by_itself(text: str) -> None:
    assert set(query_tokens(text)) <= set(document_tokens(text))
