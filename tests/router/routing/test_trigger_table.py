"""The table of triggers, beside the set of a node."""

from __future__ import annotations

import random

import pytest

from capdex.manifest.triggers import Trigger
from capdex.routing.patterns import MAX_CANDIDATES, MAX_KEYWORDS, distinct, traits
from capdex.routing.triggers import TriggerSet
from capdex_router.routing.trigger_table import TriggerTable

WORDS = [
    *("weather", "forecast", "note", "notes", "reading", "list", "exchange", "rate", "convert"),
    *("miles", "天気", "笔记", "ＮＯＴＥ"),
]
REGEXES = (
    "weather|forecast", r"convert \d+ miles", ".*", r"^\w+$", "(?-i)NOTE", r"exchange\s+rate(s)?",
    r"(read|write).*list", "笔记|天気", r"[a-m]+\s[n-z]\w*", "a{3}b{2}",
)  # fmt: skip


def made(random_: random.Random) -> list[Trigger]:
    return [
        Trigger("regex", random_.choice(REGEXES))
        if random_.random() < 0.5
        else Trigger("keyword", " ".join(random_.choices(WORDS, k=random_.randrange(1, 3))))
        for _ in range(random_.randrange(6))
    ]


def put(table: TriggerTable, name: str, own: list[Trigger]) -> None:
    table.add(name, {pattern: traits(pattern) for pattern in distinct(own)})


@pytest.mark.parametrize("seed", range(30))
def test_the_hits_are_those_of_a_node(seed: int) -> None:
    random_ = random.Random(seed)  # noqa: S311 - data of a test
    table, kept = TriggerTable(), dict[str, list[Trigger]]()
    for _ in range(random_.randrange(1, 80)):
        name = f"did:nuwa:cap:c{random_.randrange(30)}"
        if random_.random() < 0.2:
            table.remove(name)
            kept.pop(name, None)
        else:
            kept[name] = made(random_)
            put(table, name, kept[name])
    whole = TriggerSet().with_packages(kept.items())
    assert table.active.keys() == whole.active.keys()
    for _ in range(20):
        message = " ".join(random_.choices((*WORDS, "12", "READ", "my", "NOTE"), k=6))
        assert set(table.hits(message)) == set(whole.hits(message)), message


def test_one_message_tries_so_many_patterns_and_keywords() -> None:
    table = TriggerTable()
    put(table, "words", [Trigger("keyword", f"x{n}") for n in range(MAX_KEYWORDS + 9)])
    many = [Trigger("regex", rf"sameword\d{{0,{n}}}") for n in range(1, MAX_CANDIDATES + 9)]
    put(table, "many", many)
    message = " ".join(f"x{n}" for n in range(MAX_KEYWORDS + 9))
    found = [x.name for x in table.hits(f"sameword {message}")]
    assert found.count("words") <= MAX_KEYWORDS
    assert 0 < found.count("many") <= MAX_CANDIDATES


def test_what_is_removed_leaves_nothing() -> None:
    table = TriggerTable()
    put(table, "a", [Trigger("keyword", "note"), Trigger("regex", ".*")])
    put(table, "b", [Trigger("keyword", "note")])
    table.remove("a")
    table.remove("unknown")
    assert [(x.name, x.text) for x in table.hits("a note")] == [("b", "note")]
    assert table.active == {}
    table.remove("b")
    assert table.hits("a note") == []
