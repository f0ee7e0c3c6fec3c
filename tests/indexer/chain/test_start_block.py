"""Before the first block: which endpoints let a node start, and which do not."""

from __future__ import annotations

import pytest

from capdex.errors import Code, Refused, UsageError
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError
from capdex_indexer.chain.start_block import locate_registry

pytestmark = pytest.mark.usefixtures("hasty")


async def find(*sims, registry=None, start_block=3):
    for sim in sims:
        sim.mine(3)
    async with Rpc([sim.url for sim in sims]) as rpc:
        place = await locate_registry(
            rpc, chain_id=1, registry=registry or sims[0].registry, start_block=start_block
        )
        return place, rpc.endpoint


async def test_the_genesis_and_the_given_block_are_told(simulate):
    sim = await simulate()
    place, _ = await find(sim)
    assert (place.genesis, place.start_block) == (sim.blocks[0].hash, 3)


async def test_a_first_block_that_is_yet_to_come_is_a_reason_not_to_start(simulate):
    sim = await simulate()
    with pytest.raises(UsageError, match="100000") as caught:
        await find(sim, start_block=100_000)
    assert caught.value.code == Code.USAGE


async def test_an_endpoint_that_once_has_no_first_block_is_asked_again(simulate):
    sim = await simulate()
    sim.once("eth_getBlockByNumber", lambda block: None, times=2)
    place, _ = await find(sim)
    assert place.genesis == sim.blocks[0].hash


async def test_an_endpoint_that_keeps_no_first_blocks_is_told_after_some_tries(simulate):
    sim = await simulate(missing=frozenset({"genesis", "block_1"}))
    sim.mine(3)
    with pytest.raises(RpcError, match="did not answer") as caught:
        await find(sim)
    assert "genesis" in caught.value.why


@pytest.mark.parametrize("at", [0, 1])
async def test_any_endpoint_of_another_chain_is_a_reason_not_to_start(simulate, at):
    sims = [await simulate(), await simulate()]
    sims[at].chain_id = 5
    with pytest.raises(Refused) as caught:
        await find(*sims)
    assert caught.value.code == Code.WRONG_CHAIN
    assert sims[at].url.rstrip("/") in caught.value.why


async def test_an_endpoint_that_is_down_is_no_reason_where_another_answers(simulate, garbage):
    down, sim = await simulate(), await simulate()
    down.respond_once(garbage(b"", 503), times=1000)
    place, endpoint = await find(down, sim)
    assert place.start_block == 3
    assert endpoint == sim.url.rstrip("/")


async def test_nobody_answering_is_unavailable_soon(simulate, garbage):
    sims = [await simulate(), await simulate()]
    for sim in sims:
        sim.respond_once(garbage(b"", 503), times=1000)
    with pytest.raises(RpcError) as caught:
        await find(*sims)
    assert caught.value.code == Code.RPC_UNAVAILABLE
    assert not any(sim.calls for sim in sims)
    assert all(len(sim._responses) >= 990 for sim in sims)


async def test_an_endpoint_that_wants_patience_is_waited_for(simulate, garbage):
    sim = await simulate()
    sim.respond_once(garbage(b"", 429, **{"Retry-After": "1"}))
    place, _ = await find(sim)
    assert place.start_block == 3
    assert not sim._responses


async def test_old_state_that_is_not_served_lets_a_node_begin_at_block_0(simulate):
    sim = await simulate()
    sim.mine(20)
    sim.once("eth_getCode", lambda code: code)
    sim.refuse_once("eth_getCode", -32000, "missing trie node")
    place, _ = await find(sim, start_block=None)
    assert place.start_block == 0


async def test_old_state_that_costs_extra_lets_a_node_begin_at_block_0(simulate, garbage):
    sim = await simulate()
    sim.mine(20)

    def latest(code):
        sim.respond_once(garbage(b"eth_getCode of old blocks: see our plans", 403))
        return code

    sim.once("eth_getCode", lambda code: code)
    sim.once("eth_getCode", latest)
    place, _ = await find(sim, start_block=None)
    assert place.start_block == 0


async def test_an_endpoint_that_goes_down_meanwhile_is_no_reason_to_begin_at_block_0(
    simulate, garbage
):
    sim = await simulate()
    sim.mine(20)

    def last_answer(head):
        sim.respond_once(garbage(b"", 503), times=1000)
        return head

    sim.once("eth_getBlockByNumber", lambda genesis: genesis)
    sim.once("eth_getBlockByNumber", last_answer)
    with pytest.raises(RpcError) as caught:
        await find(sim, start_block=None)
    assert caught.value.code == Code.RPC_UNAVAILABLE


async def test_no_code_at_the_address_is_a_reason_not_to_start(simulate):
    sims = [await simulate(), await simulate()]
    for some in (sims, sims[:1]):
        with pytest.raises(UsageError) as caught:
            await find(*some, registry=bytes(20))
        assert caught.value.code == Code.NO_CONTRACT


async def test_code_that_another_endpoint_knows_is_believed(simulate):
    behind, sim = await simulate(), await simulate()
    behind.once("eth_getCode", lambda code: "0x", times=100)
    _, endpoint = await find(behind, sim)
    assert endpoint == sim.url.rstrip("/")
