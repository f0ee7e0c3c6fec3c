"""Names and versions that begin alike, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.problems import Verdict
from capdex_indexer.db.denylist import Denial, Denials
from capdex_indexer.query.changes import read_newest
from capdex_indexer.query.index import Index
from capdex_indexer.query.names import read_names_like, read_versions_like
from capdex_indexer.store import Store

VERIFIED = frozenset({Verdict.VERIFIED})


@pytest.fixture
def shelf(making: Any, store: Store, chain: Any, search_index: Index) -> Index:
    """Names that begin alike, with and without a prompt."""
    for version in ("1.0.0", "1.9.0", "1.10.0", "2.0.0-rc.1"):
        chain.publish("note", version, prompt="Write {{what}} for {{whom}}.")
    chain.publish("note-book", prompt=None)
    chain.publish("note2")
    chain.publish("weather")
    chain.mine(making.yanked("note", "1.9.0"), making.yanked("note2"))
    making.follow(store, chain)
    return search_index


def test_names_and_versions_begin_as_they_were_typed(shelf: Index) -> None:
    def versions(prefix: str, denials: Denials | None = None) -> list[str]:
        return read_versions_like(
            connection, "note", prefix, 10, serve=VERIFIED, denials=denials or Denials()
        )

    with shelf.read() as connection:
        assert read_names_like(connection, "note", 10) == ["note", "note-book"]
        assert read_names_like(connection, "note-", 10, with_prompt=True) == []
        assert read_names_like(connection, "%", 10) == []
        assert versions("") == ["2.0.0-rc.1", "1.10.0", "1.0.0"]
        assert versions("1.1") == ["1.10.0"]
        assert versions("_") == []
        assert versions("", Denials(by_name={"note": Denial("note", "spam", 0.0)})) == []


def test_the_newest_changes_come_first(shelf: Index, chain: Any, store: Store, making: Any) -> None:
    chain.publish("zebra")
    making.follow(store, chain)
    with shelf.read() as connection:
        newest = read_newest(connection, VERIFIED, 2)
    assert newest[0].name == "zebra"
    assert newest[0].release_id is not None
    assert newest[0].revision > newest[1].revision
