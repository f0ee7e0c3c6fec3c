"""Before the first block: which endpoints let a node start, and which do not."""

from __future__ import annotations

import pytest

from capdex.errors import Code, Refused, UsageError
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError
from capdex.net.rpc.failover import MAX_ATTEMPTS
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


async def test_an_endpoint_of_another_chain_that_was_down_at_first_is_not_read(simulate):
    sim, other = await simulate(), await simulate(chain_id=5)
    other.once("eth_chainId", lambda chain_id: "busy", times=MAX_ATTEMPTS)
    sim.once("eth_getCode", lambda found: "busy", times=100)
    with pytest.raises(RpcError):
        await find(sim, other)
    assert "eth_getCode" not in other.calls


async def test_an_endpoint_of_another_genesis_is_not_read_later(simulate, garbage):
    sim, other = await simulate(), await simulate()
    other.blocks.clear()
    other.mine(3)
    sim.mine(3)
    async with Rpc([sim.url, other.url]) as rpc:
        await locate_registry(rpc, chain_id=1, registry=sim.registry, start_block=1)
        sim.respond_once(garbage(b"", 503), times=1000)
        with pytest.raises(RpcError):
            await rpc.block("latest")


async def test_an_endpoint_that_is_down_is_no_reason_where_another_answers(simulate, garbage):
    down, sim = await simulate(), await simulate()
    down.respond_once(garbage(b"", 503), times=1000)
    place, endpoint = await find(down, sim)
    assert place.start_block == 3
    assert endpoint == sim.url.rstrip("/")


@pytest.mark.parametrize("endpoints", [1, 2])
async def test_nobody_answering_is_unavailable_soon(simulate, garbage, endpoints):
    sims = [await simulate() for _ in range(endpoints)]
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


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ((b"", 503), Code.RPC_UNAVAILABLE),
        ((b'{"error": {"code": -32005, "message": "rate limit"}}', 429), Code.RATE_LIMITED),
    ],
)
async def test_an_endpoint_that_goes_down_meanwhile_is_no_reason_to_begin_at_block_0(
    simulate, garbage, reply, code
):
    sim = await simulate()
    sim.mine(20)

    def last_answer(found):
        sim.respond_once(garbage(*reply, **{"Retry-After": "60"}), times=1000)
        return found

    sim.once("eth_getCode", lambda found: found)
    sim.once("eth_getCode", last_answer)
    with pytest.raises(RpcError) as caught:
        await find(sim, start_block=None)
    assert caught.value.code == code


@pytest.mark.parametrize("deployed", [0, 1, 6, 17, 23])
async def test_the_first_block_to_read_is_the_one_that_brought_the_code(simulate, deployed):
    sim = await simulate(deployed=deployed)
    sim.mine(20)
    place, _ = await find(sim, start_block=None)
    assert place.start_block == deployed


async def test_no_code_at_the_address_is_a_reason_not_to_start(simulate):
    sims = [await simulate(), await simulate()]
    for some in (sims, sims[:1]):
        with pytest.raises(UsageError) as caught:
            await find(*some, registry=bytes(20))
        assert caught.value.code == Code.NO_CONTRACT


async def test_an_endpoint_that_does_not_say_if_it_syncs_does_not(simulate):
    sim = await simulate()
    sim.refuse_once("eth_syncing", -32601, "the method does not exist")
    with pytest.raises(UsageError) as caught:
        await find(sim, registry=bytes(20))
    assert caught.value.code == Code.NO_CONTRACT


async def test_code_that_another_endpoint_knows_is_believed(simulate):
    behind, sim = await simulate(), await simulate()
    behind.once("eth_getCode", lambda code: "0x", times=100)
    _, endpoint = await find(behind, sim)
    assert endpoint == sim.url.rstrip("/")
