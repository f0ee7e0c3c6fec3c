"""Search by meaning (capdex/search/semantic.py, encoder.py, segments/vectors.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from capdex.search.document import Document, ToolText
from capdex.search.encoder import SentenceEncoder
from capdex.search.engine import Engine, Filters
from capdex.search.segments.merging import merge
from capdex.search.segments.stored import from_bytes, to_bytes
from capdex.search.segments.vectors import Vectors, quantise
from capdex.search.semantic import (
    MAX_BEGINNING_CHARS,
    MAX_TEXT_CHARS,
    encode_documents,
    encode_query,
    fuse,
    texts_of,
)

WEATHER = Document("weather", {"description": "Shows the weather forecast of any city"})
NOTES = Document("notes", {"description": "Keeps short texts that you dictate", "tags": "memo"})
MONEY = Document("money", {"description": "Converts an amount from one currency to another"})
RAIN = Document("tianqi", {"title": "天气预报", "description": "查询任何城市的天气"})
ALL = (WEATHER, NOTES, MONEY, RAIN)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder()


def encoded(encoder: SentenceEncoder, documents: Sequence[Document] = ALL) -> Engine:
    return Engine().add(documents).with_vectors(encode_documents(encoder, documents))


def names(
    engine: Engine, encoder: SentenceEncoder, query: str, filters: Filters | None = None
) -> list[str]:
    scores = engine.fuse(engine.scores(query), encode_query(encoder, query), filters)
    return [hit.name for hit in engine.page(scores, filters=filters, limit=10).hits]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("will it be sunny tomorrow?", "weather"),
        ("how many euros are ten dollars", "money"),
        ("我想把美元换成欧元", "money"),
        ("write down what I say", "notes"),
        ("¿qué tiempo hará mañana?", "weather"),
    ],
)
def test_other_words_and_other_languages_find_the_meaning(
    encoder: SentenceEncoder, query: str, found: str
) -> None:
    assert names(encoded(encoder).without(["tianqi"]), encoder, query)[0] == found


def test_an_english_question_finds_a_chinese_package(encoder: SentenceEncoder) -> None:
    engine = encoded(encoder).without(["weather"])
    assert names(engine, encoder, "what will the weather be?")[0] == "tianqi"


def test_an_exact_name_leads_whatever_the_meaning(encoder: SentenceEncoder) -> None:
    forecast = Document("forecast", {"description": "Predicts how much a shop will sell"})
    assert names(encoded(encoder, [*ALL, forecast]), encoder, "forecast")[0] == "forecast"


def test_meaning_weighs_less_beside_words_that_match_well(encoder: SentenceEncoder) -> None:
    others = [Document(f"other-{n}", {"description": "Counts apples"}) for n in range(60)]
    engine = encoded(encoder, [*ALL, *others])

    def weight(query: str) -> float:
        scores = engine.scores(query)
        fused = engine.fuse(scores, encode_query(encoder, query))
        return float(((fused.values - scores.values)[fused.near] / fused.similarities).mean())

    known = weight("shows the weather forecast of any city")
    assert 15 < known < weight("will thunderstorms soak everybody outside") < 35


def test_meaning_weighs_more_amid_more_packages_whose_words_score_higher(
    encoder: SentenceEncoder,
) -> None:
    engine = encoded(encoder, ALL)
    scores, vector = engine.scores("thunderstorms"), encode_query(encoder, "thunderstorms")
    few, also_few, many = (
        fuse(engine.parts, documents, scores, vector, [None]).values
        for documents in (4, 4_000, 1_000_000)
    )
    assert (few == also_few).all()
    assert (few <= many).all()
    assert 1.5 < many.max() / few.max() < 2


def test_the_map_of_questions_changes_no_vector_of_a_package() -> None:
    one, other = SentenceEncoder(), SentenceEncoder()
    question = encode_query(one, "how many euros are ten dollars")
    vars(other)["question_map"] = np.eye(other.dimension, dtype=np.float32)
    assert not np.array_equal(encode_query(other, "how many euros are ten dollars"), question)
    mapped, unmapped = encode_documents(one, ALL), encode_documents(other, ALL)
    assert all(np.array_equal(mapped[x.name], unmapped[x.name]) for x in ALL)


def test_what_a_long_package_is_called_weighs_beside_all_its_tools(
    encoder: SentenceEncoder,
) -> None:
    parts = ("mixer", "oven", "knife", "fridge", "pan", "scale", "timer", "grill", "kettle", "sink")
    tools = tuple(ToolText(f"clean_{x}", f"Says how a dirty {x} is cleaned") for x in parts)
    long = Document("weather-kitchen", {"description": "Weather forecast"}, tools)
    vector = encode_documents(encoder, [long])["weather-kitchen"].astype(int)
    text_alone = quantise(encoder.encode([texts_of(long)[0]]))[0].astype(int)
    question = encode_query(encoder, "will it rain tomorrow?").astype(int)
    assert question @ vector > question @ text_alone


def test_no_text_that_is_encoded_exceeds_its_bound() -> None:
    tools = tuple(ToolText("name " * 500, "does " * 500, "takes " * 500) for _ in range(9))
    fields = dict.fromkeys(("title", "description", "tags", "triggers"), "word " * 5_000)
    whole, beginning, called = map(len, texts_of(Document("long", fields, tools)))
    assert (whole, beginning, called) == (MAX_TEXT_CHARS, MAX_BEGINNING_CHARS, MAX_BEGINNING_CHARS)


def test_only_documents_that_fulfil_the_filters_are_found(encoder: SentenceEncoder) -> None:
    filters = Filters({"name": ("money", "notes")})
    assert "weather" not in names(encoded(encoder), encoder, "sunny tomorrow", filters)


def test_a_hit_tells_its_similarity_if_that_counts(encoder: SentenceEncoder) -> None:
    engine = encoded(encoder)
    scores = engine.scores("weather")
    assert engine.page(scores).hits[0].similarity is None
    hits = engine.page(engine.fuse(scores, encode_query(encoder, "weather"))).hits
    assert hits[0].name == "weather"
    assert 0 < (hits[0].similarity or 0) <= 1


def test_documents_without_a_vector_are_named(encoder: SentenceEncoder) -> None:
    engine = encoded(encoder).add([Document("new", {"description": "Added later"})])
    assert engine.unencoded(5) == ["new"]
    assert Engine().add(ALL).unencoded(2) == ["money", "notes"]
    assert engine.without(["new"]).unencoded(5) == []
    assert engine.encoded
    assert not engine.without_vectors().encoded


def vector(seed: int) -> Any:
    return quantise(np.random.default_rng(seed).normal(size=(1, 64)))[0]


documents = st.builds(
    Document,
    st.sampled_from("abcdef"),
    st.fixed_dictionaries({"description": st.sampled_from(["apple", "pear tree", "apple pear"])}),
)
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(documents, max_size=3)),
    st.tuples(st.just("encode"), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9))),
    st.tuples(st.just("remove"), st.lists(st.sampled_from("abcdef"), max_size=2)),
    st.tuples(st.just("merge"), st.none()),
    st.tuples(st.just("reread"), st.none()),
)


@given(st.lists(steps, max_size=8), st.integers(0, 9), st.sampled_from(["apple", "tree", "zzz"]))
def test_any_history_gives_the_scores_of_its_live_documents(
    history: list[tuple[str, Any]], seed: int, query: str
) -> None:
    engine, live, vectors = Engine(), dict[str, Document](), dict[str, Any]()
    for step, some in history:
        match step:
            case "add":
                engine = engine.add(some)
                for document in some:
                    live[document.name] = document
                    vectors.pop(document.name, None)
            case "encode":
                given_ = {name: vector(number) for name, number in some.items()}
                engine = engine.with_vectors(given_)
                vectors |= {name: x for name, x in given_.items() if name in live}
            case "remove":
                engine = engine.without(some)
                for name in some:
                    live.pop(name, None)
                    vectors.pop(name, None)
            case "merge":
                sources = [(part.segment, part.live) for part in engine.parts]
                engine = engine.merged(sources, merge(sources))
            case _:
                parts = [(from_bytes(to_bytes(x.segment)), x.live) for x in engine.parts]
                engine = Engine(parts)
    fresh = Engine().add(live.values()).with_vectors(vectors)
    mine = engine.page(engine.fuse(engine.scores(query), vector(seed)))
    assert mine == fresh.page(fresh.fuse(fresh.scores(query), vector(seed)))
    assert sorted(engine.unencoded(10)) == sorted(live.keys() - vectors.keys())
    for hit in mine.hits:
        if hit.name in vectors and hit.similarity is not None:
            a, b = vectors[hit.name].astype(float), vector(seed).astype(float)
            cosine = a @ b / math.sqrt((a @ a) * (b @ b))
            assert hit.similarity == pytest.approx(cosine, abs=1e-5)


@given(arrays.arrays(np.float32, (3, 64)))
def test_any_numbers_are_quantised(given_: Any) -> None:
    found = quantise(given_)
    assert found.dtype == np.int8
    assert found.shape == (3, 64)
    exact = given_.astype(float)
    for mine, row in zip(found.astype(float), exact, strict=True):
        with np.errstate(all="ignore"):
            length = math.sqrt(float(row @ row)) if np.isfinite(row).all() else 0.0
        if length == 0 or not math.isfinite(length):
            assert not mine.any()
        else:
            expected = np.clip(row / length * 508, -127, 127)
            assert np.abs(mine - expected).max() <= 0.51


@given(arrays.arrays(np.int8, (5, 128)), arrays.arrays(np.int8, 128))
def test_distances_count_the_signs_that_differ(rows: Any, query: Any) -> None:
    expected = ((rows > 0) != (query > 0)).sum(axis=1)
    assert Vectors(rows).distances(query).tolist() == expected.tolist()
