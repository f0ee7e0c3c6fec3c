"""The feed of changed names, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from capdex_indexer.query.changes import NameChange, read_changes, read_listed_releases
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store


def feed(index: Index, after: tuple[int, str] = (0, ""), limit: int = 100) -> list[NameChange]:
    with index.read() as connection:
        return read_changes(connection, after, limit)


def listed(index: Index, changes: list[NameChange]) -> dict[str, str | None]:
    with index.read() as connection:
        found = read_listed_releases(connection, changes)
    return {name: None if x is None else x.semver for name, x in found.items()}


def test_a_name_is_in_the_feed_once_at_its_latest_change(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    chain.publish("weather")
    making.follow(store, chain)
    before = feed(search_index)
    assert sorted(x.name for x in before) == ["note", "weather"]
    chain.publish("note", "1.1.0")
    chain.mine(making.yanked("weather"))
    making.follow(store, chain)
    later = feed(search_index, (before[-1].revision, "zz"))
    assert sorted(x.name for x in feed(search_index)) == ["note", "weather"]
    assert listed(search_index, later) == {"note": "1.1.0", "weather": None}


def test_a_page_goes_on_after_a_name_of_the_same_revision(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    for name in ("aa", "bb", "cc"):
        chain.publish(name)
    making.append(store, chain)
    first = feed(search_index, limit=2)
    rest = feed(search_index, (first[-1].revision, first[-1].name))
    assert [x.name for x in (*first, *rest)] == ["aa", "bb", "cc"]
    assert listed(search_index, [*first, *rest]) == {"aa": None, "bb": None, "cc": None}
    assert listed(search_index, []) == {}


def test_threads_may_look_for_commits_at_the_same_time(search_index: Index) -> None:
    with closing(search_index.watch()) as watch, ThreadPoolExecutor(4) as threads:
        looks = [threads.submit(lambda: {watch.token() for _ in range(500)}) for _ in range(4)]
        assert len(set.union(*(look.result() for look in looks))) == 1
