"""When the contract's log head is insisted on, and when it counts as not served."""

from __future__ import annotations

import pytest
from aiohttp import web

from capdex.net.rpc.client import Rpc
from capdex.registry.logs import BlockRef
from capdex_indexer.chain.log_head import LogHeadReader
from capdex_indexer.projection.block_range import ChainChanged

pytestmark = pytest.mark.usefixtures("hasty")


def ref(block):
    return BlockRef(block.number, block.hash, block.parent, 0)


def fails_once(sim):
    sim.respond_once(lambda: web.Response(status=502))


async def test_a_recent_one_is_insisted_on_once_it_was_served(simulate):
    sim = await simulate()
    sim.publish(2)
    async with Rpc([sim.url], max_attempts=1) as rpc:
        heads = LogHeadReader(rpc, sim.registry)
        fails_once(sim)
        assert await heads.read(ref(sim.head), recent=True) is None
        assert await heads.read(ref(sim.head), recent=True) == sim.head.log_head
        fails_once(sim)
        assert await heads.read(ref(sim.head), recent=True) == sim.head.log_head


async def test_an_old_one_is_not_insisted_on(simulate):
    sim = await simulate()
    sim.publish(2)
    async with Rpc([sim.url], max_attempts=1) as rpc:
        heads = LogHeadReader(rpc, sim.registry)
        assert await heads.read(ref(sim.head), recent=True) == sim.head.log_head
        fails_once(sim)
        assert await heads.read(ref(sim.head)) is None
        assert await heads.read(ref(sim.head)) == sim.head.log_head
        fails_once(sim)
        assert await heads.read(ref(sim.head)) is None


async def test_a_recent_block_that_is_gone_is_a_changed_chain_where_heads_are_served(simulate):
    sim = await simulate()
    sim.publish(2)
    sim.publish()
    gone = ref(sim.head)
    sim.reorg(1)
    async with Rpc([sim.url], max_attempts=1) as rpc:
        heads = LogHeadReader(rpc, sim.registry)
        assert await heads.read(gone, recent=True) is None
        assert await heads.read(ref(sim.head), recent=True) == sim.head.log_head
        with pytest.raises(ChainChanged):
            await heads.read(gone, recent=True)
