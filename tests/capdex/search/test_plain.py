"""The engine in plain Python, beside the one that nodes use."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from capdex.errors import InvalidInput
from capdex.search.document import Document, ToolText
from capdex.search.engine import Engine
from capdex.search.plain import PlainEngine
from capdex.search.query import MAX_QUERY_CHARS

WORDS = [
    *("weather", "forecast", "forecasts", "temperature", "converter", "converting", "notes"),
    *("reading", "translate", "translation", "currency", "exchange", "holidays", "calendar"),
    *("meeting", "planner", "getWeather", "天気", "予報", "笔记", "Überraschung", "é"),
]
MISSPELT = ("wether", "forcast", "temperatrue", "tranlsation", "curency", "hollidays", "meting")


def document(name: str, *texts: str) -> Document:
    fields = dict(zip(("name", "description", "tags"), texts, strict=False))
    return Document(name, fields)


def with_tools(name: str, random_: random.Random) -> Document:
    texts = (" ".join(random_.choices(WORDS, k=random_.randrange(6))) for _ in range(12))
    of_fields = [next(texts) for _ in range(3)]
    tools = tuple(
        ToolText(*(next(texts) for _ in range(3))) for _ in range(random_.choice((0, 0, 1, 2, 3)))
    )
    return replace(document(name, *of_fields), tools=tools)


def engine_of(*documents: Document) -> PlainEngine:
    engine = PlainEngine()
    for one in documents:
        engine.put(one)
    return engine


@pytest.mark.parametrize("seed", range(40))
def test_it_finds_what_the_engine_of_a_node_finds_in_its_order(seed: int) -> None:
    random_ = random.Random(seed)  # noqa: S311 - data of a test
    plain = PlainEngine()
    kept: dict[str, Document] = {}
    for _ in range(random_.randrange(1, 60)):
        name = f"did:nuwa:cap:c{random_.randrange(40)}"
        if random_.random() < 0.2:
            plain.remove(name)
            kept.pop(name, None)
        else:
            kept[name] = with_tools(name, random_)
            plain.put(kept[name])
    whole = Engine().add(kept.values())
    for _ in range(20):
        asked = " ".join(random_.choices((*WORDS, *MISSPELT), k=random_.randrange(1, 5)))
        asked = asked[: random_.randrange(1, len(asked) + 1)].strip()
        page, found = whole.page(whole.scores(asked), limit=100), plain.search(asked, 100)
        scores = {hit.name: hit.score for hit in page.hits}
        assert sorted(found.names) == sorted(scores), asked
        # The engine of nodes rounds scores to 32 bits.
        assert all(scores[a] >= scores[b] * (1 - 1e-5) for a, b in pairwise(found.names)), asked
        assert found.corrected == page.corrected, asked


def test_equal_scores_are_in_order_of_names_and_limited() -> None:
    engine = engine_of(*(document(name, "", "the weather") for name in "cab"))
    assert engine.search("weather", 10).names == ["a", "b", "c"]
    assert engine.search("weather", 2).names == ["a", "b"]


def test_a_document_is_replaced_and_removed() -> None:
    engine = engine_of(document("a", "", "weather"), document("b", "", "currency"))
    engine.put(document("a", "", "notes"))
    assert engine.search("weather", 10).names == []
    assert engine.search("note", 10).names == ["a"]
    engine.remove("a")
    engine.remove("unknown")
    assert engine.search("note", 10).names == []
    assert engine.search("currency", 10).names == ["b"]


def test_the_word_that_a_query_ends_in_may_be_begun() -> None:
    engine = engine_of(document("a", "", "calendar"), document("b", "", "a cal"))
    assert engine.search("calen", 10).names == ["a"]
    assert engine.search("cal", 10).names == ["b", "a"]
    assert engine.search("calen ", 10).names == []
    assert engine.search("ca", 10).names == []


def test_a_misspelt_word_is_corrected_if_few_documents_match() -> None:
    engine = engine_of(document("a", "", "weather"), document("b", "", "translation of texts"))
    found = engine.search("wether", 10)
    assert (found.names, dict(found.corrected)) == (["a"], {"wether": ("weather",)})
    assert engine.search("tranlsatoin", 10).names == ["b"]
    assert engine.search("wthr", 10).names == []  # too short to tell


def test_a_query_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput):
        PlainEngine().search("a" * (MAX_QUERY_CHARS + 1), 10)
