"""What an endpoint can do is probed, and what it lacks is got another way."""

from __future__ import annotations

import itertools

import pytest

from capdex.errors import Code
from capdex.net.rpc import failover
from capdex.net.rpc.abilities import PROBED
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError
from capdex_indexer.chain.start_block import locate_registry

pytestmark = pytest.mark.usefixtures("hasty")
SINGLE = [frozenset({name}) for name in PROBED]
PAIRS = [frozenset(pair) for pair in itertools.combinations(PROBED, 2)]


@pytest.mark.parametrize(
    "missing", [frozenset(), *SINGLE, *PAIRS], ids=lambda x: "-".join(sorted(x))
)
async def test_what_is_missing_is_found_and_got_another_way(simulate, following, missing):
    sim = await simulate(missing=missing, finalized=3)
    for _ in range(12):
        sim.publish()
        sim.mine()
    behind = 1 + ({"newest_logs", "logs_by_hash"} <= missing)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.rpc.look()
        lacks = {name for name, able in it.rpc.abilities.known().items() if not able}
        await it.reach(sim.blocks[-behind].hash)
        sim.publish(2)
        sim.reorg(3, events=1)
        sim.mine()
        await it.reach(sim.blocks[-behind].hash)
    assert lacks - {"gzip"} == missing
    assert it.logs == sim.logs


@pytest.mark.parametrize("missing", [*SINGLE, *PAIRS], ids=lambda x: "-".join(sorted(x)))
async def test_a_new_index_starts_whatever_is_missing(simulate, missing):
    sim = await simulate(missing=missing)
    sim.mine(3)
    async with Rpc([sim.url]) as rpc:
        place = await locate_registry(rpc, chain_id=1, registry=sim.registry, start_block=0)
    assert place.genesis == sim.blocks[0].hash


async def test_a_refusal_of_logs_by_hash_is_probed_without_a_look(simulate):
    sim = await simulate(missing=frozenset({"logs_by_hash"}))
    sim.publish()
    async with Rpc([sim.url]) as rpc:
        header = await rpc.block(1)
        assert header is not None
        assert rpc.abilities.logs_by_hash is None
        (logs,) = await rpc.logs_at(sim.registry, [header])
        assert (len(logs), rpc.abilities.logs_by_hash) == (1, False)
        sim.calls.clear()
        await rpc.logs_at(sim.registry, [header])
    assert sim.calls == ["eth_getLogs", "eth_getBlockByNumber"]


async def test_a_chance_refusal_takes_no_ability_away(simulate):
    sim = await simulate()
    sim.publish()
    async with Rpc([sim.url]) as rpc:
        header = await rpc.block(1)
        assert header is not None
        sim.refuse_once("eth_getLogs", -32601, "the method is not available")
        with pytest.raises(RpcError):
            await rpc.logs_at(sim.registry, [header])
        assert rpc.abilities.logs_by_hash is True


async def test_an_endpoint_that_does_not_answer_keeps_what_is_known(simulate, garbage):
    sim = await simulate(missing=frozenset({"proofs"}))
    sim.mine(3)
    async with Rpc([sim.url]) as rpc:
        await rpc.look()
        before = rpc.abilities
        sim.respond_once(garbage(b"", 503), times=1000)
        await rpc.look()
        assert rpc.abilities == before


async def test_a_second_look_asks_for_little_until_the_client_changes(simulate, monkeypatch):
    sim = await simulate(finalized=1)
    sim.mine(10)
    async with Rpc([sim.url]) as rpc:
        await rpc.look()
        sim.calls.clear()
        await rpc.look()
        assert sim.calls == ["web3_clientVersion", "eth_getBlockByNumber"]
        sim.client, sim.missing = "Simulated/2", frozenset({"proofs"})
        await rpc.look()
        assert (rpc.abilities.client, rpc.abilities.proofs) == ("Simulated/2", False)
        sim.missing = frozenset({"calls_by_hash"})
        monkeypatch.setattr(failover, "DAY_S", -1.0)  # as if a day had passed
        await rpc.look()
        assert (rpc.abilities.calls_by_hash, rpc.abilities.proofs) == (False, True)


async def test_the_widest_range_and_the_longest_batch_are_kept(simulate):
    sim = await simulate()
    sim.mine(1_500)
    async with Rpc([sim.url]) as rpc:
        await rpc.look()
        assert (rpc.abilities.blocks, rpc.abilities.batch) == (1_000, 8)
        await rpc.logs(sim.registry, 0, 1_400)
        assert rpc.abilities.blocks == 1_401


async def test_each_endpoint_must_have_the_first_block_of_the_chain(simulate, garbage):
    first, other = await simulate(), await simulate()
    other.blocks.clear()
    other.mine(3)  # another genesis
    async with Rpc([first.url, other.url]) as rpc:
        rpc.expect(1, first.blocks[0].hash)
        assert await rpc.chain_id() == 1
        first.respond_once(garbage(b"", 503), times=1000)
        with pytest.raises(RpcError) as caught:
            await rpc.call("eth_blockNumber")
        assert "eth_blockNumber" not in other.calls
        states = rpc.endpoints_state()
    assert "its first block is" in states[1].error.why
    assert caught.value.code in (Code.WRONG_CHAIN, Code.RPC_UNAVAILABLE)


async def test_an_endpoint_that_syncs_is_named_so_at_the_first_start(simulate):
    sim = await simulate(syncing={"currentBlock": "0x0", "highestBlock": "0xffff"})
    async with Rpc([sim.url]) as rpc:
        with pytest.raises(RpcError, match="did not answer") as caught:
            await locate_registry(rpc, chain_id=1, registry=bytes(20), start_block=0)
    assert "still syncing" in caught.value.why
