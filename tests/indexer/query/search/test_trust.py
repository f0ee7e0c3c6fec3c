"""No imitator stands above what it imitates, on any page: 200 cases, by words and by meaning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from threading import Event

import pytest

from capdex.search.encoder import SentenceEncoder, is_installed
from capdex_indexer.query.index import Index
from capdex_indexer.query.search.page import MAX_PAGE
from tests.indexer import making
from tests.indexer.query.search import imitations

MODES = ["words", "meaning"]
CASES = [x for original in imitations.ORIGINALS for x in imitations.of(original)]


def published() -> making.Chain:
    """All originals, then all imitators by another account, then what is said against some."""
    chain = making.Chain()
    for name, title, does, domain, tool, _ in imitations.ORIGINALS:
        made = [making.tool(tool, does)]
        chain.publish(name, title=title, description=does, domain=domain, tools=made)
    for imitation in CASES:
        fields = dict(imitation.fields)
        named = fields.pop("tool", None)
        tools = [making.tool(named, fields["description"])] if named else []
        chain.publish(imitation.case.imitator, publisher=making.OTHER, tools=tools, **fields)
        if imitation.deprecated == "name":
            chain.mine(making.name_deprecated(imitation.case.imitator))
        elif imitation.deprecated:
            chain.mine(making.deprecated(imitation.case.imitator))
    return chain


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The index of them all, to which nothing is written any more."""
    folder = tmp_path_factory.mktemp("trust")
    url = f"sqlite:///{folder / 'index.db'}"
    making.fill(url, published(), folder / "blocks")
    return url


@pytest.fixture(scope="module", params=MODES)
def index(request: pytest.FixtureRequest, url: str) -> Iterator[Index]:
    if request.param == "meaning" and not is_installed():
        pytest.skip("search by meaning is not installed")
    with closing(Index(url)) as index:
        if request.param == "meaning":
            index.follow(None, SentenceEncoder())
            pause = Event()
            while index.live.state is None or index.live.state.engine.unencoded(1):
                pause.wait(0.05)
        yield index


def found(index: Index, query: str) -> list[str]:
    """The names of all pages of a search, in order."""
    names, cursor = [], None
    while True:
        page = index.find(query, limit=MAX_PAGE, cursor=cursor)
        names += [hit.name for hit in page.hits]
        if (cursor := page.next_cursor) is None:
            assert len(names) == len(set(names)) == page.total
            return names


def holds(index: Index, case: imitations.Case) -> bool:
    """True if the original is found, and the imitator is not above it."""
    names = found(index, case.query)
    if case.original not in names:
        return False
    return case.imitator not in names or names.index(case.original) < names.index(case.imitator)


def test_no_imitator_of_two_hundred_stands_above_its_original(index: Index) -> None:
    assert len(CASES) == 200
    assert [x.case for x in CASES if not holds(index, x.case)] == []


def test_an_imitator_is_found_by_its_name_nevertheless(index: Index) -> None:
    for imitation in CASES:
        hits = index.find(imitation.case.imitator, limit=2).hits
        assert imitation.case.imitator in [hit.name for hit in hits], imitation.case
