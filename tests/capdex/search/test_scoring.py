"""Hits against plain BM25F, and any history of an engine against its live documents.

`search` is the oracle: the formula of capdex/search/weights.py in plain Python.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex.search.analyser import document_terms, squash
from capdex.search.document import FIELDS, TOOLS, VOTES, Document, ToolText
from capdex.search.engine import Engine, Filters
from capdex.search.query import Query
from capdex.search.ranked import RankedHit, RankedPage
from capdex.search.segments.merging import merge
from capdex.search.segments.segment import WordSegment, prior
from capdex.search.segments.stored import from_bytes, to_bytes


@dataclass(frozen=True)
class Weighed:
    whole: dict[str, np.float32]
    tools: list[dict[str, np.float32]]


def count(texts: Iterable[tuple[str, float]]) -> tuple[dict[str, float], float]:
    counts: dict[str, float] = {}
    length = 0.0
    for text, weight in texts:
        tokens, written = document_terms(text)
        length += weight * len(tokens)
        for term, times in Counter(tokens + written).items():
            counts[term] = counts.get(term, 0.0) + weight * min(times, 2)
    return counts, length


def shares(counts: Mapping[str, float], length: float) -> dict[str, np.float32]:
    return {
        term: np.float32(count / (count + 2.0 * (length / 40.0) ** 0.6))
        for term, count in ((x, min(y, 10.0)) for x, y in counts.items())
    }


def of_tool(tool: ToolText) -> tuple[dict[str, float], float]:
    return count([(tool.name, 2.5), (tool.description, 1), (tool.parameters, 1)])


def weigh(document: Document) -> Weighed:
    fields = {"name": document.name} | dict(document.fields)
    counts, length = count(
        (fields.get(x, ""), 2.5 if x in ("name", "title") else 1.0) for x in FIELDS
    )
    for of_one, more in map(of_tool, document.tools):
        length += more
        for term, number in of_one.items():
            counts[term] = counts.get(term, 0.0) + number
    several = document.tools if len(document.tools) > 1 else ()
    return Weighed(shares(counts, length), [shares(*of_tool(tool)) for tool in several])


def fulfils(document: Document, filters: Filters) -> bool:
    facets = {*document.facets, ("name", document.name)}
    return (
        all(any((k, v) in facets for v in some) for k, some in filters.any_of.items())
        and not any((k, v) in facets for k, some in filters.none_of.items() for v in some)
        and all(document.numbers.get(k, -math.inf) >= x for k, x in filters.at_least.items())
    )


def search(
    documents: Iterable[Document], text: str, filters: Filters | None = None
) -> list[RankedHit]:
    """All hits in order, without corrections of misspelt words."""
    documents = list(documents)
    weighed = [weigh(document) for document in documents]
    query = Query.read(text)
    terms: dict[str, float] = {}
    for word in query.words:
        for term, share in word.shares.items():
            terms[term] = max(share, terms.get(term, 0.0))
    begun = [
        {x for x in w.whole if query.beginning and x.startswith(query.beginning)} for w in weighed
    ]
    hits = []
    for document, impacts, longer in zip(documents, weighed, begun, strict=True):
        if filters is not None and not fulfils(document, filters):
            continue
        scores = []
        for part in (impacts.whole, *impacts.tools):
            score = np.float32(0)
            for term, share in terms.items():
                having = sum(term in other.whole for other in weighed)
                if having and term in part:
                    score += part[term] * np.float32(share * idf(len(documents), having))
            if any(begun):
                best = max([np.float32(0)] + [part[x] for x in longer if x in part])
                having = sum(map(bool, begun))
                score += best * np.float32(0.3 * idf(len(documents), having))
            scores.append(score)
        whole = max([scores[0], *(x * np.float32(0.9) for x in scores[1:])])
        if not text.strip():
            whole = np.float32(1)
        votes = document.numbers.get("votes", 0.0)
        whole *= np.float32(1 + 0.05 * votes / (10 + abs(votes)))
        lead = 0
        if text.strip():
            if document.name == query.name:
                lead = 2
            elif query.squashed and query.squashed in {squash(x.name) for x in document.tools}:
                lead = 1
        if whole > 0 or lead:
            wanted = {*terms, *longer} if text.strip() else set()
            hits.append(RankedHit(document.name, float(whole), lead, fields_with(document, wanted)))
    return sorted(hits, key=lambda hit: (-hit.lead, -hit.score, hit.name))


def fields_with(document: Document, wanted: set[str]) -> tuple[str, ...]:
    fields = {"name": document.name} | dict(document.fields)
    of_tools = [f"{x.name} {x.description} {x.parameters}" for x in document.tools]
    texts = {x: fields.get(x, "") for x in FIELDS} | {TOOLS: "\n".join(of_tools)}
    found = {
        x: {term for some in document_terms(text) for term in some} for x, text in texts.items()
    }
    return tuple(x for x, having in found.items() if having & wanted)


def idf(documents: int, having: int) -> float:
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


WORDS = [
    *("weather", "weathered", "forecast", "forecasting", "forecasts", "city", "cities", "note"),
    *(
        "notes",
        "笔记",
        "会議",
        "회의",
        "café",
        "🎉",
        "getWeather",
        "the",
        "translate",
        "translation",
    ),
]
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
tools = st.builds(ToolText, st.sampled_from(WORDS), texts, texts)
facets = st.tuples(st.sampled_from(["tag", "language"]), st.sampled_from(["a", "b", "ä"]))
numbers = st.dictionaries(
    st.sampled_from(["published", "votes"]), st.integers(-20, 20).map(float), max_size=2
)
documents = st.builds(
    Document,
    st.sampled_from(["a", "b", "c", "d-e", "weather", "notes", "é", "😀"]),
    st.dictionaries(st.sampled_from(["name", "title", "description", "tags"]), texts),
    st.lists(tools, max_size=3).map(tuple),
    st.lists(facets, max_size=3).map(tuple),
    numbers,
)
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(documents, max_size=4)),
    st.tuples(st.just("remove"), st.lists(st.sampled_from(["a", "b", "weather", "é"]), max_size=2)),
    st.tuples(st.just("merge"), st.lists(st.integers(0, 5), max_size=3)),
    st.tuples(st.just("reread"), st.none()),
)
filters = st.builds(
    Filters,
    st.dictionaries(st.sampled_from(["tag", "name"]), st.just(("a", "ä")), max_size=1),
    st.dictionaries(st.sampled_from(["language", "tag"]), st.just(("b",)), max_size=1),
    st.dictionaries(st.just("published"), st.just(0.0), max_size=1),
)
queries = st.one_of(texts, st.sampled_from(["weath", "note a", "get weather", "d e", "fore", "!"]))


def run(history: list[tuple[str, object]]) -> tuple[Engine, dict[str, Document]]:
    engine, live = Engine(), dict[str, Document]()
    for step, given_ in history:
        match step, given_:
            case "add", list(some):
                engine = engine.add(some)
                live |= {document.name: document for document in some}
            case "remove", list(names):
                engine = engine.without(names)
                for name in names:
                    live.pop(name, None)
            case "merge", list(places):
                wanted = {at % len(engine.parts) for at in places} if engine.parts else set()
                sources = [(engine.parts[at].segment, engine.parts[at].live) for at in wanted]
                engine = engine.merged(sources, merge(sources))
            case "reread", _:
                engine = Engine(
                    (from_bytes(to_bytes(part.segment)), part.live) for part in engine.parts
                )
    return engine, live


def answers(engine: Engine, query: str, some: Filters) -> tuple[RankedPage, object]:
    scores = engine.scores(query)
    page = engine.page(scores, filters=some, limit=50)
    return page, engine.facets(scores, ["tag", "language"], filters=some)


@settings(deadline=None)
@given(st.lists(steps, max_size=10), queries, filters)
def test_an_engine_answers_as_its_live_documents_built_at_once(
    history: list[tuple[str, object]], query: str, some: Filters
) -> None:
    engine, live = run(history)
    assert engine.packages == len(live)
    assert answers(engine, query, some) == answers(Engine().add(live.values()), query, some)


@settings(deadline=None)
@given(st.lists(documents, max_size=8), queries, filters)
def test_hits_are_those_of_plain_bm25f(given_: list[Document], query: str, some: Filters) -> None:
    live = list({document.name: document for document in given_}.values())
    engine = Engine().add(live)
    scores = engine.scores(query)
    page = engine.page(scores, filters=some, limit=50)
    if not scores.corrected:
        assert [replace(hit, words=0) for hit in page.hits] == search(live, query, some)
    assert page.total == len(page.hits)
    found = {hit.name for hit in page.hits}
    counted = Counter(
        facet for x in live if x.name in found for facet in set(x.facets) if facet[0] == "tag"
    )
    expected = sorted(((v, n) for (_, v), n in counted.items()), key=lambda x: (-x[1], x[0]))
    assert engine.facets(scores, ["tag"], filters=some) == {"tag": expected}
    assert all(fulfils(x, some) for x in live if x.name in found)


@settings(deadline=None)
@given(st.lists(steps, max_size=6), queries, filters, st.integers(1, 3))
def test_pages_one_after_the_other_are_all_hits(
    history: list[tuple[str, object]], query: str, some: Filters, limit: int
) -> None:
    engine, _ = run(history)
    scores = engine.scores(query)
    whole = engine.page(scores, filters=some, limit=50)
    hits, after = [], None
    while True:
        page = engine.page(scores, filters=some, limit=limit, after=after)
        hits += page.hits
        after = page.after
        if after is None:
            break
        assert len(page.hits) == limit
    assert hits == whole.hits
    keys = [(-x.lead, -x.score, x.name) for x in hits]
    assert all(a < b for a, b in pairwise(keys))


@settings(deadline=None)
@given(st.lists(documents, max_size=8), st.lists(documents, max_size=8))
def test_merged_segments_are_the_segment_of_their_documents(
    some: list[Document], others: list[Document]
) -> None:
    engine = Engine().add(some).add(others)
    live = {document.name: document for document in [*some, *others]}
    merged = merge([(part.segment, part.live) for part in engine.parts])
    assert to_bytes(merged) == to_bytes(WordSegment.build(live.values()))


@given(st.lists(st.integers(-(2**255), 2**255).map(float), min_size=1))
def test_votes_change_a_score_by_five_percent_at_most(votes: list[float]) -> None:
    found = prior({VOTES: np.array(votes)})
    assert found is None or np.all((found >= np.float32(0.95)) & (found <= np.float32(1.05)))
