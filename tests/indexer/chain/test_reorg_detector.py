"""What is final of the blocks that were read, before and after some of them are undone."""

from __future__ import annotations

import pytest

from capdex.net.rpc.client import Rpc
from capdex.registry.logs import BlockRef
from capdex_indexer.chain.reorg import ReorgDetector
from capdex_indexer.projection.block_range import BlockRange, LogRows


def block(number: int, fork: int = 0) -> BlockRef:
    return BlockRef(number, bytes([fork, number] * 16), bytes([fork, number - 1] * 16), number)


def read(*blocks: BlockRef, finalized: int) -> BlockRange:
    return BlockRange(LogRows(), {}, blocks, blocks[-1], blocks[-1].number, finalized)


@pytest.fixture
async def detector():
    async with Rpc(["http://127.0.0.1:9"]) as rpc:
        yield ReorgDetector(rpc, start_block=0, is_dev=False, accepted=None)


async def test_blocks_that_replace_final_ones_are_not_final_by_themselves(detector):
    detector.resume([block(n) for n in range(1, 11)], finalized=8)
    assert (detector.tip, detector.settled) == (block(10), 8)
    detector.cut(block(5))
    assert (detector.tip, detector.settled) == (block(5), 5)
    assert detector.holds(block(5))
    assert not detector.holds(block(6))
    detector.take(read(block(6, fork=1), finalized=3))
    assert (detector.tip, detector.settled) == (block(6, fork=1), 5)


async def test_a_fork_above_what_is_final_leaves_that_as_it_is(detector):
    detector.resume([block(n) for n in range(1, 11)], finalized=8)
    detector.cut(block(9))
    assert (detector.tip, detector.settled) == (block(9), 8)


async def test_no_block_is_final_before_it_is_read(detector):
    detector.take(read(block(1), block(2), finalized=100))
    assert detector.settled == 2
    detector.take(read(block(3), finalized=100))
    assert detector.settled == 3
    detector.resume([block(1)], finalized=100)
    assert detector.settled == 1
    detector.resume([], finalized=100)
    assert (detector.tip, detector.settled) == (None, 0)
