"""Lists are of what is served: whatever lies between served releases makes none of them shorter."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from capdex.encoding.abi import checksum_address
from capdex.problems import Verdict
from capdex_indexer.db.denylist import Denials
from capdex_indexer.query import catalog
from capdex_indexer.query.catalog import (
    BoundReleases,
    count_listed,
    read_bound,
    read_listed_by,
    read_names,
)
from capdex_indexer.query.changes import read_newest
from capdex_indexer.query.index import Index
from capdex_indexer.query.names import read_versions_like
from capdex_indexer.query.pages import read_newest_releases
from capdex_indexer.store import Operator, Store
from tests.indexer.tables import with_tables

FATES = ("served", "rejected", "pending", "denied", "denied name", "yanked", "repeated")
NAMES = ("amber", "birch", "cedar")
VERIFIED = frozenset({Verdict.VERIFIED})
MCP = {"type": "mcp_service", "service_uri": "https://mcp.example.org/mcp", "mcp_action": "do"}
Mix = list[tuple[str, str]]  # of each announcement, in their order: its name and its fate


def _making() -> Any:
    """The builders, by their path: hypothesis does not take the fixtures of a function."""
    path = Path(__file__).parents[1] / "making.py"
    spec = importlib.util.spec_from_file_location("making_of_lists", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])
    return sys.modules[spec.name]


MAKING = _making()
ACCOUNT = checksum_address(MAKING.PUBLISHER)


def fill(store: Store, url: str, mix: Mix) -> list[tuple[str, str]]:
    """Announce a mix; return name and version of what is served of it, in that order."""
    chain = MAKING.Chain()
    served: list[tuple[str, str]] = []
    denied: list[str] = []
    for number, (name, fate) in enumerate(mix):
        version = f"1.{number}.0"
        if fate == "denied name":
            name = f"{name}-denied"
            denied.append(name)
        if fate == "pending":
            digest = bytes([number, *range(31)])
            chain.mine(MAKING.published(name, version, digest=digest))
            continue
        options = {"tools": [MAKING.tool("do")], "bindings": {"do": MCP}}
        if fate == "repeated" and served:
            name, version = served[-1]
        chain.publish(name, version, bound=fate != "rejected", **options)
        if fate == "denied":
            denied.append(str(MAKING.Cid.raw(list(chain.packages)[-1])))
        if fate == "yanked":
            chain.mine(MAKING.yanked(name, version))
        if fate == "served" or (fate == "repeated" and (name, version) not in served):
            served.append((name, version))
    MAKING.follow(store, chain)
    with Operator(url) as operator:
        for subject in denied:
            operator.deny(subject)
    return served


@contextmanager
def filled(mix: Mix) -> Iterator[tuple[Index, Connection, list[tuple[str, str]]]]:
    with tempfile.TemporaryDirectory() as folder:
        url = with_tables(Path(folder) / "index.db")
        store, index = Store.open(url, MAKING.DEPLOYMENT), Index(url)
        try:
            served = fill(store, url, mix)
            with index.read() as connection:
                yield index, connection, served
        finally:
            index.close()
            store.close()


def pages(read: Callable[[Any], list[Any]], after: Any, key: Callable[[Any], Any]) -> list[Any]:
    """Everything, in pages of two that go on after the last row of the one before."""
    found: list[Any] = []
    while page := read(after):
        assert len(page) <= 2
        found += page
        after = key(page[-1])
    return found


def by_order(
    connection: Connection, order: str, denials: Denials, facet: tuple[str, str] | None
) -> list[Any]:
    """Each name with its key in an order."""
    return pages(
        lambda x: read_listed_by(connection, order, denials, 2, x, facet),
        "",
        lambda x: x[0],
    )


def check(index: Index, connection: Connection, served: list[tuple[str, str]]) -> None:
    denials = index.denial_cache.read(connection)
    newest_first = served[::-1]
    names = sorted({name for name, _ in served})

    for limit in (1, 3, 100):
        for of, wanted in (
            (None, newest_first),
            (("publisher", ACCOUNT), newest_first),
            *((("name", x), [y for y in newest_first if y[0] == x]) for x in NAMES),
        ):
            newest = read_newest_releases(connection, VERIFIED, denials, limit, of)
            assert [(x.name, x.semver) for x in newest] == wanted[:limit]
    for name in NAMES:
        wanted = [x for x in newest_first if x[0] == name]
        like = read_versions_like(connection, name, "1.", 2, serve=VERIFIED, denials=denials)
        assert like == [semver for _, semver in wanted[:2]]

    listed = pages(lambda x: read_names(connection, None, x, 2), "", lambda x: x.name)
    assert [x.name for x in listed] == names
    changed = [x.name for x in read_newest(connection, VERIFIED, 100) if x.release_id is not None]
    assert sorted(changed) == names

    for order in ("newest", "changed", "name"):
        for facet in (None, ("publisher", ACCOUNT)):
            ways = by_order(connection, order, denials, facet)
            assert sorted(x.name for _, x in ways) == names
            with pytest.MonkeyPatch.context() as patch:  # as if very many names had the value
                patch.setattr(catalog, "MANY", 0)
                assert by_order(connection, order, denials, facet) == ways
            if order == "name":
                assert [x.name for _, x in ways] == names
        assert count_listed(connection, ("publisher", ACCOUNT)) == count_listed(connection, None)

    question = BoundReleases("mcp_service")
    bound = pages(
        lambda x: read_bound(connection, question, VERIFIED, denials, x, 2),
        ("", ""),
        lambda x: (x.name, x.semver),
    )
    assert [(x.name, x.semver) for x in bound] == sorted(served)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(FATES)), max_size=14))
@settings(max_examples=25, deadline=None)
def test_pages_give_every_served_release_once_whatever_lies_between(mix: Mix) -> None:
    with filled(mix) as (index, connection, served):
        check(index, connection, served)


def test_every_fate_between_served_releases(
    store: Store, database_url: str, search_index: Index
) -> None:
    mix = [(name, fate) for fate in (*FATES, *FATES) for name in NAMES]
    served = fill(store, database_url, mix)
    with search_index.read() as connection:
        check(search_index, connection, served)


def test_junk_does_not_push_served_releases_out_of_a_list() -> None:
    junk = [("junk", fate) for fate in ("rejected", "pending", "denied", "yanked") * 12]
    with filled([("amber", "served"), *junk]) as (index, connection, served):
        denials = index.denial_cache.read(connection)
        (newest,) = read_newest_releases(connection, VERIFIED, denials, 8)
        assert (newest.name, newest.semver) == served[0]


def test_names_without_a_release_of_a_served_verdict_are_not_among_the_newest_changes() -> None:
    junk = [(f"junk-{number}", "rejected") for number in range(5)]
    waiting = [(f"late-{number}", "pending") for number in range(5)]
    with filled([("amber", "served"), ("birch", "yanked"), *junk, *waiting]) as (_, connection, _):
        newest = read_newest(connection, VERIFIED, 4)
    assert {x.name: x.release_id is None for x in newest} == {"amber": False, "birch": True}
