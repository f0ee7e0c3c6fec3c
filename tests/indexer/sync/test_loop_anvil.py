"""The walk against a real chain: Anvil, the real contract, and its reorganisations."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from capdex.errors import Code, Refused, UsageError
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.new_heads import wake_on_heads
from capdex_indexer.chain.start_block import locate_registry

pytestmark = pytest.mark.real

DEV = 31337


@pytest.fixture
def follow(registry, following):
    return partial(
        following,
        [registry.url],
        registry=registry.address,
        chain_id=DEV,
        start_block=registry.start_block,
    )


@pytest.mark.parametrize("depth", [1, 3, 12])
@pytest.mark.parametrize("finality_depth", [4, 64])
async def test_after_a_reorg_the_index_is_the_one_built_from_scratch(
    registry, follow, tmp_path, depth, finality_depth
):
    for _ in range(15):
        await registry.publish(2)
    async with follow(finality_depth=finality_depth) as it:
        await it.reach(await registry.head())
        await registry.call("anvil_reorg", depth, [])
        await registry.publish(3)
        await it.reach(await registry.head())
    async with follow(finality_depth=finality_depth, path=tmp_path / "fresh.db") as fresh:
        await fresh.reach(await registry.head())
    assert it.logs == fresh.logs == await registry.logs()
    # Anvil takes blocks back and adds others in steps: whoever looks between two may blame it.
    stalled = [one.why for one in it.troubles if one.code is Code.STALLED]
    assert stalled == []


async def test_a_dev_chain_set_back_to_a_snapshot_is_followed_back(registry, follow):
    await registry.publish(2)
    snapshot = await registry.call("evm_snapshot")
    async with follow() as it:
        for _ in range(5):
            await registry.publish(1)
        await it.reach(await registry.head())
        await registry.call("evm_revert", snapshot)
        await it.reach(await registry.head())
        assert it.logs == await registry.logs()
        await registry.publish(1)
        await it.reach(await registry.head())
        assert it.logs == await registry.logs()


async def test_many_blocks_at_once_are_backfilled_and_followed(registry, follow):
    async with follow(finality_depth=16) as it:
        for _ in range(30):
            await registry.publish(5)
        await registry.mine(300)
        await registry.publish(1)
        await it.reach(await registry.head())
    assert it.logs == await registry.logs()


async def test_new_heads_by_websocket_wake_whoever_polls(registry, follow):
    async with follow(poll_interval_s=3600) as it:
        await it.reach(await registry.head())
        for _ in range(3):
            await registry.publish(1)
            await it.reach(await registry.head())
    assert it.logs == await registry.logs()


async def test_a_bell_rings_at_each_head(registry):
    bell = asyncio.Event()
    async with Rpc([registry.url]) as rpc:
        ringing = asyncio.create_task(wake_on_heads(rpc.websockets[0], bell))
        async with asyncio.timeout(20):
            for _ in range(3):
                await bell.wait()
                bell.clear()
                await registry.mine()
            await bell.wait()
        ringing.cancel()
        await asyncio.gather(ringing, return_exceptions=True)


async def test_the_deployment_is_found_and_checked(registry):
    await registry.mine(20)
    async with Rpc([registry.url]) as rpc:
        place = await locate_registry(rpc, chain_id=DEV, registry=registry.address)
        assert place.start_block == registry.start_block
        assert place.genesis == bytes(32)  # Anvil's own changes when it is killed and started
        with pytest.raises(Refused) as wrong_chain:
            await locate_registry(rpc, chain_id=1, registry=registry.address)
        with pytest.raises(UsageError) as no_contract:
            await locate_registry(rpc, chain_id=DEV, registry=bytes(20))
    assert wrong_chain.value.code == Code.WRONG_CHAIN
    assert no_contract.value.code == Code.NO_CONTRACT
