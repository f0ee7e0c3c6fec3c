"""Events of a name, of an account and of a block, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.json import Json
from capdex_indexer.query.history import (
    MAX_EVENTS,
    read_account_history,
    read_block_history,
    read_name_history,
)
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store

PUBLISHER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
OTHER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"


def kinds(events: list[Json]) -> list[str]:
    return [one["kind"] for one in events]


@pytest.fixture
def told(making: Any, store: Store, chain: Any, search_index: Index) -> Index:
    """A name of which everything is said that can be said, and others that begin alike."""
    chain.mine(making.committed(), making.of_name("Claimed"))
    chain.publish("note", "1.0.0")
    chain.publish("note", "1.0.0")  # has no effect
    chain.publish("note-book")
    chain.mine(
        making.yanked("note", "1.0.0", "loses notes"),
        making.unyanked("note", "1.0.0"),
        making.deprecated("note", "1.0.0", "old"),
        making.undeprecated("note", "1.0.0"),
        making.name_deprecated("note", "gone", "note-book"),
    )
    other = {"address": OTHER}
    chain.mine(
        making.of_name("MaintainerAdded", **other),
        making.of_name("MaintainerRemoved", **other),
        making.of_name("TransferOffered", **other),
        making.of_name("TransferCancelled", **other),
        making.of_name("NameUndeprecated"),
    )
    making.follow(store, chain)
    return search_index


def test_a_name_has_its_events_newest_first(told: Index) -> None:
    with told.read() as connection:
        events = read_name_history(connection, "note", None)
        book = read_name_history(connection, "note-book", None)
    assert kinds(events) == [
        *("undeprecated", "transfer_cancelled", "transfer_offered", "maintainer_removed"),
        *("maintainer_added", "deprecated", "undeprecated", "deprecated", "unyanked", "yanked"),
        *("published", "published", "claimed"),
    ]
    assert kinds(book) == ["published"]
    yanked = next(one for one in events if one["kind"] == "yanked")
    assert (yanked["semver"], yanked["note"], yanked["by"]) == ("1.0.0", "loses notes", PUBLISHER)
    assert events[4]["account"] == OTHER
    renamed = next(one for one in events if one["replaced_by"])
    assert (renamed["semver"], renamed["note"], renamed["replaced_by"]) == (
        None,
        "gone",
        "note-book",
    )
    assert [one["sequence"] for one in events] == sorted(
        (x["sequence"] for x in events), reverse=True
    )


def test_a_history_goes_on_below_an_event(told: Index) -> None:
    with told.read() as connection:
        every = read_name_history(connection, "note", None)
        earlier = read_name_history(connection, "note", (every[0]["block_number"], 0))
        rest = read_name_history(
            connection, "note", (every[1]["block_number"], every[1]["log_index"])
        )
    assert kinds(earlier) == kinds(every)[5:]
    assert kinds(rest) == kinds(every)[2:]


def test_an_account_has_what_it_did_and_what_names_it(told: Index) -> None:
    with told.read() as connection:
        own = read_account_history(connection, PUBLISHER, None)
        others = read_account_history(connection, OTHER, None)
        nobody = read_account_history(connection, "0x" + "00" * 20, None)
    assert kinds(own).count("published") == 3
    assert kinds(others) == ["transfer_offered", "maintainer_removed", "maintainer_added"]
    assert nobody == []


def test_a_block_has_its_events_in_their_order(told: Index) -> None:
    with told.read() as connection:
        first = read_block_history(connection, 1)
        assert read_block_history(connection, 1, 1) == first[1:]
        assert read_block_history(connection, 999) == []
    assert kinds(first)[-1:] == ["claimed"]
    assert [one["log_index"] for one in first] == [0, 1]


def test_events_that_a_reorganisation_undid_are_gone(
    told: Index, making: Any, store: Store, chain: Any
) -> None:
    chain.fork(1)
    store.rollback(chain.head)
    with told.read() as connection:
        assert kinds(read_name_history(connection, "note", None))[0] == "deprecated"


def test_a_history_is_bounded(making: Any, store: Store, chain: Any, search_index: Index) -> None:
    chain.publish("note")
    chain.mine(*(making.name_deprecated("note", str(i)) for i in range(MAX_EVENTS + 20)))
    making.follow(store, chain)
    with search_index.read() as connection:
        found = read_name_history(connection, "note", None)
    assert len(found) == MAX_EVENTS
    assert found[0]["note"] == str(MAX_EVENTS + 19)
