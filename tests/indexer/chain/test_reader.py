from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from itertools import pairwise

import pytest

from capdex.errors import Unavailable
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.types import read_header
from capdex_indexer.chain import reader as chain
from capdex_indexer.chain.backfill import FIRST_BLOCKS, read_headers
from capdex_indexer.chain.reader import ChainReader
from capdex_indexer.projection.block_range import BlockRange, ChainChanged, Reorg

pytestmark = pytest.mark.usefixtures("hasty")


def read(rpc, sim, ring=(), **settings):
    given = {"chain_id": 1, "start_block": 0, "finality_depth": 8, "poll_interval_s": 0.01}
    reader = ChainReader(rpc, registry=sim.registry, **{**given, **settings})
    reader.reorgs.resume(ring, finalized=0)
    return reader


async def steps_up_to(reader, sim):
    """The steps until one ends at the simulated head."""
    found = []
    async with aclosing(reader.steps()) as steps:
        async for step in steps:
            found.append(step)
            if isinstance(step, BlockRange) and step.upto.hash == sim.head.hash:
                return found
    raise AssertionError("the stream ended")


async def test_the_tail_comes_block_by_block_and_the_rest_in_ranges(simulate):
    sim = await simulate()
    for _ in range(30):
        sim.publish(2)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim), sim)
    tail = steps[-1]
    assert [block.number for block in tail.blocks] == list(range(23, 31))
    assert all(
        child.parent == b.hash for b, child in zip(tail.blocks, tail.blocks[1:], strict=False)
    )
    assert [log for step in steps for log in step.log_rows.logs] == sim.logs
    assert tail.log_head == sim.head.log_head
    assert (tail.head, tail.finalized) == (30, 22)


async def test_reading_again_ends_near_the_head_of_a_chain_that_grows_meanwhile(simulate):
    sim = await simulate()
    sim.mine(40)
    grown = []

    def grow(log_head):  # it is asked for with each range
        sim.mine(3)
        grown.append(sim.head.number)
        return log_head

    sim.once("eth_call", grow, times=200)
    async with Rpc([sim.url]) as rpc:
        steps = [step async for step in read(rpc, sim).reread(None)]
    assert len(grown) < 10
    assert steps[-1].upto.number >= 32


async def test_the_time_of_every_block_with_a_log_and_its_last_block_come_with_a_range(simulate):
    sim = await simulate()
    for n in range(40):
        sim.publish(n % 3)
    sim.mine(8)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim), sim)
    for step in steps:
        numbers = [block.number for block in step.blocks]
        assert numbers == sorted(set(numbers))
        assert {number for number, _ in step.log_rows.logs.blocks()} <= step.times.keys()
        assert step.blocks[-1] == step.upto


def told(number):
    return hex(1_700_000_000 + number)


async def times_of(sim, blocks):
    """The times of blocks by number, of a chain with one release in each of so many."""
    for _ in range(blocks):
        sim.publish(1)
    sim.mine(8)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim), sim)
    assert [log for step in steps for log in step.log_rows.logs] == sim.logs
    return {number: time for step in steps for number, time in step.times.items()}


async def test_blocks_whose_logs_tell_their_times_are_not_asked_for(simulate):
    sim = await simulate(log_time=told)
    times = await times_of(sim, 200)
    assert set(range(1, 201)) <= times.keys()
    assert all(time == 1_700_000_000 + number for number, time in times.items())
    assert sim.calls.count("eth_getBlockByNumber") < 60


@pytest.mark.parametrize(
    "said",
    [
        lambda number: told(number) if number % 7 else None,  # some do not say
        lambda number: told(number + 2 * (number == 9)),  # no block is older than the one below
        lambda number: told(number - 60),
        lambda number: told(number + 60),
        lambda number: told(number) if number > 5 else 1_700_000_000,
        lambda number: [told(number)],
        lambda number: "yesterday",
        lambda number: "0x0",
    ],
)
async def test_times_of_logs_that_cannot_be_true_are_looked_up(simulate, said):
    sim = await simulate(log_time=said)
    times = await times_of(sim, 40)
    assert times.keys() >= set(range(1, 41))
    wrong = {n: time - n for n, time in times.items() if time != 1_700_000_000 + n}
    assert not wrong


async def test_heads_that_are_none_are_looked_for_ten_times_a_second_at_most(simulate, monkeypatch):
    async def ring_always(url, wake):
        while True:
            wake.set()
            await asyncio.sleep(0)

    monkeypatch.setattr(chain, "wake_on_heads", ring_always)
    clock = asyncio.get_running_loop().time
    looks: asyncio.Queue[float] = asyncio.Queue()
    sim = await simulate()
    async with Rpc([sim.url]) as rpc:
        reader = read(rpc, sim, poll_interval_s=30.0)
        reader.on_idle = lambda head, finalized: looks.put_nowait(clock())
        async with aclosing(reader.steps()) as steps:
            await anext(steps)
            following = asyncio.create_task(anext(steps))
            times = [await looks.get() for _ in range(4)]
            sim.publish()
            await following
    assert times[3] - times[0] > 0.19  # the first one is looked for at once


async def test_ranges_with_few_logs_grow(simulate):
    sim = await simulate()
    sim.mine(600)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim), sim)
    ends = [step.upto.number for step in steps if isinstance(step, BlockRange)]
    assert ends[0] == FIRST_BLOCKS - 1
    assert max(b - a for a, b in pairwise(ends)) >= 4 * FIRST_BLOCKS


async def test_a_step_that_was_not_taken_is_given_again(simulate):
    sim = await simulate()
    sim.publish(2)
    async with Rpc([sim.url]) as rpc:
        reader = read(rpc, sim)
        for _ in range(2):
            async with aclosing(reader.steps()) as steps:
                step = await anext(steps)
                assert step.upto.number == 0
        assert [log for x in await steps_up_to(reader, sim) for log in x.log_rows.logs] == sim.logs


async def test_a_fork_in_the_ring_is_found_and_told(simulate):
    sim = await simulate()
    sim.mine(20)
    async with Rpc([sim.url]) as rpc:
        reader = read(rpc, sim)
        async with aclosing(reader.steps()) as steps:
            while (read_last := (await anext(steps)).upto).hash != sim.head.hash:
                continue
            sim.reorg(5)
            reorg, blocks = await anext(steps), await anext(steps)
    assert isinstance(reorg, Reorg)
    assert not reader.reorgs.holds(read_last)
    assert reorg.fork.number == 15
    assert reorg.fork.hash == sim.blocks[15].hash
    assert [block.number for block in blocks.blocks] == list(range(16, 21))


@pytest.mark.parametrize("number", [None, "0x1"])
async def test_a_missing_block_or_another_one_is_no_block_of_the_chain(simulate, number):
    sim = await simulate()
    sim.mine(5)
    sim.once("eth_getBlockByNumber", lambda block: number and block | {"number": number})
    async with Rpc([sim.url]) as rpc:
        with pytest.raises(ChainChanged):
            await read_headers(rpc, [2, 3])
        assert [header.number for header in await read_headers(rpc, [2, 3])] == [2, 3]


@pytest.mark.parametrize("words", ["unknown block", "internal error"])
async def test_a_newest_block_whose_logs_are_not_there_yet_holds_up_none_below_it(simulate, words):
    sim = await simulate()
    for _ in range(7):
        sim.publish(2)
    for number in (5, 6, 7):
        sim.refuse_block(number, -32000, words)
    taken: list[int] = []
    async with Rpc([sim.url]) as rpc:
        reader = read(rpc, sim)
        for _ in range(5):  # a stream that ended in an error is opened again
            with suppress(Unavailable):
                async for step in reader.steps():
                    taken += [block.number for block in step.blocks]
    assert taken == list(range(5))


@pytest.mark.parametrize("given_again", [1, 3])
async def test_empty_logs_of_a_block_whose_bloom_promises_some_are_asked_for_again(
    simulate, given_again
):
    sim = await simulate(serves_state=False)
    sim.publish(3)
    sim.once("eth_getLogs", lambda logs: [], times=given_again)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim, start_block=1), sim)
    assert [log for step in steps for log in step.log_rows.logs] == sim.logs


async def test_a_bloom_that_errs_holds_nothing_up_for_good(simulate):
    sim = await simulate(serves_state=False)
    sim.publish(1)
    sim.once("eth_getLogs", lambda logs: [], times=1000)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim, start_block=1), sim)
    assert [len(step.log_rows) for step in steps] == [0]


async def test_a_bloom_filter_admits_the_address_it_was_made_for(simulate):
    sim = await simulate()
    sim.publish()
    empty, full = (read_header(block.to_json()) for block in sim.blocks)
    assert full is not None
    assert full.may_hold_logs_of(sim.registry)
    assert empty is not None
    assert not empty.may_hold_logs_of(sim.registry)
