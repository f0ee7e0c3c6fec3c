"""Reading the index on SQLite and PostgreSQL: the same answers from both."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput, Unavailable, VerificationFailure
from capdex.problems import Reason, Verdict
from capdex.search.query import MAX_QUERY_CHARS
from capdex.uri import CapabilityURI
from capdex.version import Version, latest
from capdex_indexer.projection.event_rows import precedence
from capdex_indexer.query.digest import read_digest
from capdex_indexer.query.index import Index
from capdex_indexer.query.search.filters import SearchFilters
from capdex_indexer.store import Delay, Store
from tests.indexer.found import search_page


def resolve(index: Index, text: str) -> Any:
    return index.resolve(CapabilityURI.loose(text))


def names(index: Index, query: str, **filters: str) -> list[str | None]:
    return [
        hit.release.name for hit in search_page(index, query, SearchFilters.parse(filters)).hits
    ]


@pytest.fixture
def town(making: Any, store: Store, chain: Any, search_index: Index) -> Index:
    """An index of six capabilities."""
    forecast = making.tool("get_forecast", "Look ahead some days", city="which city")
    chain.publish(
        "weather",
        description="Weather of any city, now and tomorrow",
        tags=["Weather", "city"],
        domain="weather",
        license="MIT",
        languages=["en", "zh-CN"],
        tools=[forecast],
        permissions={"require": ["net.fetch"]},
    )
    chain.publish("jizhang", title="记账", description="记录每一笔支出", summary="记账本")
    chain.publish("kaigi", title="会議の予約", description="会議室を予約する")
    chain.publish(
        "note",
        description="Takes notes",
        triggers=[
            {"type": "regex", "value": r"\bmemo\w+|笔记"},
            {"type": "keyword", "value": "jot"},
        ],
    )
    chain.publish("note-taker", description="Note note note note", publisher=making.OTHER)
    chain.publish("rates", title="getExchangeRates", description="Café prices and naïve rates")
    making.follow(store, chain)
    return search_index


WEATHER = ("name", "title", "description", "tags", "domain")


@pytest.mark.parametrize(
    ("query", "found", "matched"),
    [
        ("what will the weather be tomorrow?", "weather", [*WEATHER]),
        ("forecasts", "weather", ["tools"]),
        ("记账", "jizhang", ["title", "summary"]),
        ("账", "jizhang", ["title", "summary"]),
        ("会議", "kaigi", ["title", "description"]),
        ("笔记", "note", ["triggers"]),
        ("jotting", "note", ["triggers"]),
        ("exchange", "rates", ["title"]),
        ("cafe NAIVE", "rates", ["description"]),
        ("note", "note", ["name", "title", "description"]),
        ("Note Taker", "note-taker", ["name", "title", "description"]),
        ("weather \ud800", "weather", [*WEATHER]),
        ("did:nuwa:cap:note@^1", "note", ["name", "title", "description"]),
    ],
)
def test_words_find_what_holds_them(
    town: Index, query: str, found: str, matched: list[str]
) -> None:
    first = search_page(town, query).hits[0]
    assert (first.release.name, list(first.matched)) == (found, matched)


def test_a_package_full_of_strange_words_is_still_found(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    letters = [chr(x) for x in range(0x10428, 0x10450)]  # four bytes each
    words = (
        " ".join(letters[(i + k) % 40] * 30 + letters[k] for k in range(15)) for i in range(64)
    )
    tools = [making.tool(f"tool_{i}", text) for i, text in enumerate(words)]
    chain.publish("odd", description="\ufdfa" * 600, tools=tools, tags=["ß" * 40, "x'\\y"])
    making.follow(store, chain)
    assert names(search_index, letters[0] * 30 + letters[0]) == ["odd"]
    assert names(search_index, "", tag="SS" * 40) == ["odd"]


def test_an_empty_query_lists_by_name(town: Index) -> None:
    everything = ["jizhang", "kaigi", "note", "note-taker", "rates", "weather"]
    assert names(town, "") == names(town, "  \n") == everything


@pytest.mark.parametrize(
    "query", ["!!!", "\0", '"', "zzzz", "\ud800", "'; DROP TABLE release; --zzz", "%zz", "🎉"]
)
def test_words_nobody_uses_find_nothing(town: Index, query: str) -> None:
    page = search_page(town, query)
    assert (page.hits, page.total, page.next_cursor) == ([], 0, None)


@pytest.mark.parametrize(
    "query", ['note" OR weather', "note NOT note", "note*", "name:note", "(note"]
)
def test_a_query_is_words_and_no_language(town: Index, query: str) -> None:
    assert "note" in names(town, query)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"name": "note"}, ["note"]),
        ({"tag": "weather"}, ["weather"]),
        ({"tag": "CITY"}, ["weather"]),
        ({"tag": "cit"}, []),
        ({"domain": "weather"}, ["weather"]),
        ({"language": "zh-cn"}, ["weather"]),
        ({"license": "mit"}, ["weather"]),
        ({"permission": "net.fetch"}, ["weather"]),
        ({"binding": "http_get"}, ["weather"]),
        ({"tool": "get_forecast"}, ["weather"]),
        ({"tool": "GET_FORECAST"}, []),
        ({"tag": "city", "license": "MIT"}, ["weather"]),
        ({"tag": "city", "license": "GPL-3.0"}, []),
        ({"publisher": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}, ["note-taker"]),
        ({"publisher": "eip155:31337:0x70997970c51812dc3a010c7d01b50e0d17dc79c8"}, ["note-taker"]),
        ({"tag": "\0"}, []),
    ],
)
def test_filters_narrow_both_words_and_lists(
    town: Index, filters: dict[str, str], found: list[str]
) -> None:
    assert names(town, "", **filters) == found
    assert set(names(town, "note weather", **filters)) == set(found)


def test_an_author_is_found_by_did_or_by_key(making: Any, town: Index) -> None:
    assert len(names(town, "", author=making.AUTHOR)) == 6
    assert len(names(town, "", author=making.AUTHOR.partition("#")[0])) == 6
    assert names(town, "", author=making.AUTHOR[:-1]) == []


@pytest.mark.parametrize("query", ["", "note weather rates 会議 记账"])
def test_pages_hold_everything_once(town: Index, query: str) -> None:
    whole = [hit.release.name for hit in search_page(town, query).hits]
    seen: list[str | None] = []
    cursor = None
    while True:
        page = search_page(town, query, limit=2, cursor=cursor)
        assert page.total == 6
        seen += [hit.release.name for hit in page.hits]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == whole
    assert len(set(seen)) == 6


def test_a_cursor_of_another_search_is_refused(town: Index) -> None:
    cursor = search_page(town, "", limit=2).next_cursor
    assert cursor is not None
    for query, filters in (("note", {}), ("", {"tag": "city"})):
        with pytest.raises(InvalidInput):
            search_page(town, query, SearchFilters.parse(filters), cursor=cursor)


def test_limits_are_kept(town: Index) -> None:
    with pytest.raises(InvalidInput):
        search_page(town, "x" * (MAX_QUERY_CHARS + 1))
    for limit in (0, 51, -1):
        with pytest.raises(InvalidInput):
            search_page(town, "", limit=limit)
    assert search_page(town, "".join(map(chr, range(0x4E00, 0x5000)))).total >= 0


@given(query=st.text(st.characters(), max_size=80))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_is_a_query(town: Index, query: str) -> None:
    page = search_page(town, query)
    assert page.total >= len(page.hits)
    assert all(hit.matched or not query.strip() for hit in page.hits)


def test_a_newer_release_takes_the_place_of_an_older(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note", "1.0.0", summary="about apples")
    making.follow(store, chain)
    chain.publish("note", "1.1.0", summary="about pears")
    chain.publish("note", "2.0.0-rc.1", summary="about plums")
    making.follow(store, chain)
    assert names(search_index, "apples") == names(search_index, "plums") == []
    assert names(search_index, "pears") == ["note"]
    flags = [(x.semver, x.latest) for x in search_index.releases("note")]
    assert flags == [("2.0.0-rc.1", False), ("1.1.0", True), ("1.0.0", False)]
    chain.mine(making.yanked("note", "1.1.0"), making.yanked("note", "1.0.0"))
    making.append(store, chain)
    assert names(search_index, "plums") == ["note"]
    assert resolve(search_index, "note").semver == "2.0.0-rc.1"


@pytest.mark.parametrize(
    ("uri", "semver"),
    [
        ("note", "1.10.0"),
        ("note@^1", "1.10.0"),
        ("note@~1.2", "1.2.9"),
        ("note@<1.2", "1.1.0"),
        ("note@2.0.0-rc.1", "2.0.0-rc.1"),
        ("note@>=2.0.0-rc.0", "2.0.0-rc.1"),
    ],
)
def test_a_uri_means_the_version_that_npm_would_take(
    making: Any, store: Store, chain: Any, search_index: Index, uri: str, semver: str
) -> None:
    versions = ("1.1.0", "1.10.0", "1.2.9", "1.9.0", "2.0.0-rc.1")
    chain.mine(*(chain.release("note", version) for version in versions))
    making.follow(store, chain)
    assert resolve(search_index, uri).semver == semver


def test_only_an_exact_uri_finds_a_yanked_release(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(chain.release("note"), making.yanked("note", "1.0.0", "leaks"))
    making.follow(store, chain)
    assert resolve(search_index, "note@1.0.0").warnings == ['this release was yanked: "leaks"']
    for uri in ("note", "note@^1"):
        with pytest.raises(InvalidInput) as refusal:
            resolve(search_index, uri)
        assert refusal.value.code is Code.YANKED
        assert refusal.value.why == 'the reason given: "leaks"'
        assert refusal.value.details == {"cap_uri": "did:nuwa:cap:note@1.0.0"}  # a reason is a code


def test_what_is_announced_but_not_fetched_is_pending(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(making.published("note"))
    making.append(store, chain)
    for uri in ("note", "note@1.0.0", "note@1.x"):
        with pytest.raises(Unavailable) as refusal:
            resolve(search_index, uri)
        assert refusal.value.code is Code.PENDING
        assert refusal.value.why.endswith("or this node cannot keep or judge them")
        assert refusal.value.details is not None
        assert refusal.value.details["availability"] == "pending"
    (job,) = store.due(0.0, 1)
    failure = "gateway:https://key.example/key did not give the block: no such key"
    store.delay_many([Delay(job.release_id, failure, 1.0)])
    with pytest.raises(Unavailable) as refusal:
        resolve(search_index, "note")
    assert "key" not in str(refusal.value.to_json())  # sources and their words are not for clients
    assert [x.message for x in search_index.releases("note")] == [""]
    store.delay_many([Delay(job.release_id, failure, reason=Reason.UNAVAILABLE)])
    assert [x.message for x in search_index.releases("note")] == [""]
    with pytest.raises(Unavailable) as refusal:
        resolve(search_index, "note")
    assert "key" not in str(refusal.value.to_json())
    assert refusal.value.details == {
        "cap_uri": "did:nuwa:cap:note@1.0.0",
        "availability": "parked",
        "reason": "UNAVAILABLE",
    }


def test_what_was_rejected_is_unverified(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(chain.release("note", bound=False), making.published("memo", cid="Qm"))
    making.follow(store, chain)
    for uri, verdict, reason in (
        ("note@1.0.0", "signed", "NOT_BOUND"),
        ("note", "signed", "NOT_BOUND"),
        ("memo@^1", "mismatch", "BAD_CID"),
    ):
        with pytest.raises(VerificationFailure) as refusal:
            resolve(search_index, uri)
        details = refusal.value.details
        assert details is not None
        assert (details["verdict"], details["reason"]) == (verdict, reason)


def test_what_is_newer_but_not_served_is_warned_of(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(chain.release("note"), making.published("note", "1.1.0"))
    making.follow(store, chain)
    assert resolve(search_index, "note").warnings == [
        "did:nuwa:cap:note@1.1.0 is newer but its package has not been fetched yet"
    ]
    assert resolve(search_index, "note@1.0.0").warnings == []
    assert resolve(search_index, "note@<1.1").warnings == []
    chain.mine(making.yanked("note", "1.1.0"), chain.release("note", "1.2.0", bound=False))
    making.follow(store, chain)
    assert resolve(search_index, "note").warnings == [
        "did:nuwa:cap:note@1.2.0 is newer but is signed (NOT_BOUND)"
    ]


def test_a_name_mistyped_is_answered_with_the_nearest(town: Index) -> None:
    for typed, meant in (("wether", "weather"), ("nots", "note"), ("zates", "rates")):
        with pytest.raises(InvalidInput) as refusal:
            resolve(town, typed)
        assert refusal.value.code is Code.NOT_FOUND
        assert refusal.value.details is not None
        assert refusal.value.details["did_you_mean"][0] == f"did:nuwa:cap:{meant}"
    with pytest.raises(InvalidInput) as refusal:
        resolve(town, "note@9.9.9")
    assert refusal.value.details == {"versions": ["1.0.0"]}


def test_an_unknown_version_is_answered_with_those_to_choose_first(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(*(chain.release("note", x) for x in ("1.0.0", "1.1.0", "1.2.0", "2.0.0-rc.1")))
    chain.mine(making.yanked("note", "1.2.0"))
    making.follow(store, chain)
    with pytest.raises(InvalidInput) as refusal:
        resolve(search_index, "note@9.9.9")
    chosen = ["1.1.0", "1.0.0", "2.0.0-rc.1", "1.2.0"]
    assert refusal.value.fix == f"choose one, the best first: {', '.join(chosen)}"


def test_a_release_is_final_once_its_block_is(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    making.follow(store, chain)
    assert resolve(search_index, "note").finality == "head"
    chain.mine()
    chain.mine()
    making.append(store, chain)
    assert resolve(search_index, "note").finality == "finalized"


def test_the_state_says_how_long_the_oldest_release_waits(
    making: Any, database_url: str, chain: Any
) -> None:
    store = Store.open(database_url, making.DEPLOYMENT, clock=lambda: 1000.0)
    now = [1030.0]
    index = Index(database_url, clock=lambda: now[0])
    chain.mine(making.published("note"))
    making.append(store, chain)
    assert index.status().oldest_pending_s == 30.0
    now[0] = 1040.0
    assert index.status().oldest_pending_s == 40.0
    assert index.heartbeat()[0].block_number == 1
    state = index.status()
    assert (state.chain_id, state.registry) == (31337, making.DEPLOYMENT.registry)
    index.close()
    store.close()


def test_a_pause_between_counts_does_not_hide_the_first_block(
    making: Any, store: Store, database_url: str, chain: Any
) -> None:
    index = Index(database_url, recount_pause=1e9)
    assert index.status().index_digest is None  # a node reads its status before its first block
    chain.mine()
    making.append(store, chain)
    first = index.status()
    with index.read() as connection:
        digest = read_digest(connection).to_json()["index_digest"]
    assert (first.block_number, first.index_digest) == (1, digest)
    chain.mine()
    making.append(store, chain)
    assert index.status() == first
    index.close()


def test_nobody_has_releases_of_an_unknown_name(store: Store, search_index: Index) -> None:
    assert search_index.releases("nothing") == []
    assert search_index.releases("\0") == []


def test_a_rejected_release_is_listed_only_where_its_verdict_is_served(
    making: Any, database_url: str, chain: Any
) -> None:
    serve = frozenset({Verdict.VERIFIED, Verdict.SIGNED})
    store = Store.open(database_url, making.DEPLOYMENT, serve=serve)
    chain.publish("note", bound=False, summary="openly unbound")
    making.follow(store, chain)
    index = Index(database_url)
    assert names(index, "unbound") == ["note"]
    index.close()
    store.close()


_identifiers = st.one_of(
    st.integers(0, 10**15 - 1).map(str),
    st.from_regex(r"[0-9]{0,3}[A-Za-z-][0-9A-Za-z-]{0,3}", fullmatch=True),
)
_versions = st.builds(
    lambda core, tail: Version.parse(
        ".".join(map(str, core)) + ("-" + ".".join(tail) if tail else "")
    ),
    st.tuples(*[st.integers(0, 12)] * 3),
    st.lists(_identifiers, max_size=3),
)


@given(st.lists(_versions, min_size=2, max_size=6))
def test_precedence_orders_versions_as_semver_does(versions: list[Version]) -> None:
    assert sorted(versions) == sorted(versions, key=precedence)
    highest = max(versions, key=lambda x: (x.stable, precedence(x)))
    assert latest(versions) == highest
