"""Blocks that may still be replaced: what an endpoint says of them while they are."""

from __future__ import annotations

import pytest

from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError
from capdex_indexer.chain.live import LiveReader
from capdex_indexer.chain.log_head import LogHeadReader
from capdex_indexer.projection.block_range import ChainChanged

pytestmark = pytest.mark.usefixtures("hasty")


def live(rpc, sim):
    return LiveReader(rpc, sim.registry, LogHeadReader(rpc, sim.registry))


async def test_blocks_of_two_forks_in_one_answer_are_a_changed_chain(simulate):
    sim = await simulate()
    sim.mine(5)
    lost = sim.blocks[3].to_json()
    sim.reorg(4)
    async with Rpc([sim.url]) as rpc:
        reader, head = live(rpc, sim), await rpc.block("latest")
        instead = {lost["number"]: lost}
        sim.once("eth_getBlockByNumber", lambda b: instead.get(b["number"], b), times=5)
        with pytest.raises(ChainChanged, match="are not linked"):
            await reader.headers(1, head)
        assert (await reader.headers(1, head))[0].hash == sim.blocks[1].hash


async def test_a_block_that_was_replaced_meanwhile_is_a_changed_chain_and_a_refusal_is_none(
    simulate,
):
    sim = await simulate()
    sim.publish(2)
    async with Rpc([sim.url], max_attempts=1) as rpc:
        reader, head = live(rpc, sim), await rpc.block("latest")
        sim.refuse_once("eth_getLogs", -32603, "internal error")
        with pytest.raises(RpcError, match="internal error"):
            await reader.block_range([head], head.number, 0)
        assert len((await reader.block_range([head], head.number, 0)).log_rows.logs) == 2
        sim.reorg(1)
        with pytest.raises(ChainChanged, match="no longer knows"):
            await reader.block_range([head], head.number, 0)
