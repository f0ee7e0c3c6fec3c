"""Who was first to use a Schema URI or a memory scope is told wherever another name uses it too."""

from __future__ import annotations

from typing import Any

from capdex.problems import Verdict
from capdex.uri import CapabilityURI
from capdex_indexer.query.index import Index
from capdex_indexer.query.release import IndexedRelease
from capdex_indexer.store import Store
from tests.indexer.found import search_page

NOBODY = {"schema_uri": None, "memory_scope": None}
SHARED: dict[str, Any] = {"schema_uri": "did:nuwa:state:diary#v1", "memory_scope": "sc:diary"}


def resolve(index: Index, text: str) -> IndexedRelease:
    return index.resolve(CapabilityURI.loose(text))


def first(index: Index, name: str) -> Any:
    """Who was first with what a name's latest release uses: one name or None for both."""
    by = resolve(index, name).first_claimed_by
    assert by["schema_uri"] == by["memory_scope"]
    return by["schema_uri"]


def test_another_name_is_flagged_with_the_first_claimant_and_the_first_is_not(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note", "1.0.0", **SHARED)
    chain.publish("memo", "1.0.0", memory_scope="sc:diary")
    chain.publish("note", "1.1.0", **SHARED)
    chain.publish("other", "1.0.0")
    making.follow(store, chain)
    for version in ("1.0.0", "1.1.0"):
        note = resolve(search_index, f"note@{version}")
        assert (note.first_claimed_by, note.warnings) == (NOBODY, [])
    assert resolve(search_index, "other").first_claimed_by == NOBODY
    memo = resolve(search_index, "memo")
    assert memo.first_claimed_by == {"schema_uri": None, "memory_scope": "note"}
    assert memo.warnings == [
        'memory_scope "sc:diary" was first used by did:nuwa:cap:note (release 1.0.0)'
    ]
    by_name = {hit.release.name: hit.release for hit in search_page(search_index, "").hits}
    assert by_name["memo"] == memo
    assert search_index.releases("memo") == [memo]


def test_all_versions_of_a_schema_uri_belong_to_its_first_claimant(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note", "1.0.0", schema_uri="did:nuwa:state:diary#v1")
    chain.publish("memo", "1.0.0", schema_uri="did:nuwa:state:diary#v2")
    chain.publish("diary", "1.0.0", schema_uri="did:nuwa:state:diary-2#v1")
    making.follow(store, chain)
    memo = resolve(search_index, "memo")
    assert memo.first_claimed_by == {"schema_uri": "note", "memory_scope": None}
    assert memo.warnings == [
        "schema did:nuwa:state:diary was first used by did:nuwa:cap:note (release 1.0.0)"
    ]
    assert resolve(search_index, "diary").first_claimed_by == NOBODY


def test_who_was_first_is_told_by_the_chain_and_not_by_the_order_of_judging(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    for name in ("first", "second", "third"):
        chain.publish(name, **SHARED)
    making.append(store, chain)
    jobs = store.due(1e12, 10)
    seen = []
    for job in reversed(jobs):
        store.record_many([(job.release_id, making.judge(chain, job))])
        names = [x.release.name for x in search_page(search_index, "").hits]
        seen.append({name: first(search_index, str(name)) for name in names})
    assert seen == [
        {"third": None},
        {"second": None, "third": "second"},
        {"first": None, "second": "first", "third": "first"},
    ]


def test_the_next_one_is_first_when_a_fork_undoes_the_first(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("before")
    chain.publish("note", **SHARED)
    making.follow(store, chain)
    store.rollback(chain.fork(1))
    chain.publish("memo", **SHARED)
    chain.publish("note", **SHARED)
    making.follow(store, chain)
    assert (first(search_index, "memo"), first(search_index, "note")) == (None, "memo")


def test_releases_that_are_not_verified_claim_nothing_and_are_flagged_all_the_same(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("early", bound=False, **SHARED)
    chain.publish("note", **SHARED)
    chain.publish("late", bound=False, **SHARED)
    forged = making.package_bytes("forged", **SHARED).replace(b"Do it", b"Do so")
    chain.publish("forged", data=forged)
    chain.mine(making.published("soon", digest=b"\x33" * 32))
    making.follow(store, chain)
    assert first(search_index, "note") is None
    signed = frozenset({Verdict.SIGNED})
    late = search_index.resolve(CapabilityURI.loose("late"), serve=signed)
    assert late.first_claimed_by == {"schema_uri": "note", "memory_scope": "note"}
    assert len(late.warnings) == 2
    for name in ("early", "soon"):
        (one,) = search_index.releases(name)
        assert (one.first_claimed_by, one.warnings) == (NOBODY, [])
    assert search_index.releases("forged")[0].first_claimed_by["schema_uri"] == "note"


def test_a_yank_takes_no_claim_away(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(chain.release("note", **SHARED), making.yanked("note"))
    chain.publish("memo", **SHARED)
    making.follow(store, chain)
    assert first(search_index, "memo") == "note"


def test_a_memory_scope_of_any_text_is_compared_as_it_is_written(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    strange = "\N{SMILING FACE WITH OPEN MOUTH} '; DROP TABLE release --"
    for name, scope in (("note", strange), ("memo", strange.lower()), ("copy", strange)):
        chain.publish(name, memory_scope=scope)
    making.follow(store, chain)
    assert resolve(search_index, "memo").first_claimed_by == NOBODY
    assert resolve(search_index, "copy").first_claimed_by["memory_scope"] == "note"
