"""Pages of names and of releases behind a binding, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from capdex_indexer.db.denylist import Denials
from capdex_indexer.query.catalog import (
    BoundReleases,
    Facet,
    read_bound,
    read_changed_at,
    read_counts,
    read_names,
)
from capdex_indexer.query.index import SERVED, Index
from capdex_indexer.query.release import IndexedRelease
from capdex_indexer.store import Store

MCP = {"type": "mcp_service", "service_uri": "https://mcp.example.org/mcp", "mcp_action": "do"}


@pytest.fixture
def town(making: Any, store: Store, chain: Any, search_index: Index) -> Index:
    """Names of several domains; three have a tool bound to an MCP service."""
    bound = {"tools": [making.tool("ask")], "bindings": {"ask": MCP}}
    chain.publish("maps", domain="travel", tools=[making.tool("find")])
    for version in ("1.0.0", "1.2.0", "1.10.0"):
        chain.publish("guide", version, domain="travel", **bound)
    chain.publish("eye-0", domain="media", **bound)
    chain.publish("eyes", **bound)
    chain.publish("gone", domain="media", **bound)
    chain.mine(making.yanked("guide", "1.2.0"), making.yanked("gone"))
    chain.mine(making.deprecated("guide", "1.0.0"))
    making.follow(store, chain)
    return search_index


def uris(found: Any) -> list[str]:
    return [x.cap_uri.removeprefix("did:nuwa:cap:") for x in found]


def listed(index: Index, facet: Facet = None, *, after: str = "", limit: int = 50) -> list[str]:
    with index.read() as connection:
        return uris(read_names(connection, facet, after, limit))


def read(
    index: Index, wanted: BoundReleases, after: tuple[str, str] = ("", ""), limit: int = 50
) -> tuple[list[IndexedRelease], dict[str, int]]:
    """The releases behind a binding, and when each changed."""
    with index.read() as connection:
        found = read_bound(connection, wanted, SERVED, Denials(), after, limit)
        return found, read_changed_at(connection, found)


def bound(index: Index, **wanted: Any) -> list[str]:
    return uris(read(index, BoundReleases("mcp_service", **wanted))[0])


def test_names_are_listed_in_pages_that_go_on_after_a_name(town: Index) -> None:
    assert listed(town) == ["eye-0@1.0.0", "eyes@1.0.0", "guide@1.10.0", "maps@1.0.0"]
    assert listed(town, limit=2, after="eyes") == ["guide@1.10.0", "maps@1.0.0"]
    assert listed(town, after="maps") == []
    travel = ("domain", "travel")
    assert listed(town, travel) == ["guide@1.10.0", "maps@1.0.0"]


def test_listed_releases_are_counted_by_facet(town: Index) -> None:
    with town.read() as connection:
        counts = read_counts(connection, "domain")
    assert counts == {"travel": 2, "media": 1, "other": 1}


def test_every_version_behind_a_binding_is_found_in_the_order_of_its_text(town: Index) -> None:
    every = ["eye-0@1.0.0", "eyes@1.0.0", "guide@1.0.0", "guide@1.10.0"]
    assert bound(town) == every
    assert bound(town, yanked=True) == [*every, "guide@1.2.0"]
    assert bound(town, latest=True) == ["eye-0@1.0.0", "eyes@1.0.0", "guide@1.10.0"]
    assert bound(town, semver="1.0.0") == every[:3]


def test_pages_of_bound_releases_go_on_after_a_version(town: Index) -> None:
    wanted = BoundReleases("mcp_service")
    first, _ = read(town, wanted, limit=3)
    assert uris(first) == ["eye-0@1.0.0", "eyes@1.0.0", "guide@1.0.0"]
    rest, _ = read(town, wanted, ("guide", "1.0.0"), 3)
    assert uris(rest) == ["guide@1.10.0"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("eye", ["eye-0", "eyes"]),
        ("EYE-", ["eye-0"]),
        ("cap/gu", ["guide"]),
        ("eye_0", []),
        ("%", []),
        ("!", []),
        ("p", ["eye-0", "eyes", "guide"]),  # it is in the prefix
    ],
)
def test_a_search_looks_for_text_in_prefix_and_name(
    town: Index, words: str, found: list[str]
) -> None:
    answer = bound(town, prefix="did.nuwa.cap/", search=words, latest=True)
    assert [x.partition("@")[0] for x in answer] == found


def test_a_change_of_state_counts_like_a_new_release(town: Index) -> None:
    releases, changed = read(town, BoundReleases("mcp_service", yanked=True))
    at = {x.semver: changed[x.cap_uri] - x.timestamp for x in releases if x.name == "guide"}
    assert at == {"1.0.0": 7, "1.2.0": 5, "1.10.0": 0}
    assert bound(town, yanked=True, since=max(changed.values())) == ["guide@1.0.0"]
    assert bound(town, yanked=True, since=max(changed.values()) - 1) == [
        "guide@1.0.0",
        "guide@1.2.0",
    ]
    assert bound(town, since=max(changed.values()) + 1) == []
