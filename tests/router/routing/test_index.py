"""The trigger index, beside every pattern searched by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capdex.manifest.triggers import Trigger, compile_pattern
from capdex.routing.patterns import MAX_OPEN, Level, pattern_of, traits
from capdex.routing.text import fold, has_word, views
from capdex_router.routing.index import TriggerIndex, short_name

NOTE, WEATHER = "did:nuwa:cap:note", "did:nuwa:cap:weather"


def regex(*patterns: str) -> list[Trigger]:
    return [Trigger("regex", pattern) for pattern in patterns]


def keyword(*words: str) -> list[Trigger]:
    return [Trigger("keyword", word) for word in words]


def index_of(installed: Mapping[str, Iterable[Trigger]]) -> TriggerIndex:
    index = TriggerIndex()
    for capability, own in installed.items():
        index.add(capability, own)
    index.compile()
    return index


def is_broad(trigger: Trigger) -> bool:
    pattern = pattern_of(trigger)
    assert pattern is not None
    return traits(pattern).broad


def hits(index: TriggerIndex, message: str) -> set[tuple[str, str]]:
    return {(hit.name, hit.text) for hit in index.hits(message)}


def brute_force(installed: Mapping[str, Iterable[Trigger]], message: str) -> set[tuple[str, str]]:
    folded = fold(message)
    found = set()
    for capability, own in installed.items():
        for trigger in own:
            if trigger.type == "keyword":
                hit = has_word(folded, fold(trigger.value).strip())
            else:
                try:
                    compile_pattern(trigger.value)
                    pattern = compile_pattern(f"(?i){trigger.value}")
                except re2.error:
                    continue
                hit = any(pattern.search(view) is not None for view in views(message, folded))
            if hit:
                found.add((capability, trigger.value))
    return found


PLAIN = [
    "note",
    "Note",
    "weather",
    "記",
    "记账",
    "straße",
    "STRASSE",
    "ſ",
    "\u212a",
    "İ",
    "ｎｏｔｅ",
]
WORDS = st.sampled_from(
    [*PLAIN, "ｎｏｔｅ", "n\u043ete", "c++", "é", "날씨", "a", " ", "12", ".", "\n", "/back"]
)
SYNTAX = [".*", "(.*)", "^", "$", "|", "(?i)", "(?-i)", r"\b", r"\d+", "[a-n]", r"\pL", "(a|记)"]
PARTS = WORDS.map(re2.escape) | st.sampled_from(
    [*SYNTAX, "x?", "(", "*", "[^o]", r"\s", "(?s).", "(?m)^"]
)
PATTERNS = st.lists(PARTS, min_size=1, max_size=5).map(
    lambda parts: Trigger("regex", "".join(parts))
)
CHANGES = st.lists(
    st.tuples(st.integers(0, 5), st.none() | st.lists(PATTERNS, max_size=3)), max_size=12
)
KEYWORDS = (
    st.lists(WORDS, min_size=1, max_size=3)
    .map("".join)
    .filter(str.strip)
    .map(lambda text: Trigger("keyword", text))
)
INSTALLED = st.dictionaries(
    st.sampled_from([f"did:nuwa:cap:c{i}" for i in range(6)]),
    st.lists(PATTERNS | KEYWORDS, max_size=4, unique_by=lambda trigger: trigger.value),
    max_size=6,
)
MESSAGES = st.lists(WORDS | st.characters(codec="utf-8"), max_size=8).map("".join)


def test_keywords_that_differ_in_case_width_or_space_at_the_ends_are_one_hit() -> None:
    index = index_of({NOTE: keyword("note", "note\n", "Note", "ｎｏｔｅ ")})
    assert [(hit.kind, hit.text) for hit in index.hits("a note")] == [("keyword", "note")]


@settings(max_examples=60, deadline=None)
@given(INSTALLED, st.lists(MESSAGES, min_size=1, max_size=4))
@example({NOTE: keyword("note", "note\n")}, ["note"])
def test_hits_are_those_of_brute_force(
    installed: dict[str, list[Trigger]], messages: list[str]
) -> None:
    index = index_of(installed)
    for message in messages:
        found = {
            (x.name, fold(x.text).strip() if x.kind == "keyword" else "r")
            for x in index.hits(message)
        }
        types = {(name, t.value): t.type for name, own in installed.items() for t in own}
        expected = {
            (name, fold(value).strip() if types[name, value] == "keyword" else "r")
            for name, value in brute_force(installed, message)
        }
        assert found == expected
        assert {h for h in hits(index, message) if types[h] == "regex"} == {
            h for h in brute_force(installed, message) if types[h] == "regex"
        }


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.none() | st.lists(PATTERNS, max_size=3)), max_size=12)
)
def test_adding_and_removing_one_by_one_gives_the_same_hits(
    changes: list[tuple[int, list[Trigger] | None]],
) -> None:
    index = TriggerIndex()
    installed: dict[str, list[Trigger]] = {}
    for number, own in changes:
        name = f"did:nuwa:cap:c{number}"
        if own is None:
            index.remove(name)
            installed.pop(name, None)
        else:
            index.add(name, own)
            installed[name] = own
        index.compile()
        assert index.ready
        for message in ("note weather 记账 12", "Note\nx", ""):
            assert hits(index, message) == brute_force(installed, message)


def test_equal_patterns_of_several_capabilities_hit_for_each() -> None:
    index = index_of({NOTE: keyword("milk"), WEATHER: keyword("MILK")})
    assert hits(index, "buy milk") == {(NOTE, "milk"), (WEATHER, "MILK")}
    index.remove(NOTE)
    assert hits(index, "buy milk") == {(WEATHER, "MILK")}


def test_patterns_ignore_case_unless_they_say_otherwise() -> None:
    index = index_of({WEATHER: regex("weather|forecast"), NOTE: regex("(?-i)NOTE ME")})
    assert hits(index, "Weather in Oslo?") == {(WEATHER, "weather|forecast")}
    assert hits(index, "note me") == set()
    assert hits(index, "NOTE ME") == {(NOTE, "(?-i)NOTE ME")}


def test_a_keyword_counts_more_than_a_pattern_and_a_broad_pattern_less() -> None:
    index = index_of(
        {NOTE: [*keyword("note"), *regex("weather tomorrow|note", r".*\w")], WEATHER: []}
    )
    scores = {hit.text: (hit.level, hit.width) for hit in index.hits("note the weather tomorrow")}
    assert scores == {
        "note": (Level.KEYWORD, 4),
        "weather tomorrow|note": (Level.REGEX, 16),
        r".*\w": (Level.BROAD, 0),
    }


def test_before_compile_only_names_are_there() -> None:
    index = TriggerIndex()
    index.add(NOTE, keyword("memo"))
    assert not index.ready
    assert index.hits("a memo") == []
    assert index.named("note") == index.named(NOTE) == index.starting("no") == [NOTE]
    index.compile()
    assert index.ready
    assert hits(index, "a memo") == {(NOTE, "memo")}


def test_compile_in_a_thread_and_changes_beside_it_lose_nothing() -> None:
    index = TriggerIndex()
    for number in range(300):
        index.add(f"did:nuwa:cap:c{number}", keyword(f"word{number}"))
    thread = threading.Thread(target=index.compile)
    thread.start()
    for number in range(300, 400):
        index.add(f"did:nuwa:cap:c{number}", keyword(f"word{number}"))
        index.remove(f"did:nuwa:cap:c{number - 300}")
        index.hits(f"word{number}")
    thread.join()
    index.compile()
    assert hits(index, "word350 word250 word50") == {
        ("did:nuwa:cap:c350", "word350"),
        ("did:nuwa:cap:c250", "word250"),
    }


def test_unusable_triggers_are_passed_over() -> None:
    own = [
        Trigger("embedding", "a phrase"),
        Trigger("embedding", "f00ff", "model@1"),
        *regex("(", "a" * 513, r"\bnote\b"),
        *keyword("x" * 129),
    ]
    index = index_of({NOTE: own})
    assert hits(index, "a note") == {(NOTE, r"\bnote\b")}


@pytest.mark.parametrize(
    "trigger",
    [*regex(".*", "", r"\w+", "[a-z]", "a|e|i|o|u", "(the|my|a) ", "(?i)^"), *keyword("the", "a")],
)
def test_triggers_that_capture_everything_are_broad(trigger: Trigger) -> None:
    index = index_of({NOTE: [trigger]})
    assert is_broad(trigger)
    assert {hit.level for hit in index.hits("the capital of a country")} <= {Level.BROAD}


@pytest.mark.parametrize("trigger", [*regex("weather|forecast"), *keyword("weather", "记")])
def test_triggers_that_name_a_matter_are_not_broad(trigger: Trigger) -> None:
    assert not is_broad(trigger)


def test_one_capability_does_not_take_the_places_of_all_broad_triggers() -> None:
    greedy = {
        f"did:nuwa:cap:greedy{i}": regex(*(f".*x{{0,{n}}}y{{0,{i}}}" for n in range(64)))
        for i in range(1, 3)
    }
    index = index_of({**greedy, NOTE: regex(r"^\w+\d?$")})
    found = hits(index, "word")
    assert (NOTE, r"^\w+\d?$") in found
    assert len({pattern for _, pattern in found}) == MAX_OPEN
    for name in greedy:
        index.remove(name)
    index.compile()
    assert hits(index, "word") == {(NOTE, r"^\w+\d?$")}


def test_lookalikes_of_a_keyword_do_not_hit_and_wide_letters_do() -> None:
    index = index_of({NOTE: keyword("note")})
    assert hits(index, "nоte") == hits(index, "n0te") == set()
    assert hits(index, "ＮＯＴＥ") == {(NOTE, "note")}


def test_a_pattern_written_with_wide_characters_hits_them() -> None:
    index = index_of({NOTE: regex("番号：[０-９]+号")})
    assert hits(index, "番号：１２号") == {(NOTE, "番号：[０-９]+号")}


def test_only_the_beginning_of_a_long_message_is_searched() -> None:
    index = index_of({NOTE: keyword("note")})
    assert hits(index, "note " + "x" * 1_000_000) == {(NOTE, "note")}
    assert hits(index, "x" * 1_000_000 + " note") == set()


def test_names_are_found_by_prefix_without_differences_of_width_and_case() -> None:
    index = index_of({NOTE: [], "did:nuwa:cap:notebook": [], WEATHER: []})
    assert index.starting("NOTE") == [NOTE, "did:nuwa:cap:notebook"]
    assert index.named("Ｎｏｔｅ") == [NOTE]
    assert index.named("nоte") == []
    assert index.starting("did:nuwa:cap:w") == [WEATHER]
    assert len(index.starting("")) == 3
    index.remove(NOTE)
    index.remove(NOTE)
    assert index.named("note") == []
    assert NOTE not in index


def test_a_short_name_is_the_last_part_of_an_id() -> None:
    assert (short_name("did:nuwa:cap:Note"), short_name("plain")) == ("note", "plain")
