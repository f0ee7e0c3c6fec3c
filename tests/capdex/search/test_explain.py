"""Reasons of hits (capdex/search/explain.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.search.document import FIELDS, Document, ToolText
from capdex.search.explain import MAX_SNIPPET_CHARS, explain, wanted_tokens

WEATHER = Document(
    "weather-now",
    {
        "title": "Weather",
        "description": "Tells the weather.\nForecasts of a week for any city on earth.",
        "triggers": "will it rain\n明日の天気を教えて",
    },
    (
        ToolText("get_forecast", "The forecast of one city", "city"),
        ToolText("getWind", "Wind speed"),
    ),
)


def shown(query: str, document: Document = WEATHER) -> str | None:
    snippet = explain(document, wanted_tokens(query)).snippet
    if snippet is None:
        return None
    text, marked, at = snippet.text, "", 0
    for begin, end in snippet.highlights:
        marked += f"{text[at:begin]}[{text[begin:end]}]"
        at = end
    return f"{snippet.field}: {marked}{text[at:]}"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("weather", "description: Tells the [weather]."),
        ("forecasting cities", "description: [Forecasts] of a week for any [city] on earth."),
        ("天気", "triggers: 明日の[天気]を教えて"),
        ("明日の天気", "triggers: [明日の天気]を教えて"),
        ("speeds of the wind", "tools: [Wind] [speed]"),
        ("bicycle", None),
        ("!?", None),
    ],
)
def test_a_snippet_is_the_line_with_most_words(query: str, text: str | None) -> None:
    assert shown(query) == text


def test_the_tool_with_most_words_is_named() -> None:
    assert explain(WEATHER, wanted_tokens("wind forecast in city")).tool == "get_forecast"
    assert explain(WEATHER, wanted_tokens("get wind")).tool == "getWind"
    assert explain(WEATHER, wanted_tokens("bicycle")).tool is None


def test_a_long_line_is_cut_around_its_words() -> None:
    line = "The beginning of a long line " * 20 + "has a needle inside" + " and goes on" * 30
    text = shown("needle", Document("x", {"description": line}))
    assert text is not None
    assert text.startswith("description: …")
    assert text.endswith("…")
    assert "[needle] inside" in text
    assert len(text) < MAX_SNIPPET_CHARS + 20


@given(st.dictionaries(st.sampled_from(FIELDS), st.text()), st.text(), st.text())
def test_highlights_are_spans_of_the_text_in_order(
    fields: dict[str, str], tool: str, query: str
) -> None:
    document = Document("a-name", fields, (ToolText("t", tool),))
    snippet = explain(document, wanted_tokens(query + " " + " ".join(fields.values()))).snippet
    ends = [0]
    for begin, end in snippet.highlights if snippet else ():
        assert ends[-1] <= begin < end <= len(snippet.text if snippet else "")
        ends.append(end)
