"""Releases in pages: versions of a name, the newest of all, and those whose bytes are awaited."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.problems import Verdict
from capdex_indexer.db.denylist import Denials
from capdex_indexer.query.index import Index
from capdex_indexer.query.pages import (
    read_first_seen,
    read_newest_releases,
    read_shown_version,
    read_version,
    read_versions,
    read_waiting,
)
from capdex_indexer.store import Store


@pytest.fixture
def shelf(making: Any, store: Store, chain: Any, search_index: Index) -> Index:
    """Releases of every fate."""
    for version in ("1.0.0", "1.9.0", "1.10.0", "2.0.0-rc.1"):
        chain.publish("note", version)
    chain.publish("gone")
    chain.publish("loose", bound=False)
    chain.mine(making.published("soon", digest=b"\x33" * 32))
    chain.mine(making.yanked("note", "1.10.0"), making.yanked("gone"))
    making.follow(store, chain)
    return search_index


def test_versions_come_highest_first_and_in_pages(shelf: Index) -> None:
    with shelf.read() as connection:
        first = read_versions(connection, "note", 3, 0)
        rest = read_versions(connection, "note", 3, 3)
        assert read_versions(connection, "nobody", 3, 0) == []
        seen = read_first_seen(connection, ["note", "nobody"])
    assert {name: row.releases for name, row in seen.items()} == {"note": 4}
    assert [x.semver for x in first] == ["2.0.0-rc.1", "1.10.0", "1.9.0"]
    assert [x.semver for x in rest] == ["1.0.0"]


def test_a_name_is_shown_by_its_listed_version_else_by_its_highest(shelf: Index) -> None:
    with shelf.read() as connection:
        shown = {x: read_shown_version(connection, x) for x in ("note", "gone", "soon", "nobody")}
    assert {name: x and (x.semver, x.latest) for name, x in shown.items()} == {
        "note": ("1.9.0", True),
        "gone": ("1.0.0", False),
        "soon": ("1.0.0", False),
        "nobody": None,
    }


def test_an_exact_version_is_found_whatever_became_of_it(shelf: Index) -> None:
    with shelf.read() as connection:
        yanked = read_version(connection, "note", "1.10.0")
        awaited = read_version(connection, "soon", "1.0.0")
        assert read_version(connection, "note", "3.0.0") is None
    assert yanked is not None
    assert yanked.yanked
    assert awaited is not None
    assert awaited.verdict is None


def test_the_newest_releases_are_served_ones(shelf: Index) -> None:
    def newest(*serve: Verdict) -> list[str]:
        found = read_newest_releases(connection, serve, Denials(), 2)
        return [f"{x.name} {x.semver}" for x in found]

    with shelf.read() as connection:
        assert newest(Verdict.VERIFIED) == ["note 2.0.0-rc.1", "note 1.9.0"]
        assert newest(Verdict.VERIFIED, Verdict.SIGNED) == ["loose 1.0.0", "note 2.0.0-rc.1"]


def test_awaited_releases_have_their_state_and_tries(shelf: Index) -> None:
    with shelf.read() as connection:
        (one,) = read_waiting(connection)
    assert (one.name, one.semver, one.state, one.attempts) == ("soon", "1.0.0", "pending", 0)
