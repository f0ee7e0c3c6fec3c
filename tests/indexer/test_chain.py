from __future__ import annotations

from contextlib import aclosing

import pytest

from capdex.net.rpc import Rpc
from capdex.net.wire import read_header
from indexer.chain import ChainReader
from indexer.steps import Blocks, Reorg

pytestmark = pytest.mark.usefixtures("hasty")


def read(rpc, sim, ring=(), **settings):
    given = {"chain_id": 1, "start_block": 0, "finality_depth": 8, "poll_interval_s": 0.01}
    return ChainReader(rpc, registry=sim.registry, ring=ring, **{**given, **settings})


async def steps_up_to(reader, sim):
    """The steps until one ends at the simulated head."""
    found = []
    async with aclosing(reader.steps()) as steps:
        async for step in steps:
            found.append(step)
            if isinstance(step, Blocks) and step.upto.hash == sim.head.hash:
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
    assert [log for step in steps for log in step.logs] == sim.logs
    assert tail.log == sim.head.slot
    assert (tail.head, tail.finalized) == (30, 22)


async def test_every_block_with_a_log_and_the_last_one_come_with_a_range(simulate):
    sim = await simulate()
    for n in range(40):
        sim.publish(n % 3)
    sim.mine(8)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim), sim)
    for step in steps:
        numbers = [block.number for block in step.blocks]
        assert numbers == sorted(set(numbers))
        assert {log.position.block_number for log in step.logs} <= set(numbers)
        assert step.blocks[-1] == step.upto


async def test_a_step_that_was_not_taken_is_given_again(simulate):
    sim = await simulate()
    sim.publish(2)
    async with Rpc([sim.url]) as rpc:
        reader = read(rpc, sim)
        for _ in range(2):
            async with aclosing(reader.steps()) as steps:
                step = await anext(steps)
                assert step.upto.number == 0
        assert [log for x in await steps_up_to(reader, sim) for log in x.logs] == sim.logs


async def test_a_fork_in_the_ring_is_found_and_told(simulate):
    sim = await simulate()
    sim.mine(20)
    async with Rpc([sim.url]) as rpc, aclosing(read(rpc, sim).steps()) as steps:
        while (await anext(steps)).upto.hash != sim.head.hash:
            continue
        sim.reorg(5)
        reorg, blocks = await anext(steps), await anext(steps)
    assert isinstance(reorg, Reorg)
    assert reorg.fork.number == 15
    assert reorg.fork.hash == sim.blocks[15].hash
    assert [block.number for block in blocks.blocks] == list(range(16, 21))


@pytest.mark.parametrize("given_again", [1, 3])
async def test_empty_logs_of_a_block_whose_bloom_promises_some_are_asked_for_again(
    simulate, given_again
):
    sim = await simulate(serves_state=False)
    sim.publish(3)
    sim.once("eth_getLogs", lambda logs: [], times=given_again)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim, start_block=1), sim)
    assert [log for step in steps for log in step.logs] == sim.logs


async def test_a_bloom_that_errs_holds_nothing_up_for_good(simulate):
    sim = await simulate(serves_state=False)
    sim.publish(1)
    sim.once("eth_getLogs", lambda logs: [], times=1000)
    async with Rpc([sim.url]) as rpc:
        steps = await steps_up_to(read(rpc, sim, start_block=1), sim)
    assert [step.logs for step in steps] == [()]


async def test_a_bloom_filter_admits_the_address_it_was_made_for(simulate):
    sim = await simulate()
    sim.publish()
    empty, full = (read_header(block.to_json()) for block in sim.blocks)
    assert full is not None
    assert full.may_hold_logs_of(sim.registry)
    assert empty is not None
    assert not empty.may_hold_logs_of(sim.registry)
