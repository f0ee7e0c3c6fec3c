"""The trigger set, beside every pattern searched by itself and sets of another history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from capdex.errors import InvalidInput
from capdex.manifest.triggers import Trigger, compile_pattern
from capdex.routing.patterns import MAX_CANDIDATES, MAX_OPEN, Level
from capdex.routing.segment import Segment, merge
from capdex.routing.text import fold, has_word, views
from capdex.routing.triggers import MAX_SHOWN, TriggerSet

NOTE, WEATHER = "did:nuwa:cap:note", "did:nuwa:cap:weather"

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
    [
        *PLAIN,
        "n\u043ete",
        "c++",
        "é",
        "e\u0301",
        "날씨",
        "a",
        " ",
        "12",
        ".",
        "\n",
        "\u212a",
        "ｎｏｔｅ",
    ]
)
SYNTAX = [".*", "(.*)", "^", "$", "|", "(?i)", "(?-i)", r"\b", r"\d+", "[a-n]", r"\pL", "(a|记)"]
PARTS = WORDS.map(re2.escape) | st.sampled_from(
    [*SYNTAX, "x?", "(", "*", "{2}", "[^o]", r"\s", "(?s).", "(?m)^", "a very long text to find"]
)
PATTERNS = st.lists(PARTS, min_size=1, max_size=5).map(lambda x: Trigger("regex", "".join(x)))
KEYWORDS = (
    st.lists(WORDS, min_size=1, max_size=3)
    .map("".join)
    .filter(str.strip)
    .map(lambda text: Trigger("keyword", text))
)
TRIGGERS = st.lists(PATTERNS | KEYWORDS, max_size=4)
NAMES = st.integers(0, 5).map(lambda number: f"did:nuwa:cap:c{number}")
PACKAGES = st.dictionaries(NAMES, TRIGGERS, max_size=6)
MESSAGES = st.lists(
    WORDS | st.just("a very long text to find") | st.characters(codec="utf-8"), max_size=8
).map("".join)


def brute_force(packages: Mapping[str, Iterable[Trigger]], message: str) -> set[tuple[str, str]]:
    """Return the names and texts of triggers that a message hits; texts of keywords are folded."""
    folded = fold(message)
    return {
        (name, text_of(trigger))
        for name, own in packages.items()
        for trigger in own
        if _is_hit(trigger, message, folded)
    }


def text_of(trigger: Trigger) -> str:
    return fold(trigger.value).strip() if trigger.type == "keyword" else trigger.value


def _is_hit(trigger: Trigger, message: str, folded: str) -> bool:
    if trigger.type == "keyword":
        return has_word(folded, text_of(trigger))
    try:
        compile_pattern(trigger.value)
        pattern = compile_pattern(f"(?i){trigger.value}")
    except re2.error:
        return False
    return any(pattern.search(view) is not None for view in views(message, folded))


def regex(*patterns: str) -> list[Trigger]:
    return [Trigger("regex", pattern) for pattern in patterns]


def keyword(*words: str) -> list[Trigger]:
    return [Trigger("keyword", word) for word in words]


def set_of(packages: Mapping[str, Iterable[Trigger]]) -> TriggerSet:
    return TriggerSet().with_packages(packages.items())


def hits(triggers: TriggerSet, message: str) -> set[tuple[str, str]]:
    return {(x.name, text_of(Trigger(x.kind, x.text))) for x in triggers.hits(message)}


def answer(triggers: TriggerSet, message: str) -> object:
    return triggers.match(message, 10)


@settings(max_examples=100, deadline=None)
@given(PACKAGES, st.lists(MESSAGES, min_size=1, max_size=4))
def test_hits_are_those_of_brute_force(
    packages: dict[str, list[Trigger]], messages: list[str]
) -> None:
    triggers = set_of(packages)
    for message in messages:
        expected = brute_force(packages, message)
        assert hits(triggers, message) == expected
        page = triggers.match(message, 10)
        assert {match.name for match in page.matches} == {name for name, _ in expected}
        assert page.total == len(page.matches)


class Histories(RuleBasedStateMachine):
    """A set that is changed and merged, beside the packages that it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.triggers = TriggerSet()
        self.packages: dict[str, list[Trigger]] = {}
        self.merging: tuple[list[Any], Segment] | None = None

    @rule(name=NAMES, own=TRIGGERS)
    def put(self, name: str, own: list[Trigger]) -> None:
        self.triggers = self.triggers.with_packages([(name, own)])
        self.packages[name] = own

    @rule(packages=PACKAGES)
    def put_some(self, packages: dict[str, list[Trigger]]) -> None:
        self.triggers = self.triggers.with_packages(packages.items())
        self.packages |= packages

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self.triggers = self.triggers.without([name, "unknown"])
        self.packages.pop(name, None)

    @precondition(lambda self: self.merging is None)
    @rule(keep=st.lists(st.booleans(), min_size=12, max_size=12))
    def begin_merge(self, keep: list[bool]) -> None:
        parts = zip(self.triggers.parts, keep, strict=False)
        sources = [(part.segment, part.live) for part, kept in parts if kept]
        self.merging = sources, merge(sources)

    @precondition(lambda self: self.merging is not None)
    @rule()
    def end_merge(self) -> None:
        assert self.merging is not None
        self.triggers = self.triggers.merged(*self.merging)
        self.merging = None

    @invariant()
    def answers_as_a_fresh_one(self) -> None:
        fresh = set_of(self.packages)
        assert self.triggers.packages == len(self.packages)
        assert all(name in self.triggers for name in self.packages)
        for message in ("note weather 记账 12 a very long text to find", "Note\nx STRASSE", ""):
            assert hits(self.triggers, message) == brute_force(self.packages, message)
            assert answer(self.triggers, message) == answer(fresh, message)


Histories.TestCase.settings = settings(max_examples=20, stateful_step_count=12, deadline=None)
TestHistories = Histories.TestCase


def test_many_single_changes_make_few_segments() -> None:
    triggers = TriggerSet()
    for number in range(1_000):
        triggers = triggers.with_packages(
            [(f"did:nuwa:cap:c{number % 700:03}", keyword(f"word{number}"))]
        )
        while sources := triggers.mergeable():
            triggers = triggers.merged(sources, merge(sources))
    assert triggers.packages == 700
    assert len(triggers.parts) < 20
    assert hits(triggers, "word5 word705 word999") == {
        ("did:nuwa:cap:c005", "word705"),
        ("did:nuwa:cap:c299", "word999"),
    }


def test_a_package_changed_during_a_merge_keeps_its_change() -> None:
    triggers = set_of({NOTE: keyword("memo"), WEATHER: keyword("rain")})
    sources = [(part.segment, part.live) for part in triggers.parts]
    segment = merge(sources)
    changed = triggers.with_packages([(NOTE, keyword("notice"))]).merged(sources, segment)
    assert hits(changed, "memo notice rain") == {(NOTE, "notice"), (WEATHER, "rain")}


def test_segments_with_equal_triggers_and_dead_packages_merge() -> None:
    triggers = set_of({NOTE: keyword("memo")}).with_packages([(WEATHER, keyword("memo", "rain"))])
    (one,) = triggers.without([NOTE, WEATHER]).with_packages([(NOTE, [])]).parts
    assert hits(TriggerSet([(one.segment, None)]), "memo") == set()
    sources = [(part.segment, part.live) for part in triggers.parts]
    assert hits(triggers.merged(sources, merge(sources)), "a memo") == {
        (NOTE, "memo"),
        (WEATHER, "memo"),
    }
    left = triggers.without([NOTE]).merged(sources, merge(sources))  # with its segment
    assert hits(left, "a memo") == {(WEATHER, "memo")}


def test_a_segment_of_which_most_is_gone_is_merged_by_itself() -> None:
    triggers = set_of({f"c{number}": keyword(f"word{number}") for number in range(9)})
    triggers = triggers.without(f"c{number}" for number in range(6))
    sources = triggers.mergeable()
    assert len(sources) == 1
    merged = triggers.merged(sources, merge(sources))
    assert (len(merged.parts[0].segment.names), merged.mergeable()) == (3, [])
    assert hits(merged, "word5 word6") == {("c6", "word6")}


def test_a_match_names_the_triggers_and_their_places_best_first() -> None:
    triggers = set_of(
        {
            WEATHER: [*regex("weather|forecast", r".*\w"), *keyword("Rain Radar", "unsaid")],
            NOTE: keyword("memo"),
        }
    )
    page = triggers.match("The rain radar and the weather", 5)
    (match,) = page.matches
    assert (match.name, page.total, page.cut) == (WEATHER, 1, False)
    assert [(x.kind, x.text, x.broad, x.span) for x in match.triggers] == [
        ("keyword", "Rain Radar", False, (4, 14)),
        ("regex", "weather|forecast", False, (23, 30)),
        ("regex", r".*\w", True, (0, 30)),
    ]
    assert 0 < match.score < 1


@pytest.mark.parametrize(
    ("trigger", "message", "span"),
    [
        (keyword("note"), "footnote, Ａ ＮＯＴＥ", (12, 16)),
        (keyword("strasse"), "die Straße", (4, 10)),
        (keyword("é"), "caf e\u0301", None),  # joined only in the folded message
        (keyword("会議"), "明日の会議は", (3, 5)),
        (regex("番号：[０-９]+号"), "の番号：１２号", (1, 7)),
        (regex("a b"), "ａ ｂ", None),
    ],
)
def test_a_span_is_where_the_message_as_written_has_the_trigger(
    trigger: list[Trigger], message: str, span: tuple[int, int] | None
) -> None:
    (match,) = set_of({NOTE: trigger}).match(message, 1).matches
    assert match.triggers[0].span == span


def test_a_wide_a_rare_and_a_precise_trigger_come_first() -> None:
    triggers = set_of(
        {
            "broad": regex(r"\w+"),
            "narrow": keyword("rain"),
            "pattern": regex("rain radar"),
            "rare": keyword("rain radar now"),
            "same1": keyword("rain radar"),
            "same2": keyword("rain radar"),
        }
    )
    names = [match.name for match in triggers.match("show the rain radar now", 10).matches]
    assert names == ["rare", "pattern", "same1", "same2", "narrow", "broad"]
    assert [x.name for x in triggers.match("the rain radar", 2).matches] == ["pattern", "same1"]
    assert triggers.match("the rain radar", 2).total == 5


def test_very_many_equal_matches_are_in_order_of_names_over_segments() -> None:
    triggers = TriggerSet()
    for begin in (0, 1, 2):
        some = {f"c{number:03}": keyword("milk") for number in range(begin, 300, 3)}
        triggers = triggers.with_packages(some.items())
    page = triggers.match("buy milk", 5)
    assert [match.name for match in page.matches] == [f"c{number:03}" for number in range(5)]
    assert page.total == 300


def test_the_most_precise_of_too_many_candidates_are_matched() -> None:
    many = {f"c{number}": regex(f"rain.*radar.{{0,{number}}}") for number in range(600)}
    triggers = set_of({**many, NOTE: regex("rain radar .*tomorrow"), WEATHER: keyword("radar")})
    page = triggers.match("rain radar for tomorrow", 1_000)
    names = [match.name for match in page.matches]
    assert names[0] == NOTE
    assert WEATHER in names
    assert page.cut
    assert page.total <= MAX_CANDIDATES + 1
    assert not triggers.match("tomorrow", 2).cut


def test_open_patterns_are_capped_and_each_package_has_its_turn() -> None:
    greedy = {f"greedy{i}": regex(*(f".*x{{0,{n}}}y{{0,{i}}}" for n in range(64))) for i in (1, 2)}
    triggers = set_of({**greedy, NOTE: regex(r"^\w+\d?$")})
    assert len(triggers.active) == MAX_OPEN
    assert (NOTE, r"^\w+\d?$") in hits(triggers, "word")
    assert {hit.level for hit in triggers.hits("word")} == {Level.BROAD}
    assert len(triggers.match("word", 1).matches[0].triggers) <= MAX_SHOWN
    assert hits(triggers.without(greedy), "word") == {(NOTE, r"^\w+\d?$")}


def test_the_same_open_patterns_are_active_however_packages_are_spread() -> None:
    packages = {f"c{i:02}": regex(*(f".*x{{{i}}}?y{{{n}}}?" for n in range(9))) for i in range(40)}
    one, many = set_of({**packages, "gone": regex(".*")}).without(["gone"]), TriggerSet()
    for name, own in packages.items():
        many = many.with_packages([(name, own)])
    assert set(one.active) == set(many.active)
    assert len(one.active) == MAX_OPEN


def test_patterns_that_cost_too_much_never_match() -> None:
    triggers = set_of({NOTE: regex(r"weather(\pL{0,500}\pN{0,500})"), WEATHER: regex("weather")})
    assert hits(triggers, "the weather") == {(WEATHER, "weather")}


def test_messages_and_limits_are_bounded() -> None:
    triggers = set_of({NOTE: keyword("note")})
    assert triggers.match("note " + "x" * 1_000_000, 1).total == 1
    assert triggers.match("x" * 1_000_000 + " note", 1).total == 0
    assert triggers.match("\ud800 note", 1).matches[0].triggers[0].span == (2, 6)
    for limit in (0, 1_001):
        with pytest.raises(InvalidInput):
            triggers.match("note", limit)


def test_an_empty_set_hits_nothing() -> None:
    assert TriggerSet().match("note", 1).matches == []
    assert TriggerSet().with_packages([]).packages == 0
    assert set_of({NOTE: [Trigger("embedding", "a phrase")]}).hits("a phrase") == []
