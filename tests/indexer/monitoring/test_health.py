"""Whether the node is well, as the reports of its walk change it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capdex.codes import error_codes
from capdex.errors import Code, Unavailable
from capdex.net.rpc.endpoint import EndpointState
from capdex.net.rpc.errors import RpcFault, rpc_error
from capdex.net.rpc.pacing import Circuit
from capdex.registry.logs import BlockRef
from capdex_indexer.db.heartbeat import Heartbeat
from capdex_indexer.monitoring.health import DEPTHS, Health
from capdex_indexer.query.status import Position
from capdex_indexer.sync.loop import SyncProgress

BORN = 1_700_000_000  # block 0; a block a second


def walked(number: int | None, head: int, **more: object) -> SyncProgress:
    """A report of the walk at block `number`."""
    block = None if number is None else BlockRef(number, bytes(32), bytes(32), BORN + number)
    return SyncProgress(block, head, **more)  # type: ignore[arg-type]


def trouble(code: Code = Code.RPC_UNAVAILABLE, **more: Any) -> Unavailable:
    return Unavailable("no endpoint answers", code, **more)


@pytest.fixture
def health() -> Health:
    return Health(clock=lambda: BORN + 100.0)


def test_before_any_report_the_node_is_in_backfill_and_knows_no_lag(health: Health) -> None:
    assert health.faults() == [{"code": "BACKFILL", "message": "the chain is not read yet"}]
    assert health.lag_s() is None
    assert not health.following


def test_a_node_that_no_endpoint_has_answered_says_why_and_not_backfill() -> None:
    error = rpc_error("https://x", RpcFault.RATE, "quota used up")
    silent = EndpointState("https://x", True, Circuit.OPEN, 7.0, 0.0, error)
    endpoints = [silent, replace(silent, error=None)]
    health = Health(endpoints=lambda: endpoints)
    assert [x["code"] for x in health.faults()] == ["BACKFILL"]  # the second may answer
    endpoints[1] = silent
    (fault,) = health.faults()
    assert (fault["code"], fault["message"][-18:]) == ("RATE_LIMITED", "asked again in 7 s")
    assert health.beat().code == "RATE_LIMITED"  # readers say the same
    health.report(walked(10, 90))
    assert [x["code"] for x in health.faults()] == ["BACKFILL"]  # it was answered once


def test_an_index_without_blocks_has_not_reached_a_head_at_block_0(health: Health) -> None:
    health.report(walked(None, 0))
    assert not health.following
    assert health.lag_s() is None


def test_the_backfill_ends_at_the_head(health: Health) -> None:
    health.report(walked(10, 90))
    assert health.faults() == [{"code": "BACKFILL", "message": "at block 10 of 90"}]
    health.report(walked(90, 90))
    assert health.faults() == []
    assert health.following


def test_whoever_has_followed_once_stays_ready_a_few_blocks_behind(health: Health) -> None:
    health.report(walked(90, 90))
    health.report(walked(90, 95))
    assert health.faults() == []


def test_a_head_that_fell_behind_the_index_counts_as_reached(health: Health) -> None:
    health.report(walked(90, 88))  # an endpoint that is behind the one before it
    assert health.following
    assert health.lag_s() == 0


def test_the_lag_is_the_age_of_the_block_until_the_head_is_reached(health: Health) -> None:
    health.report(walked(10, 90))
    assert health.lag_s() == 90
    health.report(walked(90, 90))
    assert health.lag_s() == 0  # a chain without new blocks is not behind


def test_the_lag_grows_from_the_last_time_at_the_head_while_there_is_trouble() -> None:
    now = [1000.0]
    health = Health(clock=lambda: BORN + 5000.0, timer=lambda: now[0])
    health.report(walked(90, 90))
    now[0] += 10
    health.report(walked(90, 90, trouble=trouble()))
    assert health.lag_s() == 10
    now[0] += 5000
    assert health.lag_s() == 5000.0 - 90.0  # the block cannot have been missed before it was made


def test_an_endpoint_that_hangs_is_not_taken_for_a_head_that_stands_still() -> None:
    now = [1000.0]
    health = Health(clock=lambda: BORN + 5000.0, timer=lambda: now[0])
    for _ in range(3):
        now[0] += 29
        health.report(walked(90, 90))  # the endpoint has said again that there is no newer block
        assert health.lag_s() == 0
    now[0] += 31
    assert health.lag_s() == 31
    health.report(walked(90, 90))
    assert health.lag_s() == 0


def test_a_clock_that_is_behind_the_chain_says_nothing_of_the_lag(health: Health) -> None:
    health.report(walked(500, 900))
    assert health.lag_s() is None


@pytest.mark.parametrize("day_s", [-86_400.0, 86_400.0])
def test_a_clock_off_by_a_day_fools_neither_lag_nor_readiness(day_s: float) -> None:
    clock, timer = [BORN + 90.0 + day_s], [0.0]
    health = Health(clock=lambda: clock[0], timer=lambda: timer[0])
    health.report(walked(10, 90))
    assert health.lag_s() in (None, 80.0 + 86_400.0)  # never less than it is
    assert health.faults()[0]["code"] == "BACKFILL"
    health.report(walked(90, 90))
    assert health.lag_s() == 0
    for second in range(3):
        clock[0], timer[0] = clock[0] + 1, timer[0] + 1
        health.report(walked(90 + second, 91 + second))
        assert health.lag_s() == 1  # the time since it was at the head
        health.report(walked(91 + second, 91 + second))
        assert health.lag_s() == 0
    assert health.faults() == []
    [warning] = health.warnings()
    assert warning["code"] == "CLOCK"
    assert ("ahead of" if day_s > 0 else "behind") in warning["message"]
    clock[0] -= day_s
    health.report(walked(94, 94))
    assert health.warnings() == []


def test_an_old_block_at_a_quiet_head_is_no_fault_of_the_clock() -> None:
    health = Health(clock=lambda: BORN + 90.0 + 86_400.0)
    health.report(walked(10, 90))
    health.report(walked(90, 90))
    assert health.warnings() == []


# who watches a writer -------------------------------------------------------------------------


def seen(number: int | None = 90, head: int = 90) -> Position:
    """What the rows of the index say."""
    digest = None if number is None else "0x" + "00" * 32
    born = None if number is None else BORN + number
    return Position(number, digest, born, head, 0, 0, "0x" + "00" * 24)


def beat(beats: int, head: int = 90, **more: object) -> Heartbeat:
    """A heartbeat of a writer at the head of the chain."""
    return Heartbeat(head, 0, **({"following": True, "beats": beats} | more))  # type: ignore[arg-type]


def test_a_reader_is_ready_once_it_has_heard_the_writers_heart_beat() -> None:
    now = [0.0]
    health = Health(clock=lambda: BORN + 100.0, timer=lambda: now[0])
    health.observe(seen(), None)
    assert [x["code"] for x in health.faults()] == ["NO_WRITER"]
    health.observe(seen(), beat(7))
    assert [x["code"] for x in health.faults()] == ["NO_WRITER"]  # it may be years old
    health.observe(seen(), beat(8))
    assert health.faults() == []
    assert health.lag_s() == 0
    now[0] += 29
    assert health.faults() == []  # a standby needs ten seconds
    now[0] += 2
    assert [x["code"] for x in health.faults()] == ["NO_WRITER"]
    assert health.lag_s() == 10.0  # the age of its block, which is less than the silence
    health.observe(seen(), beat(9))
    assert health.faults() == []


@pytest.mark.parametrize("day_s", [-86_400.0, 86_400.0])
def test_a_reader_never_compares_its_clock_with_the_writers(day_s: float) -> None:
    health = Health(clock=lambda: BORN + day_s, timer=lambda: 0.0)
    health.observe(seen(), beat(1))
    health.observe(seen(), beat(2))
    assert (health.faults(), health.lag_s()) == ([], 0)


def test_a_reader_says_what_ails_the_writer() -> None:
    health = Health(clock=lambda: BORN + 100.0, timer=lambda: 0.0)
    health.observe(seen(), beat(1))
    health.observe(seen(), beat(2, code="STALLED"))
    assert health.faults() == [{"code": "STALLED", "message": error_codes()[Code.STALLED].meaning}]
    health.observe(seen(number=10), beat(3, following=False))
    assert [x["code"] for x in health.faults()] == ["BACKFILL"]
    assert health.lag_s() == 90


def test_a_reader_that_cannot_read_says_so_until_it_can() -> None:
    health = Health(timer=lambda: 0.0)
    health.observe(seen(), beat(1))
    health.observe(seen(), beat(2))
    health.unread = Unavailable("the database is away", Code.DATABASE_UNAVAILABLE)
    assert [x["code"] for x in health.faults()] == ["DATABASE_UNAVAILABLE"]
    health.observe(seen(), beat(3))
    assert health.faults() == []


def test_a_writer_that_can_write_and_not_read_is_not_ready(health: Health) -> None:
    health.report(walked(90, 90))
    health.unread = Unavailable("too many connections", Code.DATABASE_UNAVAILABLE)
    health.refused = None  # a heartbeat was written
    assert [x["code"] for x in health.faults()] == ["DATABASE_UNAVAILABLE"]
    health.refused = Unavailable("it is down", Code.DATABASE_UNAVAILABLE)
    assert [x["code"] for x in health.faults()] == ["DATABASE_UNAVAILABLE"]  # once


def test_a_heartbeat_says_how_the_walk_is() -> None:
    health = Health()
    health.report(walked(90, 90, finalized=26))
    assert health.beat() == Heartbeat(90, 26, following=True)
    health.report(walked(90, 95, trouble=trouble()))
    down = error_codes()[Code.RPC_UNAVAILABLE].meaning
    assert health.beat() == Heartbeat(95, 0, False, "RPC_UNAVAILABLE", down)


def test_a_reader_says_no_less_of_the_writers_trouble_than_the_writer_itself() -> None:
    writer, reader = Health(), Health(timer=lambda: 0.0)
    stalled = Unavailable(
        "the chain was reorganised", Code.STALLED, why="run `capdex node accept 0x5f`"
    )
    writer.report(walked(90, 95, trouble=stalled))
    reader.observe(seen(), replace(writer.beat(), beats=1))
    reader.observe(seen(), replace(writer.beat(), beats=2))
    assert writer.faults() == [{"code": "STALLED", "message": error_codes()[Code.STALLED].meaning}]
    assert reader.faults() == writer.faults()
    assert reader.beat().code == "STALLED"  # as it is told on by whoever takes over


def test_a_reader_survives_a_code_that_only_a_newer_writer_knows() -> None:
    health = Health(timer=lambda: 0.0)
    health.observe(seen(), beat(1))
    health.observe(seen(), beat(2, code="OF_TOMORROW", message="the writer is unwell"))
    assert health.faults() == [
        {"code": "INTERNAL", "message": error_codes()[Code.INTERNAL].meaning}
    ]


def test_a_database_that_takes_nothing_is_a_fault_while_it_lasts(health: Health) -> None:
    health.report(walked(90, 90))
    health.refused = Unavailable("disk full", Code.DATABASE_UNAVAILABLE)
    assert [x["code"] for x in health.faults()] == ["DATABASE_UNAVAILABLE"]
    health.report(walked(90, 90))  # the chain goes on, the database does not
    assert [x["code"] for x in health.faults()] == ["DATABASE_UNAVAILABLE"]
    health.refused = None
    assert health.faults() == []


def test_a_database_in_which_a_write_hangs_is_a_fault_while_it_lasts(health: Health) -> None:
    now = 0.0
    health.timer = lambda: now
    health.writes = True
    health.written()
    health.report(walked(90, 90))
    now = 29.0
    assert health.faults() == []
    now = 31.0
    hangs = "the database has taken no write for 31 s"
    assert health.faults() == [{"code": "DATABASE_UNAVAILABLE", "message": hangs}]
    health.written()
    assert health.faults() == []


@pytest.mark.parametrize("following", [False, True])
def test_trouble_is_the_fault_told_first_until_it_clears(health: Health, following: bool) -> None:
    head = 10 if following else 90
    health.report(walked(10, head))
    before = health.faults()
    health.report(walked(10, head, trouble=trouble(Code.STALLED, why="a gap")))
    assert health.faults() == [{"code": "STALLED", "message": error_codes()[Code.STALLED].meaning}]
    health.report(walked(10, head, trouble=trouble()))
    down = error_codes()[Code.RPC_UNAVAILABLE].meaning
    assert health.faults() == [{"code": "RPC_UNAVAILABLE", "message": down}]
    health.report(walked(10, head))
    assert health.faults() == before


def test_trouble_at_the_head_does_not_end_a_backfill(health: Health) -> None:
    health.report(walked(90, 90, trouble=trouble()))
    assert not health.following


@pytest.mark.parametrize(
    ("undone", "bucket"),
    [
        (1, "1"),
        (2, "2-12"),
        (12, "2-12"),
        (13, "13-64"),
        (64, "13-64"),
        (65, "65+"),
        (10**9, "65+"),
    ],
)
def test_a_reorg_counts_in_the_bucket_of_its_depth(
    health: Health, undone: int, bucket: str
) -> None:
    health.report(walked(10, 90, undone=undone))
    health.report(walked(11, 90))  # no reorg
    assert health.reorgs == dict.fromkeys(DEPTHS, 0) | {bucket: 1}


def test_reorgs_add_up(health: Health) -> None:
    for undone in (1, 3, 1, 70):
        health.report(walked(10, 90, undone=undone))
    assert health.reorgs == {"1": 2, "2-12": 1, "13-64": 0, "65+": 1}


def test_nodes_do_not_share_their_counts(health: Health) -> None:
    health.report(walked(10, 90, undone=1))
    assert Health().reorgs == dict.fromkeys(DEPTHS, 0)


def test_a_node_that_fell_behind_in_its_trouble_is_ready_only_when_it_has_caught_up() -> None:
    health = Health()
    block = BlockRef(10, b"\x01" * 32, b"\x02" * 32, 1000)
    health.report(SyncProgress(block, head=10))
    assert health.faults() == []
    health.report(SyncProgress(block, head=10, trouble=Unavailable("no endpoint answers")))
    health.report(SyncProgress(block, head=5000))
    assert [fault["code"] for fault in health.faults()] == ["BACKFILL"]
    health.report(SyncProgress(replace(block, number=5000), head=5000))
    assert health.faults() == []
