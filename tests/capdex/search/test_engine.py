"""Searches of an engine (capdex/search/engine.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capdex.errors import InvalidInput
from capdex.search.document import Document, ToolText
from capdex.search.engine import Engine, Filters
from capdex.search.ranked import After, RankedHit

WEATHER = Document(
    "weather-now",
    {"title": "Weather now", "description": "Forecasts for any city."},
    (ToolText("getWeather", "The weather of a city", "city units"),),
    (("tag", "climate"), ("language", "en")),
    {"published": 200.0},
)
NOTES = Document(
    "笔记-notes",
    {"title": "笔记", "description": "帮我记录笔记"},
    facets=(("tag", "notes"), ("language", "zh")),
    numbers={"published": 100.0, "context_window": 8000.0},
)
CITY = Document("city-guide", {"description": "What to see in a city"}, facets=(("tag", "city"),))
ENGINE = Engine().add([WEATHER, NOTES, CITY])


def hits(query: str) -> list[RankedHit]:
    return ENGINE.page(ENGINE.scores(query)).hits


def names(query: str, filters: Filters | None = None, engine: Engine = ENGINE) -> list[str]:
    return [hit.name for hit in engine.page(engine.scores(query), filters=filters).hits]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("forecast of the weather", ["weather-now"]),
        ("笔记", ["笔记-notes"]),
        ("see a city", ["city-guide", "weather-now"]),
        ("get_weather", ["weather-now"]),
        ("did:nuwa:cap:city-guide@1.0.0", ["city-guide", "weather-now"]),
        ("", ["city-guide", "weather-now", "笔记-notes"]),
        ("nothing-like-it", []),
        ("!?", []),
    ],
)
def test_a_query_finds_the_documents_with_its_words(query: str, found: list[str]) -> None:
    assert names(query) == found


STUFFED = "weather in a city " * 30


@pytest.mark.parametrize(
    "stuffed",
    [
        Document("best-thing", {"description": STUFFED}),
        Document("best-thing", {"description": "The best thing.", "tags": STUFFED}),
        Document("best-thing", {"description": "The best thing.", "triggers": STUFFED}),
        Document("best-thing", tools=(ToolText("best", STUFFED),)),
        Document("best-thing", tools=tuple(ToolText(f"best_{n}", STUFFED) for n in range(30))),
        replace(WEATHER, name="weather-best", fields={**WEATHER.fields, "tags": STUFFED}),
    ],
    ids=["description", "tags", "triggers", "tool", "thirty tools", "copy"],
)
def test_a_document_that_repeats_the_query_stands_below_one_that_answers_it(
    stuffed: Document,
) -> None:
    engine = Engine().add([WEATHER, NOTES, CITY, stuffed])
    assert names("weather in a city", engine=engine)[0] == "weather-now"


@pytest.mark.parametrize("changed", ["grown", "shrunk"])
def test_a_page_goes_on_after_the_last_hit_whatever_came_or_went_since(changed: str) -> None:
    some = [Document(f"rain-{n}", {"description": "rain " + "and sun " * n}) for n in range(8)]
    others = [Document(f"rain-other-{n}", {"description": "rain " * 9}) for n in range(8)]
    engines = [Engine().add(some), Engine().add(some + others)]
    before, now = engines if changed == "grown" else reversed(engines)
    whole = names("rain", engine=before)
    first = before.page(before.scores("rain"), limit=whole.index("rain-3") + 1)
    after = now.page(now.scores("rain"), after=first.after)
    assert [hit.name for hit in after.hits] == ["rain-4", "rain-5", "rain-6", "rain-7"]


def test_what_a_query_names_exactly_comes_first() -> None:
    found = [(hit.name, hit.lead) for hit in hits("City Guide")]
    assert found == [("city-guide", 2), ("weather-now", 0)]
    assert [hit.lead for hit in hits("get weather")] == [1]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(any_of={"tag": ("city", "climate")}), ["city-guide", "weather-now"]),
        (Filters(none_of={"tag": ("city", "climate")}), ["笔记-notes"]),
        (Filters(any_of={"language": ("en",)}, none_of={"tag": ("city",)}), ["weather-now"]),
        (Filters(at_least={"published": 150}), ["weather-now"]),
        (Filters(at_least={"context_window": 8000}), ["笔记-notes"]),
        (Filters(at_least={"unknown": 1}), []),
        (Filters(any_of={"tag": ("unknown",)}), []),
    ],
)
def test_filters_hold_of_every_hit(filters: Filters, found: list[str]) -> None:
    assert names("", filters) == found


def test_removed_documents_are_not_found_and_replaced_ones_once() -> None:
    engine = ENGINE.without(["city-guide", "unknown"])
    assert names("city", engine=engine) == ["weather-now"]
    engine = engine.add([Document("weather-now", {"description": "Tides"})])
    assert names("city", engine=engine) == []
    assert names("tides", engine=engine) == ["weather-now"]
    assert names("city") == ["city-guide", "weather-now"]  # the first engine is unchanged
    assert engine.packages == 2


def test_pages_follow_each_other() -> None:
    found: list[str] = []
    after: After | None = None
    for _ in range(3):
        page = ENGINE.page(ENGINE.scores(""), limit=1, after=after)
        found += [hit.name for hit in page.hits]
        assert page.total == 3
        after = page.after
    assert found == ["city-guide", "weather-now", "笔记-notes"]
    assert after is None


@pytest.mark.parametrize(("query", "limit"), [("x" * 4097, 1), ("x", 0), ("x", 1001)])
def test_a_search_out_of_bounds_is_refused(query: str, limit: int) -> None:
    with pytest.raises(InvalidInput):
        ENGINE.page(ENGINE.scores(query), limit=limit)


def test_scores_are_by_slot_of_the_engine() -> None:
    engine = ENGINE.without(["city-guide"]).add([Document("city-walk")])
    scores = engine.scores("city")
    found = [engine.name(int(slot)) for slot in scores.values.nonzero()[0]]
    assert found == ["weather-now", "city-walk"]
    assert len(scores.values) == engine.slots == 4


def test_facets_count_the_matches_by_value() -> None:
    scores = ENGINE.scores("")
    found = ENGINE.facets(scores, ("language", "tag", "unknown"), limit=2)
    assert found["language"] == [("en", 1), ("zh", 1)]
    assert found["tag"] == [("city", 1), ("climate", 1)]
    assert found["unknown"] == []
    only = Filters(at_least={"published": 150})
    assert ENGINE.facets(scores, ("tag",), filters=only, limit=2) == {"tag": [("climate", 1)]}
    several = ENGINE.without(["city-guide"]).add(
        [replace(NOTES, name="a"), replace(NOTES, name="b")]
    )
    assert several.facets(several.scores("笔记"), ("tag",), limit=2) == {"tag": [("notes", 3)]}


def test_a_hit_names_the_fields_with_its_words() -> None:
    assert hits("the weather now")[0].fields == ("name", "title", "tools")
    assert hits("get_weather")[0].fields == ("name", "title", "tools")
    assert hits("")[0].fields == ()


def test_a_package_that_needs_less_context_is_kept() -> None:
    assert names("", Filters(at_most={"context_window": 8000})) == ["笔记-notes"]
    assert names("", Filters(at_most={"context_window": 7999})) == []
