"""The report of an import: rows that are safe to show, each once, in a bounded number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_publisher.authoring.imports.report import (
    MAX_CHARS,
    MAX_NOTES,
    Note,
    name_of,
    tidied,
    tool_name_of,
)

words = st.text(max_size=400)


@given(words, words, words)
def test_any_row_becomes_one_line_of_bounded_text(source: str, before: str, after: str) -> None:
    note = Note(source, "x", "changed", before, after)
    [row] = tidied([note, note])
    for text in row.to_json().values():
        assert len(text) <= MAX_CHARS
        assert "\n" not in text
        assert "\x1b" not in text


def test_rows_over_the_bound_are_counted() -> None:
    rows = tidied(Note("a", str(i), "left out") for i in range(MAX_NOTES + 2))
    assert len(rows) == MAX_NOTES + 1
    assert rows[-1].before == "2 more rows"


def test_a_row_is_a_sentence_of_an_error() -> None:
    note = Note("getRain", "cookie session", "refused", "required", "a package sends no cookies")
    assert str(note) == ("getRain: cookie session (required) refused: a package sends no cookies")


@pytest.mark.parametrize(
    ("title", "name", "tool"),
    [
        ("Münchner Wetter", "munchner-wetter", "Munchner_Wetter"),
        ("Größe", "grosse", "Gro_e"),
        ("Météo à Québec", "meteo-a-quebec", "Meteo_a_Quebec"),
        ("Ｒａｉｎ １", "rain-1", "Rain_1"),
        ("天気", "", "tool"),
    ],
)
def test_a_name_keeps_its_letters_without_their_accents(title: str, name: str, tool: str) -> None:
    assert (name_of(title), tool_name_of(title, ())) == (name, tool)
