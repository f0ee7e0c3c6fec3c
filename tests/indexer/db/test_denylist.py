"""What an operator denies: gone from every answer, back when undenied, and in no digest."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capdex.encoding.multiformats import write_varint
from capdex.errors import Code, InvalidInput
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex.uri import CapabilityURI
from capdex_indexer.db import denylist
from capdex_indexer.db.engine import open_reader, transaction
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.digest import read_digest
from capdex_indexer.query.index import Index
from capdex_indexer.store import Operator, Store
from tests.indexer.found import search_page

# The best of each name first.
PAIRS = [("note", "1.1.0"), ("note", "1.0.0"), ("note", "2.0.0-rc.1"), ("weather", "1.0.0")]


@pytest.fixture
def operator(database_url: str, store: Store) -> Iterator[Operator]:
    opened = Operator(database_url, clock=lambda: 1_700_000_000.5)
    yield opened
    opened.close()


@pytest.fixture
def filled(store: Store, chain: Any, making: Any) -> Any:
    for name, version in PAIRS:
        chain.publish(name, version)
    making.follow(store, chain)
    return chain


def listed(index: Index) -> dict[str, str]:
    """The version of each name that search answers with."""
    page = search_page(index, "")
    assert page.total == len(page.hits)
    found = {str(hit.release.name): hit.release.semver for hit in page.hits}
    for name, semver in found.items():  # by words, too
        assert name in [hit.release.name for hit in search_page(index, name).hits], semver
    return found


def latest(index: Index, name: str) -> str:
    return index.resolve(CapabilityURI.parse(f"did:nuwa:cap:{name}")).semver


def cid_of(index: Index, name: str, version: str) -> str:
    return next(x.cid for x in index.releases(name) if x.semver == version)


def refusal(index: Index, uri: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        index.resolve(CapabilityURI.parse(f"did:nuwa:cap:{uri}"))
    return caught.value


def test_a_denied_name_is_in_no_answer_until_it_is_undenied(
    filled: Any, search_index: Index, operator: Operator
) -> None:
    operator.deny("did:nuwa:cap:note", "a court said so")
    assert listed(search_index) == {"weather": "1.0.0"}
    for uri in ("note", "note@1.0.0", "note@^1", "note@9.9.9"):
        error = refusal(search_index, uri)
        assert error.code is Code.NOT_FOUND
        assert error.message.startswith("this node's operator refuses it")
        denied = {"reason": "a court said so", "at": 1_700_000_000}
        assert error.to_json()["details"]["denied"] == denied
    found = search_index.releases("note")
    assert [x.semver for x in found] == ["2.0.0-rc.1", "1.1.0", "1.0.0"]
    assert all(x.denied and x.metadata is None and not x.latest for x in found)
    assert operator.undeny("note")
    assert listed(search_index) == {"note": "1.1.0", "weather": "1.0.0"}
    assert latest(search_index, "note") == "1.1.0"
    assert all(x.denied is None and x.metadata for x in search_index.releases("note"))


def test_a_name_that_looks_like_a_denied_one_is_not_suggested_instead(
    filled: Any, search_index: Index, operator: Operator
) -> None:
    operator.deny("weather")
    assert refusal(search_index, "weathe").details == {"did_you_mean": []}


def test_of_a_name_with_a_denied_release_the_next_best_is_listed(
    filled: Any, search_index: Index, operator: Operator
) -> None:
    operator.deny(cid_of(search_index, "note", "1.1.0"))
    assert listed(search_index) == {"note": "1.0.0", "weather": "1.0.0"}
    found = search_index.resolve(CapabilityURI.parse("did:nuwa:cap:note"))
    assert found.semver == "1.0.0"
    assert any("operator refuses" in x and "1.1.0" in x for x in found.warnings)
    assert "denied" in (refusal(search_index, "note@1.1.0").details or {})
    assert "1.1.0" not in str(refusal(search_index, "note@3.0.0").details)
    shown = {x.semver: x.denied for x in search_index.releases("note")}
    assert [semver for semver, denied in shown.items() if denied] == ["1.1.0"]
    operator.deny(cid_of(search_index, "note", "1.0.0"))
    assert listed(search_index)["note"] == "2.0.0-rc.1"
    operator.deny(cid_of(search_index, "note", "2.0.0-rc.1"), "all of it")
    assert "note" not in listed(search_index)
    assert "denied" in (refusal(search_index, "note").details or {})


def test_what_is_published_later_under_a_denied_name_or_cid_is_denied_too(
    store: Store, chain: Any, making: Any, search_index: Index, operator: Operator
) -> None:
    later = making.package_bytes("later")
    operator.deny("note")
    operator.deny(Cid.of(later).text)
    chain.publish("note")
    chain.publish("later", data=later)
    chain.publish("weather")
    making.follow(store, chain)
    assert listed(search_index) == {"weather": "1.0.0"}
    assert {x.verdict for x in search_index.releases("later")} == {Verdict.VERIFIED}
    chain.fork(1)  # a reorganisation takes releases back, and no denial
    chain.publish("weather", "1.1.0")
    store.rollback(chain.blocks[-2].ref)
    making.follow(store, chain)
    assert listed(search_index) == {"weather": "1.1.0"}
    assert len(operator.denials()) == 2


def test_a_restart_that_lists_everything_again_lists_nothing_denied(
    filled: Any,
    store: Store,
    search_index: Index,
    operator: Operator,
    database_url: str,
    making: Any,
) -> None:
    operator.deny("weather")
    operator.deny(cid_of(search_index, "note", "1.1.0"))
    store.close()
    both = frozenset({Verdict.VERIFIED, Verdict.SIGNED})
    again = Store.open(database_url, making.DEPLOYMENT, serve=both)
    try:
        assert listed(search_index) == {"note": "1.0.0"}
        operator.undeny("weather")  # by the verdicts that the node serves now
        assert listed(search_index) == {"note": "1.0.0", "weather": "1.0.0"}
    finally:
        again.close()


def test_a_denied_version_0_cid_is_denied_in_every_spelling(
    store: Store, chain: Any, making: Any, search_index: Index, operator: Operator
) -> None:
    data = making.package_bytes("old")
    block = dag_pb(data)
    prefix = b"\x12\x20"
    chain.publish("old", data=data, cid=lambda _: spelled(prefix, block))
    making.follow(store, chain)
    for subject in (b"\x12\x20", b"\x01\x70\x12\x20", b"\x01\x55\x12\x20"):
        operator.deny(spelled(subject, block))
        assert listed(search_index) == {}
        operator.undeny(spelled(subject, block))
        assert listed(search_index) == {"old": "1.0.0"}
    operator.deny(Cid.of(data).text)  # the digest that is on chain
    assert listed(search_index) == {}


def spelled(prefix: bytes, block: bytes) -> str:
    return Cid.from_bytes(prefix + hashlib.sha256(block).digest()).text


def dag_pb(data: bytes) -> bytes:
    """A file in one dag-pb block."""
    size = write_varint(len(data))
    inner = b"\x08\x02\x12" + size + data + b"\x18" + size
    return b"\x0a" + write_varint(len(inner)) + inner


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=8))
def test_whatever_is_denied_and_undenied_the_digest_stays_and_the_answers_follow(
    steps: list[tuple[bool, int]],
    filled: Any,
    store: Store,
    search_index: Index,
    operator: Operator,
    database_url: str,
) -> None:
    cids = {pair: cid_of(search_index, *pair) for pair in PAIRS}
    subjects = [*cids.values(), "note", "weather"]
    for subject in subjects:
        operator.undeny(subject)
    before = digests(database_url)
    denied: set[str] = set()
    for deny, which in steps:
        subject = subjects[which]
        if deny:
            operator.deny(subject)
        else:
            assert operator.undeny(subject) is (subject in denied)
        denied = denied | {subject} if deny else denied - {subject}
        free = [x for x in PAIRS if not {x[0], cids[x]} & denied]
        assert listed(search_index) == dict(reversed(free))
        for name, version in PAIRS:
            uri = f"did:nuwa:cap:{name}@{version}"
            if (name, version) in free:
                assert search_index.resolve(CapabilityURI.parse(uri)).cap_uri == uri
            else:
                assert "denied" in (refusal(search_index, f"{name}@{version}").details or {})
    assert digests(database_url) == before


def digests(url: str) -> Any:
    engine = open_reader(url)
    try:
        with transaction(engine) as connection:
            return read_digest(connection)
    finally:
        engine.dispose()


def test_a_refusal_says_what_to_do_and_nothing_of_the_name(operator: Operator) -> None:
    for subject in ("", "no name!", "did:nuwa:cap:", "../etc"):
        with pytest.raises(InvalidInput) as caught:
            operator.deny(subject)
        assert caught.value.fix


def test_an_operator_beside_a_writer_at_work_leaves_nothing_denied_in_the_listing(
    store: Store, chain: Any, making: Any, search_index: Index, operator: Operator
) -> None:
    """Whoever comes second waits: neither fails, and no listing is one denial behind."""
    versions = [f"1.0.{i}" for i in range(12)]
    started, over = Event(), Event()

    def work() -> None:
        try:
            for version in versions:
                chain.publish("note", version)
                making.follow(store, chain)
                started.set()
        finally:
            over.set()
            started.set()

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(work)
        started.wait()
        while not over.is_set():
            operator.deny("note")
            assert listed(search_index) == {}
            operator.undeny("note")
        operator.deny("note")
        writer.result()
    assert listed(search_index) == {}
    assert len(search_index.releases("note")) == len(versions)
    operator.undeny("note")
    assert listed(search_index) == {"note": versions[-1]}


# the gateway ----------------------------------------------------------------------------------


@pytest.fixture
async def node(
    search_index: Index, block_directory: BlockDirectory, serving: Any
) -> AsyncIterator[Any]:
    async with serving.serve(Surface(search_index, block_directory, Health())) as node:
        yield node


async def status(node: Any, cid: object, form: str = "raw") -> int:
    return int((await node(f"/ipfs/{cid}?format={form}")).status)


async def test_the_gateway_refuses_what_is_denied_and_says_that_it_is_gone_on_purpose(
    filled: Any, node: Any, search_index: Index, operator: Operator
) -> None:
    cids = {pair: cid_of(search_index, *pair) for pair in PAIRS}
    for data in filled.packages.values():
        node.surface.blocks.write(data)
    operator.deny("note", "it lies")
    for form in ("raw", "car"):
        assert {x: await status(node, cids[x], form) for x in PAIRS} == {
            x: 410 if x[0] == "note" else 200 for x in PAIRS
        }
    answer = await node(f"/ipfs/{cids[PAIRS[0]]}?format=raw", If_None_Match="*")
    assert (answer.status, answer.headers["Cache-Control"]) == (410, "no-store")
    assert b"it lies" in answer.body
    operator.undeny("note")
    operator.deny(cids["weather", "1.0.0"])
    assert [await status(node, cids[x]) for x in PAIRS] == [200, 200, 200, 410]
    assert await status(node, Cid.of(b"never seen")) == 404
    operator.deny(Cid.of(b"never seen").text)
    assert await status(node, Cid.of(b"never seen")) == 410


async def test_a_file_is_refused_under_its_other_cid_too(
    store: Store, node: Any, operator: Operator
) -> None:
    data = b"the same file"
    block = dag_pb(data)
    old, new, raw = (
        Cid.parse(spelled(b"\x12\x20", block)),
        Cid.parse(spelled(b"\x01\x70\x12\x20", block)),
        Cid.of(data),
    )
    node.surface.blocks.keep(old, block)
    node.surface.blocks.write(data)
    for subject in (old, new, raw):
        assert [await status(node, x, "car") for x in (old, new, raw)] == [200, 200, 200]
        operator.deny(subject.text)
        assert [await status(node, x, "car") for x in (old, new, raw)] == [410, 410, 410]
        operator.undeny(subject.text)


async def test_a_stranger_cannot_have_anothers_bytes_denied_by_announcing_them(
    store: Store, chain: Any, making: Any, node: Any, search_index: Index, operator: Operator
) -> None:
    data = making.package_bytes("weather")
    chain.publish("weather", data=data)
    chain.publish("bad", data=data)
    making.follow(store, chain)
    node.surface.blocks.write(data)
    operator.deny("bad")
    assert await status(node, Cid.of(data)) == 200
    assert listed(search_index) == {"weather": "1.0.0"}


def test_denials_are_read_again_only_when_the_index_has_changed(
    filled: Any, store: Store, operator: Operator, database_url: str
) -> None:
    policy, engine = denylist.DenialCache(), open_reader(database_url)
    try:
        with transaction(engine) as connection:
            first = policy.read(connection)
            assert policy.read(connection) is first
        operator.deny("note")
        with transaction(engine) as connection:
            assert policy.read(connection).by_name.keys() == {"note"}
    finally:
        engine.dispose()
