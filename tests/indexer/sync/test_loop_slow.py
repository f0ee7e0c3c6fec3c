"""Endpoints that refuse a wide range as one call too many, or are slow: the head is reached.

All of it in virtual time; the seconds are those of a node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest

from capdex.net.rpc.failover import MAX_ATTEMPTS
from capdex_indexer.chain.backfill import MAX_BLOCKS, RANGES_AHEAD, RangeSizer

BLOCKS = 2_000
WIDE = 50  # blocks are answered, and no more
NOBODY = "http://127.0.0.1:1"  # has subscriptions there: heads are looked for by polling
HANGS_S = 3_600.0
Calls = list[dict[str, Any]]
# What endpoints say of too many calls: the HTTP status, and the error in JSON-RPC if there is one.
TOO_MANY = [
    (429, None),
    (429, {"code": -32005, "message": "daily request count exceeded, request rate limited"}),
    (200, {"code": -32005, "message": "rate limit exceeded"}),
    (200, {"code": -32016, "message": "over rate limit"}),
    (200, {"code": 429, "message": "slow down"}),
]


@pytest.fixture
def endpoint_of(unhurried: Callable[..., Any]) -> Callable[..., Any]:
    """Make an endpoint of a chain with one event in `every` blocks."""

    def make(every: int = 100, **settings: Any) -> Any:
        endpoint = unhurried(finalized=BLOCKS, **settings)
        for _ in range(BLOCKS // every):
            endpoint.sim.publish()
            endpoint.sim.mine(every - 1)
        return endpoint

    return make


def too_many(calls: Calls, status: int = 429, error: object = None) -> tuple[int, bytes]:
    """The reply to a call that is one too many."""
    reply = {"jsonrpc": "2.0", "id": calls[0]["id"], "error": error}
    return status, orjson.dumps(reply) if error else b"slow down"


def read_to_head(following: Callable[..., Any], endpoint: Any, within_s: float) -> RangeSizer:
    """Follow the chain to its head; return what was learnt about ranges."""
    learnt: list[RangeSizer] = []

    async def main() -> None:
        settings = {"transport": endpoint, "fail_after_s": within_s, "poll_interval_s": 1.0}
        async with following([NOBODY], registry=endpoint.sim.registry, **settings) as it:
            await it.reach(endpoint.sim.head.hash)
        assert it.logs == endpoint.sim.logs
        learnt.append(it.reader.range_sizer)

    endpoint.run(main)
    return learnt[0]


async def test_the_head_is_reached_of_a_chain_that_grows_faster_than_a_range_is_read(
    simulate, following
):
    sim = await simulate()
    sim.mine(40)
    grown = []

    def grow(log_head: Any) -> Any:  # it is asked for with each range
        sim.publish()
        sim.mine(2)  # as a chain of four blocks a second does while a far endpoint answers
        grown.append(sim.head.number)
        return log_head

    sim.once("eth_call", grow, times=100)
    async with following([sim.url], registry=sim.registry) as it:
        await it.until(lambda: any(x.block and x.block.number >= x.head for x in it.reports))
        assert len(grown) < 10
        logs = it.logs
    assert logs == sim.logs[: len(logs)]
    assert [trouble.why for trouble in it.troubles] == []


@pytest.mark.parametrize(("status", "error"), TOO_MANY, ids=str)
def test_a_wide_range_that_alone_is_one_call_too_many_is_asked_narrower(
    following, endpoint_of, status, error
):
    endpoint = endpoint_of(max_blocks=WIDE)
    refusal = partial(too_many, status=status, error=error)
    endpoint.refuses = lambda calls: refusal(calls) if endpoint.is_wide(calls) else None
    learnt = read_to_head(following, endpoint, within_s=75.0)
    assert WIDE / 2 < learnt.limit <= WIDE
    tries = 2 * MAX_ATTEMPTS * (RANGES_AHEAD + 1)  # of two widths
    assert sum(map(endpoint.is_wide, endpoint.requests)) <= tries


def test_a_limit_of_all_calls_makes_no_range_narrower_and_few_calls(following, endpoint_of):
    endpoint, asked = endpoint_of(), []

    def refuses(calls: Calls) -> tuple[int, bytes] | None:
        if not 0.1 < endpoint.now < 600.0:
            return None
        asked.extend(calls)
        return too_many(calls)

    endpoint.refuses = refuses
    assert read_to_head(following, endpoint, within_s=660.0).limit == MAX_BLOCKS
    assert 10 < len(asked) < 200


def test_a_range_that_is_one_call_too_many_by_chance_is_asked_again(following, endpoint_of):
    endpoint, refused = endpoint_of(max_blocks=WIDE), []

    def refuses(calls: Calls) -> tuple[int, bytes] | None:
        if not endpoint.is_wide(calls):
            return None
        refused.append(calls)
        endpoint.sim.max_blocks = WIDE if len(refused) < 4 else None
        return too_many(calls)

    endpoint.refuses = refuses
    assert read_to_head(following, endpoint, within_s=60.0).limit == MAX_BLOCKS
    assert len(refused) == 4


def test_a_wide_range_without_an_answer_in_time_is_asked_narrower_for_long(following, endpoint_of):
    endpoint = endpoint_of(max_blocks=WIDE)
    endpoint.takes_s = lambda calls: HANGS_S if endpoint.is_wide(calls) else 0.0
    learnt = read_to_head(following, endpoint, within_s=75.0)
    assert WIDE / 2 < learnt.limit <= WIDE
    assert len(endpoint.late) <= 6


def test_an_endpoint_that_answers_nothing_in_time_makes_no_range_narrower(following, endpoint_of):
    endpoint = endpoint_of()
    endpoint.takes_s = lambda calls: HANGS_S if 0.1 < endpoint.now < 300.0 else 0.0
    assert read_to_head(following, endpoint, within_s=360.0).limit == MAX_BLOCKS
    assert 5 < len(endpoint.late) < 30


def test_batches_without_an_answer_in_time_are_asked_shorter(following, endpoint_of):
    endpoint = endpoint_of(every=5)  # headers are read of each block with logs
    endpoint.takes_s = lambda calls: 0.5 * len(calls)
    read_to_head(following, endpoint, within_s=120.0)
    assert 0 < len(endpoint.late) <= 8
