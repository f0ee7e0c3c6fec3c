"""Endpoints refuse in many ways: the index stands all the same, and nothing is final too early."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from capdex.net.rpc.errors import RpcFault, of_error
from capdex_indexer.chain import reader as chain
from capdex_indexer.chain.backfill import MAX_BLOCKS

pytestmark = pytest.mark.usefixtures("hasty")

# Codes and words from public reports about geth, Frontier, go-opera, Infura, BSC, Lotus,
# Nethermind, Besu, Hedera, Avalanche, proxyd, and two that nobody has reported.
TOO_WIDE = [
    (-32002, "request timed out"),
    (-32603, "query timeout of 10 seconds exceeded"),
    (-32000, "too wide blocks range, the limit is 100"),
    (-32000, "context deadline exceeded"),
    (-32603, "execution timeout"),
    (-32005, "query timeout exceeded"),
    (-32005, "limit exceeded"),
    (-32005, "logs.range_too_large"),
    (1, "filter matches too many events, try a more restricted filter"),
    (-32005, "Too many logs requested. Max logs per response is 20000."),
    (-32005, "Requested range exceeds maximum RPC range limit"),
    (-32000, "Exceeded maximum block range: 1000"),
    (-32000, "invalid block range params"),
    (-32019, "block is out of range"),
    (-32000, "cannot query unfinalized data"),
    (-32602, "block range extends beyond current head block"),
    (-32603, "Internal error"),
    (7, "no"),
]
# What was answered in public, with the report of each; refusals as a rate are in test_loop_slow.
REPORTED = Path(__file__).parents[2] / "soak" / "public_refusals.json"
ERRORS = [one["error"] for one in orjson.loads(REPORTED.read_bytes()) if "error" in one]
PUBLIC = [(one["code"], one["message"]) for one in ERRORS if of_error(one) is not RpcFault.RATE]
# What stands before an endpoint answers without JSON-RPC, and some put words into the result.
WIDE_REPLIES = [
    (400, b"Bad Request"),
    (403, b"<html>Sorry, you have been blocked</html>"),
    (404, b""),
    (413, b"<html>413 Request Entity Too Large</html>"),
    (500, b'{"message":"Internal Server Error"}'),
    (502, b"<html>502 Bad Gateway</html>"),
    (503, b"upstream connect error or disconnect/reset before headers"),
    (504, b"<html>504 Gateway Time-out</html>"),
    (520, b"<html>Web server is returning an unknown error</html>"),
    (200, b""),
    (200, b"null"),
    (200, b'{"jsonrpc":"2.0","id":1,"result":[{"address":"0x'),
    (200, b'{"status":"0","message":"NOTOK","result":"Query Timeout occured"}'),
]
NO_TAG = [
    (-32000, "'finalized' tag not supported on pre-merge network"),
    (-32602, "invalid argument 0: hex string without 0x prefix"),
    (-32000, "bad request"),
    (-32000, "invalid syntax"),
    (-32000, "invalid block number"),
    (-32603, "Invalid params"),
    (-32700, "Cannot convert finalized to a BigInt"),
    (-32601, "the method is not available"),
]


@pytest.mark.parametrize("refusal", TOO_WIDE + PUBLIC, ids=str)
async def test_a_refused_range_is_asked_in_halves_whatever_the_words(simulate, following, refusal):
    sim = await simulate()
    for _ in range(24):
        sim.publish()
    sim.max_blocks, sim.too_wide = 3, refusal
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert [trouble.why for trouble in it.troubles] == []


@pytest.mark.parametrize("reply", WIDE_REPLIES, ids=str)
async def test_a_range_that_breaks_what_answers_all_else_is_asked_in_halves(
    simulate, following, reply
):
    sim = await simulate(max_blocks=3, wide_reply=reply)
    for _ in range(60):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        assert it.reader.range_sizer.limit <= 3
    assert it.logs == sim.logs


async def test_an_endpoint_that_refuses_a_single_block_is_told(simulate, following):
    sim = await simulate(max_blocks=0, too_wide=(-32000, "no"))
    sim.mine(24)
    async with following([sim.url], registry=sim.registry) as it:
        await it.until(lambda: it.troubles)


async def test_an_outage_makes_no_range_smaller(simulate, following, garbage):
    sim = await simulate()
    for _ in range(60):
        sim.publish()
    sim.respond_once(garbage(b"<html>502 Bad Gateway</html>", 502), times=40)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        assert it.reader.range_sizer.limit == MAX_BLOCKS
    assert it.logs == sim.logs


async def test_logs_that_are_left_out_of_a_few_new_blocks_make_no_range_smaller(
    simulate, following
):
    sim = await simulate()
    for _ in range(60):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        for _ in range(5):
            await it.reach(sim.head.hash)
            sim.once("eth_getLogs", lambda logs: [])
            sim.publish()
        await it.reach(sim.head.hash)
        assert it.reader.range_sizer.limit == MAX_BLOCKS
    assert it.logs == sim.logs


async def test_logs_that_an_endpoint_cuts_without_a_word_are_asked_in_halves(simulate, following):
    sim = await simulate(cuts_at=5)
    for _ in range(60):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


@pytest.mark.parametrize("refusal", NO_TAG, ids=str)
async def test_a_chain_without_the_tag_is_final_by_depth(simulate, following, refusal):
    sim = await simulate()
    sim.no_tag = refusal
    sim.mine(30)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized == 22
        assert [trouble.why for trouble in it.troubles] == []


async def test_a_chain_with_the_tag_is_final_by_the_tag_alone(simulate, following):
    sim = await simulate()
    for _ in range(40):
        sim.publish()
    sim.finalized = 10
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized == 10
        sim.reorg(25, events=2)  # the chain still allows it, deeper than the finality depth of 8
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs
        assert [trouble.why for trouble in it.troubles] == []
    assert max(report.finalized for report in it.reports) == 10


async def test_a_dev_chain_is_final_by_depth_whatever_its_tag_says(simulate, following):
    sim = await simulate(chain_id=31337, finalized=30)
    sim.mine(30)
    async with following([sim.url], registry=sim.registry, chain_id=31337) as it:
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized == 22


async def test_a_tag_above_the_head_counts_once_its_block_is_read(simulate, following):
    sim = await simulate(visible=20, finalized=30)  # two nodes behind one address
    for _ in range(40):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.blocks[20].hash)
        sim.visible = 25
        await it.reach(sim.blocks[25].hash)
        assert it.store.cursor().finalized == 0
        sim.reorg(20)  # the node behind was on a fork
        sim.finalized, sim.visible = 35, 34
        await it.reach(sim.blocks[34].hash)
        assert max(report.finalized for report in it.reports) == 0
        seen = len(it.reports)
        await it.until(lambda: len(it.reports) > seen + 1)  # the tag is read with block 34 there
        sim.finalized, sim.visible = 38, 37
        await it.until(lambda: it.reports[-1].finalized == 35)
        assert it.logs == sim.logs[:37]
        assert [trouble.why for trouble in it.troubles] == []


async def test_a_tag_is_stored_with_its_block_though_an_earlier_one_was_above_the_head(
    simulate, following
):
    sim = await simulate(visible=20, finalized=22)
    for _ in range(30):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.blocks[20].hash)
        await it.until(lambda: len(it.reports) > 3)
        sim.finalized, sim.visible = 25, 26
        await it.reach(sim.blocks[26].hash)
        assert it.store.cursor().finalized == 25


async def test_a_tag_of_another_fork_makes_nothing_final_that_was_read(simulate, following):
    sim = await simulate(finalized=20)
    for _ in range(20):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized == 20
        common = list(sim.blocks)
        sim.publish()
        sim.publish()
        sim.finalized, sim.tagged, sim.blocks = 22, sim.blocks, common
        sim.publish(2)
        sim.publish(2)
        await it.reach(sim.head.hash)
        seen = len(it.reports)
        await it.until(lambda: len(it.reports) > seen + 1)
        assert max(report.finalized for report in it.reports) == 20
        sim.blocks, sim.tagged = sim.tagged, None
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs
        await it.until(lambda: it.reports[-1].finalized == 22)
        assert [trouble.why for trouble in it.troubles] == []


async def test_a_tag_that_is_not_known_yet_makes_nothing_final(simulate, following, monkeypatch):
    sim = await simulate()
    sim.no_tag = (-32000, "finalized block not found")
    sim.mine(30)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized == 0
        monkeypatch.setattr(chain, "TAG_PATIENCE_S", 0.0)  # as if it had lasted for so long
        sim.mine()
        await it.reach(sim.head.hash)
        sim.mine()
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized > 0


@pytest.mark.parametrize("times", [1, 3, 5])
async def test_a_tag_that_is_refused_by_chance_is_no_missing_tag(simulate, following, times):
    sim = await simulate(finalized=5)
    sim.mine(30)
    sim.refused_tags = times
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        sim.mine()
        await it.reach(sim.head.hash)
    assert max(report.finalized for report in it.reports) == 5


async def test_a_tag_that_is_lost_makes_nothing_final_by_depth(simulate, following):
    sim = await simulate()
    sim.mine(30)
    sim.finalized = 5
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        sim.finalized = None
        sim.publish()
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized == 5


@pytest.mark.parametrize(
    "odd",
    [
        {"logs_by_hash": False},
        {"logs_by_hash": False, "serves_state": False},
        {"null_logs": True},
        {"null_logs": True, "serves_state": False},
        {"pending_log": True},
        {"full_blooms": True, "serves_state": False},
    ],
    ids=str,
)
async def test_an_endpoint_that_lacks_something_is_read_another_way(simulate, following, odd):
    sim = await simulate(**odd)
    for _ in range(20):
        sim.publish()
        sim.mine()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        sim.publish(2)
        await it.reach(sim.head.hash)
        sim.reorg(3, events=1)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert [trouble.why for trouble in it.troubles] == []


async def test_full_blooms_cost_few_calls(simulate, following):
    sim = await simulate(full_blooms=True, serves_state=False)
    sim.mine(90)
    async with following([sim.url], registry=sim.registry, finality_depth=64) as it:
        await it.reach(sim.head.hash)
    assert len(sim.calls) < 1_000


async def test_a_tag_that_was_refused_at_first_counts_once_it_is_there(
    simulate, following, monkeypatch
):
    monkeypatch.setattr(chain, "TAG_PATIENCE_S", 0.0)  # it is asked for at each look
    sim = await simulate()
    sim.no_tag = (-32603, "Internal error")
    sim.mine(30)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized == 22
        sim.finalized = 5
        sim.mine(20)
        await it.reach(sim.head.hash)
        assert it.store.cursor().finalized == 22  # what was final stays; the depth adds nothing
