"""Names that may be taken for older ones of other owners, looked up one by one or all at once."""

from __future__ import annotations

import random
from typing import Any

import pytest

from capdex.search.engine import Engine
from capdex_indexer.query.index import Index
from capdex_indexer.query.search import copies
from capdex_indexer.query.search.copies import NearNames, read_copies
from capdex_indexer.store import Store

WAYS = [0, 1_000]  # all are compared at once, or each is looked up


@pytest.mark.parametrize("few", WAYS)
def test_a_copy_has_its_oldest_original_and_an_older_name_with_a_later_title_is_none(
    making: Any, store: Store, chain: Any, search_index: Index, monkeypatch: pytest.MonkeyPatch,
    few: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(copies, "FEW", few)
    chain.publish("weather", title="Weather", publisher=making.OTHER)
    chain.publish("weathr", title="Weather")
    chain.publish("weathers", title="Quite another thing")
    chain.publish("router", title="Junk", publisher=making.OTHER)
    chain.publish("routers", title="Route Planner")
    chain.publish("router", "1.1.0", title="Route Planner", publisher=making.OTHER)
    making.follow(store, chain)
    with search_index.read() as connection:
        names = ["weather", "weathr", "weathers", "router", "routers"]
        near = NearNames().read(connection, Engine(), names)
        assert read_copies(connection, ["weathr", "weathers", "routers", "weather"], near) == {
            "weathr": "weather",
            "weathers": None,
            "routers": None,
            "weather": None,
        }
        assert read_copies(connection, ["weather"], near)["weathr"] == "weather"


@pytest.mark.parametrize("few", WAYS)
@pytest.mark.parametrize(
    ("original", "copy"),
    [
        ("city-weather", "city-vveather"),
        ("vvalk", "walk"),
        ("modem", "modern"),
        ("cornet", "comet"),
    ],
)
def test_a_name_that_only_looks_like_an_older_one_is_a_copy(
    making: Any, store: Store, chain: Any, search_index: Index, monkeypatch: pytest.MonkeyPatch,
    original: str, copy: str, few: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(copies, "FEW", few)
    chain.publish(original, title="Oslo", publisher=making.OTHER)
    chain.publish(copy, title="Oslo")
    making.follow(store, chain)
    with search_index.read() as connection:
        near = NearNames().read(connection, Engine(), [original, copy])
        assert read_copies(connection, [original, copy], near) == {original: None, copy: original}


def test_the_engine_of_a_reader_knows_the_copies_that_the_database_has(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("weather", title="Weather", publisher=making.OTHER)
    chain.publish("weathr", title="Weather")
    making.follow(store, chain)
    with search_index.read() as connection:
        engine = search_index.live.at(connection).engine
        for name, original in read_copies(connection, ["weather", "weathr"]).items():
            assert engine.original(name) == original
    assert (engine.original("weathr"), engine.original("unknown")) == ("weather", None)


@pytest.mark.parametrize("letters", ["ab", "rnmvw"])
def test_both_ways_find_the_same_copies_of_many_names(
    making: Any, store: Store, chain: Any, search_index: Index, monkeypatch: pytest.MonkeyPatch,
    letters: str,
) -> None:  # fmt: skip
    random_ = random.Random(4)  # noqa: S311 - data of a test
    names = {"".join(random_.choices(letters, k=random_.randrange(3, 6))) for _ in range(60)}
    for name in sorted(names, key=lambda _: random_.random()):
        publisher = random_.choice((making.PUBLISHER, making.OTHER))
        chain.publish(name, title="One", publisher=publisher)
    making.follow(store, chain)
    with search_index.read() as connection:
        found = []
        for few in WAYS:
            monkeypatch.setattr(copies, "FEW", few)
            near = NearNames()
            found.append(read_copies(connection, names, near.read(connection, Engine(), names)))
    assert found[0] == found[1]
    assert len(set(found[0].values()) - {None}) > 3


def test_an_older_engine_and_what_changed_since_have_the_near_names_of_the_database(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    for name in ("weather", "weathe", "weathr"):
        chain.publish(name)
    making.follow(store, chain)
    with search_index.read() as connection:
        search_index.live.at(connection)
    engine = search_index.live.state.engine
    chain.publish("weathers")
    chain.mine(making.yanked("weathe"))
    making.follow(store, chain)
    with search_index.read() as connection:
        near = NearNames()
        of_engine = near.read(connection, engine, ["weathers", "weathe"])
        assert of_engine("weather") == {"weathers", "weathr"}
        all_names = ["weather", "weathe", "weathr", "weathers"]
        assert near.read(connection, Engine(), all_names)("weather") == {"weathers", "weathr"}
        removed = engine.without(["weathr"])
        assert near.read(connection, removed)("weather") == {"weathe"}


def test_a_copy_sinks_as_soon_as_its_original_is_there_and_rises_when_it_goes(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("weather", title="Weather", publisher=making.OTHER)
    chain.publish("weathr", title="Weather")
    making.append(store, chain)
    first, second = store.due(1e12, 10)
    store.record_many([(second.release_id, making.judge(chain, second))])
    alone = search_index.find("weathr").hits[0].score
    store.record_many([(first.release_id, making.judge(chain, first))])
    assert [x.name for x in search_index.find("weathr").hits] == ["weather", "weathr"]
    chain.mine(making.yanked("weather"))
    making.append(store, chain)
    (hit,) = search_index.find("weathr").hits
    assert (hit.name, hit.score) == ("weathr", alone)
