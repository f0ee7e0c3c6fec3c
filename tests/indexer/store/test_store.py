"""The store on SQLite and PostgreSQL: what is applied, judged, undone and refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.problems import Availability, Reason, Verdict
from capdex.registry.logs import BlockRef, LogHead
from capdex.uri import CapabilityURI
from capdex_indexer.projection.block_range import BlockRange, LogRows
from capdex_indexer.query.index import Index
from capdex_indexer.store import Delay, Deployment, Operator, Store
from capdex_indexer.store.cursor import RING_BLOCKS
from tests.indexer.found import search_page


def resolve(index: Index, text: str, **options: Any) -> Any:
    return index.resolve(CapabilityURI.loose(text), **options)


def test_an_empty_store_has_no_cursor(store: Store, search_index: Index) -> None:
    assert store.cursor() is None
    assert store.ring() == []
    assert search_index.status().block_number is None


def test_rows_and_cursor_are_there_together(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    chain.mine()
    making.append(store, chain)
    head = LogHead()
    for log in chain.logs:
        head = head.fold(log)
    cursor = store.cursor()
    assert cursor is not None
    assert (cursor.block, cursor.log_head) == (chain.head, head)
    assert store.ring() == [block.ref for block in chain.blocks]
    state = search_index.status()
    assert (state.block_number, state.log_count, state.log_head) == (2, 1, "0x" + head.head.hex())
    assert state.by_availability == {"pending": 1}


def test_a_release_is_fetched_judged_and_listed(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note", summary="keeps notes")
    making.append(store, chain)
    (job,) = store.due(0.0, 10)
    assert store.record_many([(job.release_id, making.judge(chain, job))]) == [True]
    assert store.due(1e12, 10) == []
    found = resolve(search_index, "note")
    assert (found.verdict, found.availability) == (Verdict.VERIFIED, Availability.AVAILABLE)
    assert found.latest
    assert found.metadata["summary"] == "keeps notes"
    assert found.signer == making.AUTHOR
    assert found.tx_hash == "0x" + chain.logs[0].position.tx_hash.hex()


def test_a_step_that_was_applied_is_applied_once(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    step = chain.step()
    for _ in range(2):
        store.append(step, making.heads(step))
    assert search_index.status().releases == 1


def test_a_step_that_does_not_follow_the_cursor_is_refused(
    making: Any, store: Store, chain: Any
) -> None:
    making.append(store, chain)
    chain.publish("note")
    step = chain.step(chain.blocks[0].ref)
    stranger = replace(step.upto, parent=b"\x99" * 32)
    for wrong in (
        chain.step(),  # from the beginning again
        replace(step, blocks=(stranger,), upto=stranger),
        replace(step, times={}),  # logs, no block
        replace(step, blocks=(), upto=replace(step.upto, hash=b"\x09" * 32)),  # logs of another one
        replace(step, times={**step.times, step.upto.number + 1: 0}),  # more than it reaches
    ):
        with pytest.raises(Unavailable) as refusal:
            store.append(wrong, making.heads(wrong))
        assert refusal.value.code is Code.STALLED
    with pytest.raises(Unavailable):
        store.append(step, [])
    with pytest.raises(Unavailable):  # as if an event had come before
        store.append(step, making.heads(step, making.BEGINNING._replace(count=1)))
    store.append(step, making.heads(step))


def test_a_failed_transaction_leaves_nothing(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    making.append(store, chain)
    chain.mine(making.yanked("note"), making.published("later", "1.0.0"))
    step = chain.step(store.cursor().block)  # type: ignore[union-attr]
    broken = replace(step, upto=replace(step.upto, timestamp=1 << 70))  # no column holds it
    decoded = making.heads(step, store.cursor().log_head)  # type: ignore[union-attr]
    with pytest.raises(Unavailable):
        store.append(replace(broken, blocks=(broken.upto,)), decoded)
    assert store.cursor().block == chain.blocks[1].ref  # type: ignore[union-attr]
    assert search_index.status().releases == 1
    making.append(store, chain)
    assert search_index.status().releases == 2


def test_what_cannot_be_decoded_is_kept_and_stops_nothing(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    topic, name_id, account, _ = making.published()
    chain.mine((topic, name_id, account, b"\xff" * 64), chain.release("note"))
    making.follow(store, chain)
    assert resolve(search_index, "note").sequence == 2
    state = search_index.status()
    assert (state.undecodable, state.log_count) == (1, 2)
    assert [x["reason"] for x in state.rejections] == ["BAD_EVENT"]


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ({"cap_uri": "did:nuwa:cap:NOTE@1.0.0"}, Reason.BAD_EVENT),
        ({"cap_uri": "did:\0" + "x" * 4000}, Reason.BAD_EVENT),
        ({"cap_uri": "did:nuwa:cap:note@1.0.1"}, Reason.VERSION_MISMATCH),
        ({"version": "\0\U0001f600" * 400, "cap_uri": "did:nuwa:cap:note@1.0.0"}, None),
        ({"cid": "Qm\0"}, Reason.BAD_CID),
        ({"cid": "b" + "a" * 4000}, Reason.BAD_CID),
        ({"cid": "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq"}, None),
        ({"name_id": b"\x77" * 32}, Reason.BAD_EVENT),
    ],
)
def test_an_event_that_lies_is_rejected_at_once_and_never_queued(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    lie: dict[str, Any],
    reason: Reason | None,
) -> None:
    chain.mine(making.published(**lie))
    making.append(store, chain)
    assert store.due(1e12, 10) == []
    (rejection,) = search_index.status().rejections
    assert rejection["verdict"] == "mismatch"
    assert reason is None or rejection["reason"] == reason
    with pytest.raises(Exception, match=r"did:nuwa:cap:note|no capability note"):
        resolve(search_index, "note@1.0.0")


def test_the_first_announcement_of_a_version_stands(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    first, second = chain.release("note"), chain.release("note", summary="another")
    chain.mine(first, second)
    chain.mine(chain.release("note", summary="a third"))
    making.append(store, chain, chain.blocks[1].ref)
    making.append(store, chain)
    making.fetch(store, chain)
    assert resolve(search_index, "note@1.0.0").sequence == 1
    reasons = [(x.sequence, x.reason) for x in search_index.releases("note")]
    assert reasons == [(1, None), (2, Reason.BAD_EVENT), (3, Reason.BAD_EVENT)]


def test_a_reorg_lets_the_other_announcement_stand(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note", summary="first")
    chain.publish("note", summary="second")
    making.follow(store, chain)
    store.rollback(chain.fork(2))
    chain.publish("note", summary="second")
    making.follow(store, chain)
    assert resolve(search_index, "note").metadata["summary"] == "second"


def test_a_verdict_for_a_release_that_was_rolled_back_is_dropped(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note", summary="gone")
    making.append(store, chain)
    (old,) = store.due(0.0, 1)
    late = making.judge(chain, old)
    store.rollback(chain.fork(1))
    chain.publish("note", summary="kept")  # the same sequence again
    making.append(store, chain)
    (new,) = store.due(0.0, 1)
    assert new.release_id != old.release_id
    assert store.record_many([(old.release_id, late), (new.release_id, making.judge(chain, new))])[
        0:2
    ] == [False, True]
    store.delay_many([Delay(old.release_id, "too late", 0.0)])
    store.delay_many([Delay(old.release_id, "too late", reason=Reason.UNAVAILABLE)])
    assert resolve(search_index, "note").metadata["summary"] == "kept"


def test_ids_are_never_used_twice(making: Any, store: Store, chain: Any) -> None:
    seen = set()
    for _ in range(3):
        chain.publish("note")
        making.append(store, chain)
        (job,) = store.due(0.0, 1)
        assert job.release_id not in seen
        seen.add(job.release_id)
        store.rollback(chain.fork(1))


def test_the_latest_yank_event_wins_and_a_reorg_takes_it_back(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note", "1.0.0")
    chain.publish("note", "1.1.0")
    making.follow(store, chain)
    flags = []
    for event in (
        making.yanked("note", "1.1.0", "one"),
        making.unyanked("note", "1.1.0"),
        making.yanked("note", "1.1.0", "two"),
    ):
        chain.mine(event)
        making.append(store, chain)
        found = resolve(search_index, "note@1.1.0")
        flags.append((found.yank_reason, resolve(search_index, "note").semver))
    assert flags == [("one", "1.0.0"), ("", "1.1.0"), ("two", "1.0.0")]
    store.rollback(chain.fork(1))
    assert resolve(search_index, "note").semver == "1.1.0"
    store.rollback(chain.fork(1))
    assert resolve(search_index, "note@1.1.0").yank_reason == "one"
    assert search_page(search_index, "note").hits[0].release.semver == "1.0.0"


def test_a_yank_of_nothing_is_kept_and_concerns_nothing(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    topic, _, account, body = making.yanked("note", "1.0.0")
    foreign = (topic, b"\x05" * 32, account, body)
    chain.mine(making.yanked("note"), making.yanked("N\0", "\0"), foreign, chain.release("note"))
    chain.mine(foreign)
    making.follow(store, chain)
    assert not resolve(search_index, "note").yanked
    assert search_index.status().undecodable == 3


def test_a_yank_reason_of_any_text_is_kept_readable(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(chain.release("note"), making.yanked("note", "1.0.0", "\0" + "é" * 2000))
    making.follow(store, chain)
    reason = resolve(search_index, "note@1.0.0").yank_reason
    assert reason.startswith("\N{SYMBOL FOR NULL}é")
    assert reason.endswith("…")


def test_rollback_restores_the_log_slot_at_any_depth(making: Any, store: Store, chain: Any) -> None:
    slots = []
    for i in range(4):
        chain.publish("note", f"1.0.{i}")
        chain.mine()
        making.append(store, chain)
        slots.append((chain.head, store.cursor().log_head))  # type: ignore[union-attr]
    for block, log in reversed(slots):
        store.rollback(block)
        cursor = store.cursor()
        assert cursor is not None
        assert (cursor.block, cursor.log_head) == (block, log)
        assert store.ring()[-1] == block
    store.rollback(chain.blocks[0].ref)
    assert store.cursor().log_head == LogHead()  # type: ignore[union-attr]


def test_a_fork_above_the_cursor_is_refused(making: Any, store: Store, chain: Any) -> None:
    making.append(store, chain)
    with pytest.raises(Unavailable) as refusal:
        store.rollback(BlockRef(5, b"\x05" * 32, bytes(32), 0))
    assert refusal.value.code is Code.STALLED


def test_the_ring_keeps_the_newest_blocks(store: Store) -> None:
    refs = [
        BlockRef(i, i.to_bytes(32, "big"), max(i - 1, 0).to_bytes(32, "big"), i)
        for i in range(RING_BLOCKS + 20)
    ]
    store.append(BlockRange(LogRows(), {}, tuple(refs[:-1]), refs[-2], len(refs), 0), [])
    store.append(BlockRange(LogRows(), {}, refs[-1:], refs[-1], len(refs), 0), [])  # type: ignore[arg-type]
    assert store.ring() == refs[-RING_BLOCKS:]


def test_the_queue_is_fair_to_every_publisher(making: Any, store: Store, chain: Any) -> None:
    flood = [making.published("flood", f"1.0.{i}") for i in range(20)]
    chain.mine(*flood, making.published("note", publisher=making.OTHER))
    making.append(store, chain)
    first = store.due(0.0, 2)
    assert sorted(x.announcement.cap_uri for x in first) == [
        "did:nuwa:cap:flood@1.0.0",
        "did:nuwa:cap:note@1.0.0",
    ]


def test_a_failed_fetch_waits_and_a_parked_one_until_it_is_armed_again(
    making: Any, store: Store, chain: Any, search_index: Index, database_url: str
) -> None:
    chain.mine(making.published("note"))
    making.append(store, chain)
    (job,) = store.due(0.0, 1)
    store.delay_many([Delay(job.release_id, "no source has \0 it", 50.0)])
    assert store.due(49.0, 1) == []
    (again,) = store.due(50.0, 1)
    assert (again.release_id, again.attempts) == (job.release_id, 1)
    store.delay_many([Delay(job.release_id, "gave up", reason=Reason.UNAVAILABLE)])
    assert store.due(1e12, 1) == []
    (found,) = search_index.releases("note")
    assert (found.availability, found.verdict) == (Availability.PARKED, None)
    assert (found.reason, found.message) == (Reason.UNAVAILABLE, "")  # the log has what was said
    with Operator(database_url) as operator:
        assert operator.rearm("other") == 0
        assert operator.rearm("note") == 1
    assert [x.attempts for x in store.due(1.0, 1)] == [0]


def test_a_parked_release_can_still_be_judged(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    making.append(store, chain)
    (job,) = store.due(0.0, 1)
    store.delay_many([Delay(job.release_id, "slow", reason=Reason.WORKER_LIMIT)])
    assert store.record_many([(job.release_id, making.judge(chain, job))]) == [True]
    assert resolve(search_index, "note").reason is None
    store.delay_many([Delay(job.release_id, "a late worker", reason=Reason.WORKER_LIMIT)])
    assert resolve(search_index, "note").availability is Availability.AVAILABLE


def test_recording_twice_changes_nothing(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    making.append(store, chain)
    (job,) = store.due(0.0, 1)
    judged = making.judge(chain, job)
    assert store.record_many([(job.release_id, judged)] * 2) == [True, True]
    assert store.record_many([(job.release_id, judged)]) == [True]
    assert search_page(search_index, "note").total == 1


def test_two_thousand_releases_of_one_name_list_the_highest(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.mine(*(making.published("note", f"1.0.{i}") for i in range(2000)))
    making.append(store, chain)
    jobs = store.due(0.0, 2000)
    ids = {job.announcement.semver: job.release_id for job in jobs}
    found = making.lasting(chain, "note")
    for i in range(0, 2000, 100):
        store.record_many([(ids[f"1.0.{k}"], found) for k in range(i, i + 100)])
    assert search_page(search_index, "note").hits[0].release.semver == "1.0.1999"


@pytest.mark.parametrize("events", [0, 1])
def test_a_first_block_that_was_looked_for_yields_to_the_one_the_index_began_at(
    making: Any, database_url: str, chain: Any, events: int
) -> None:
    begun = replace(making.DEPLOYMENT, start_block=1)
    for found in (1, 0, 2):  # 0: of an endpoint without old state
        store = Store.open(database_url, replace(begun, start_block=found), keep_start_block=True)
        if events and store.cursor() is None:
            chain.publish("note")
            making.append(store, chain)
        store.close()
        assert store.deployment == begun


def test_a_registry_found_before_the_first_block_of_an_index_with_events_is_another_one(
    making: Any, database_url: str, chain: Any
) -> None:
    begun = replace(making.DEPLOYMENT, start_block=2)
    store = Store.open(database_url, begun, keep_start_block=True)
    chain.mine()
    chain.publish("note")
    making.append(store, chain)
    store.close()
    with pytest.raises(UsageError) as refusal:  # as when a development chain began anew
        Store.open(database_url, replace(begun, start_block=1), keep_start_block=True)
    assert refusal.value.code is Code.FOREIGN_DATABASE


@pytest.mark.parametrize(
    "other",
    [
        lambda x: replace(x, chain_id=1),
        lambda x: replace(x, registry="0x" + "00" * 20),
        lambda x: replace(x, genesis=b"\x12" * 32),
        lambda x: replace(x, start_block=7),
    ],
)
def test_the_database_of_another_registry_is_refused(
    making: Any, database_url: str, other: Callable[[Deployment], Deployment]
) -> None:
    Store.open(database_url, making.DEPLOYMENT).close()
    with pytest.raises(UsageError) as refusal:
        Store.open(database_url, other(making.DEPLOYMENT))
    assert refusal.value.code is Code.FOREIGN_DATABASE
    Store.open(database_url, making.DEPLOYMENT).close()


def test_a_store_reopened_goes_on_where_it_was(making: Any, database_url: str, chain: Any) -> None:
    chain.publish("note")
    with_one = Store.open(database_url, making.DEPLOYMENT)
    making.append(with_one, chain)
    with_one.close()
    again = Store.open(database_url, making.DEPLOYMENT)
    assert again.cursor().block == chain.head  # type: ignore[union-attr]
    assert len(again.due(0.0, 5)) == 1
    again.close()


def test_serving_other_verdicts_lists_again(making: Any, database_url: str, chain: Any) -> None:
    chain.publish("note", bound=False)
    chain.publish("memo")
    index = Index(database_url)
    for serve, names in (
        ({Verdict.VERIFIED}, ["memo"]),
        ({Verdict.VERIFIED, Verdict.SIGNED}, ["memo", "note"]),
        ({Verdict.VERIFIED}, ["memo"]),
    ):
        store = Store.open(database_url, making.DEPLOYMENT, serve=frozenset(serve))
        if store.cursor() is None:
            making.follow(store, chain)
        assert [hit.release.name for hit in search_page(index, "").hits] == names
        store.close()
    both = frozenset({Verdict.VERIFIED, Verdict.SIGNED})
    assert resolve(index, "note", serve=both).verdict is Verdict.SIGNED
    index.close()


def test_errors_keep_the_password_to_themselves() -> None:
    with pytest.raises(Unavailable) as refusal:
        Index("postgresql://me:secret@127.0.0.1:1/none").status()
    assert refusal.value.code is Code.DATABASE_UNAVAILABLE
    assert "secret" not in str(refusal.value.to_json())
    assert "postgresql://me:***@127.0.0.1:1/none" in refusal.value.message


def test_a_password_with_a_sign_of_urls_is_not_shown_as_a_host() -> None:
    with pytest.raises(UsageError) as refusal:
        Index("postgresql://me:half@secret@127.0.0.1:1/none")
    assert refusal.value.code is Code.CONFIG
    assert "%40" in refusal.value.fix
    assert "secret" not in str(refusal.value.to_json())


@pytest.mark.parametrize("url", ["", "mysql://x", "sqlite://", "sqlite:///:memory:", "index.db"])
def test_a_url_that_names_no_index_is_refused(making: Any, url: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Store.open(url, making.DEPLOYMENT)
    assert refusal.value.code is Code.CONFIG
