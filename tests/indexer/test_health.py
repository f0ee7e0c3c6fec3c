"""Whether the node is well, as the reports of its walk change it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capdex.errors import Code, Unavailable
from indexer.health import DEPTHS, Health
from indexer.steps import BlockRef
from indexer.sync import Progress

BORN = 1_700_000_000  # block 0; a block a second


def walked(number: int | None, head: int, **more: object) -> Progress:
    """A report of the walk at block `number`."""
    block = None if number is None else BlockRef(number, bytes(32), bytes(32), BORN + number)
    return Progress(block, head, **more)  # type: ignore[arg-type]


def trouble(code: Code = Code.RPC_UNAVAILABLE, **more: str) -> Unavailable:
    return Unavailable("no endpoint answers", code, **more)


@pytest.fixture
def health() -> Health:
    return Health(clock=lambda: BORN + 100.0)


def test_before_any_report_the_node_is_in_backfill_and_knows_no_lag(health: Health) -> None:
    assert health.faults() == [{"code": "BACKFILL", "message": "before the first block"}]
    assert health.lag_s() is None
    assert not health.following


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


def test_the_lag_grows_from_the_block_while_there_is_trouble(health: Health) -> None:
    health.report(walked(90, 90))
    health.report(walked(90, 90, trouble=trouble()))
    assert health.lag_s() == 10


def test_the_lag_is_never_negative(health: Health) -> None:
    health.report(walked(500, 900))  # a chain whose clock is ahead of ours
    assert health.lag_s() == 0


@pytest.mark.parametrize("following", [False, True])
def test_trouble_is_the_fault_told_first_until_it_clears(health: Health, following: bool) -> None:
    head = 10 if following else 90
    health.report(walked(10, head))
    before = health.faults()
    health.report(walked(10, head, trouble=trouble(Code.STALLED, why="a gap")))
    assert health.faults() == [{"code": "STALLED", "message": "no endpoint answers: a gap"}]
    health.report(walked(10, head, trouble=trouble()))
    assert health.faults() == [{"code": "RPC_UNAVAILABLE", "message": "no endpoint answers"}]
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
    health.report(Progress(block, head=10))
    assert health.faults() == []
    health.report(Progress(block, head=10, trouble=Unavailable("no endpoint answers")))
    health.report(Progress(block, head=5000))
    assert [fault["code"] for fault in health.faults()] == ["BACKFILL"]
    health.report(Progress(replace(block, number=5000), head=5000))
    assert health.faults() == []
