from __future__ import annotations

import threading

import pytest

from capdex.errors import Code, Unavailable
from capdex.net.rpc.failover import MAX_ATTEMPTS
from capdex_indexer.chain import reader as chain
from capdex_indexer.chain.log_head import MAX_REFUSALS
from capdex_indexer.sync.recovery import RECHECK_EVERY

pytestmark = pytest.mark.usefixtures("hasty")


GROWTH = 3_000  # calls during which a chain outgrows the state that it keeps


def dropped(logs):
    return logs[:-1]


def doubled(logs):
    return [log for log in logs for _ in range(2)]


def shuffled(logs):
    return logs[::-1]


def foreign(logs):
    return [{**log, "address": "0x" + "11" * 20} for log in logs]


def added(logs):
    data = logs[-1]["data"]
    number = int(data[2:66], 16) + 1
    index = hex(int(logs[-1]["logIndex"], 16) + 1)
    return [*logs, {**logs[-1], "data": f"0x{number:064x}{data[66:]}", "logIndex": index}]


def word(slot):
    return "0x" + (slot.head + bytes(8) + bytes(24) + slot.count.to_bytes(8, "big")).hex()


def falsified(logs):
    return [{**logs[0], "data": logs[0]["data"][:-2] + "ff"}, *logs[1:]]


def rehashed(logs):  # as XDPoSChain 2.0.0 did
    return [{**log, "blockHash": "0x" + log["blockHash"][:1:-1]} for log in logs]


async def test_a_chain_is_backfilled_and_then_followed(simulate, following):
    sim = await simulate()
    for _ in range(40):
        sim.publish(2)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs
        sim.publish(3)
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs
        assert it.store.cursor().log_head == sim.head.log_head
        assert [trouble.why for trouble in it.troubles] == []


async def test_a_walk_goes_on_where_the_last_one_stopped(simulate, following):
    sim = await simulate()
    sim.publish(3)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    for _ in range(20):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


@pytest.mark.parametrize("bend", [dropped, doubled, shuffled, foreign, falsified, lambda _: []])
@pytest.mark.parametrize("tail", [True, False])
async def test_bent_logs_never_reach_the_rows(simulate, following, bend, tail):
    sim = await simulate()
    for _ in range(6):
        sim.publish(5)
    if not tail:
        sim.mine(20)
    sim.once("eth_getLogs", bend, times=2)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_logs_with_hashes_of_other_blocks_never_reach_the_rows(simulate, following):
    sim = await simulate(log_time=lambda number: hex(1_700_000_000 + number))
    for _ in range(10):
        sim.publish(2)
        sim.mine(3)
    sim.mine(20)
    sim.once("eth_getLogs", rehashed, times=4)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


@pytest.mark.parametrize("bend", [dropped, falsified])
@pytest.mark.parametrize("served_before", [True, False])
@pytest.mark.parametrize(
    "refusal",
    [
        (-32000, "missing trie node"),
        (-32602, "invalid params"),
        (-32000, "header not found"),
        (-32000, "block 7 is beyond the current head"),
        None,
    ],
)
async def test_bent_logs_do_not_pass_while_the_state_is_refused_for_once(
    simulate, following, bend, served_before, refusal
):
    def spoil():
        for _ in range(MAX_REFUSALS):
            if refusal:
                sim.refuse_once("eth_call", *refusal)
            else:
                sim.once("eth_call", lambda _: "0x")
        sim.once("eth_getLogs", bend)

    sim = await simulate()
    sim.publish(5)
    if not served_before:
        spoil()
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        if served_before:
            spoil()
            sim.publish(3)
            await it.reach(sim.head.hash)
        assert it.logs == sim.logs


async def test_bent_logs_of_recent_blocks_do_not_pass_since_old_state_was_not_served(
    simulate, following
):
    sim = await simulate(serves_state=False)
    for _ in range(200):
        sim.publish()
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        sim.serves_state = True
        sim.once("eth_getLogs", falsified)
        sim.publish(5)
        sim.mine(30)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert [trouble.code for trouble in it.troubles] == [
        Code.STALLED
    ]  # none more: it was not stored


async def test_a_chain_is_followed_whose_state_is_no_longer_served(simulate, following):
    sim = await simulate()
    sim.publish(5)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        sim.serves_state = False
        for _ in range(3):
            sim.publish(3)
            await it.reach(sim.head.hash)
        assert it.logs == sim.logs


@pytest.mark.parametrize("bend", [dropped, lambda _: []])
@pytest.mark.parametrize("state_comes_back", [True, False])
async def test_rows_with_a_hole_are_read_anew_once_it_shows(
    simulate, following, bend, state_comes_back
):
    sim = await simulate(serves_state=False)
    sim.mine(3)
    sim.publish(5)
    sim.once("eth_getLogs", bend, times=4)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        hole = len(it.logs) < 5
        sim.serves_state = state_comes_back
        sim.publish(1)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert [trouble.code for trouble in it.troubles] == [Code.STALLED] * len(it.troubles)
    assert bool(it.troubles) == hole


def pruned(sim):
    for _ in range(20):
        sim.publish(2)
        sim.mine(20)
    return sim


@pytest.mark.parametrize("bend", [dropped, added, falsified, lambda _: []])
@pytest.mark.parametrize("restarted", [False, True])
async def test_logs_bent_where_no_state_is_kept_are_read_anew_once_the_contract_tells(
    simulate, following, bend, restarted
):
    sim = pruned(await simulate(keeps_states=128))
    sim.once("eth_getLogs", bend, times=2)
    if restarted:
        sim.visible = 200
        async with following([sim.url], registry=sim.registry, start_block=1) as it:
            await it.reach(sim.blocks[200].hash)
        sim.visible = None
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs
        sim.publish(2)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


@pytest.mark.parametrize(("keeps_states", "finality_depth"), [(128, 200), (32, 64)])
async def test_they_are_so_where_nothing_is_final_of_what_state_is_kept(
    simulate, following, keeps_states, finality_depth
):
    sim = pruned(await simulate(keeps_states=keeps_states))
    sim.once("eth_getLogs", falsified)
    async with following(
        [sim.url], registry=sim.registry, start_block=1, finality_depth=finality_depth
    ) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("other_bends", [False, True])
async def test_they_are_so_beside_an_endpoint_that_serves_no_state(
    simulate, following, swapped, other_bends
):
    sim, other = pruned(await simulate(keeps_states=128)), await simulate(serves_state=False)
    other.blocks = sim.blocks
    for one in (sim, other) if other_bends else (sim,):
        one.once("eth_getLogs", falsified)
    urls = [other.url, sim.url] if swapped else [sim.url, other.url]
    async with following(urls, registry=sim.registry, start_block=1) as it:
        await it.until(lambda: it.logs == sim.logs)


async def test_a_log_too_many_is_undone_where_no_state_is_served_at_all(simulate, following):
    sim = pruned(await simulate(serves_state=False))
    sim.once("eth_getLogs", added)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_they_are_so_while_the_chain_outgrows_the_state_that_is_kept(simulate, following):
    sim = pruned(await simulate(keeps_states=128, max_blocks=10))
    get_logs, asked = sim._eth_getLogs, 0

    def growing(query):
        nonlocal asked
        asked += 1
        if "fromBlock" in query and asked < GROWTH:
            sim.mine(6)
        return get_logs(query)

    sim._eth_getLogs = growing
    sim.once("eth_getLogs", falsified)
    async with following([sim.url], registry=sim.registry, start_block=1, finality_depth=64) as it:
        await it.until(lambda: it.logs == sim.logs)
    assert asked < GROWTH


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("other_bends", [False, True])
async def test_they_are_so_beside_an_endpoint_that_stands_still(
    simulate, following, monkeypatch, swapped, other_bends
):
    if swapped:  # else nothing ever leaves it
        monkeypatch.setattr(chain, "COMPARE_S", 0.2)
    sim, other = pruned(await simulate(keeps_states=128)), await simulate(keeps_states=128)
    other.blocks, other.visible = sim.blocks, 100
    for one in (sim, other) if other_bends else (sim,):
        one.once("eth_getLogs", falsified)
    urls = [other.url, sim.url] if swapped else [sim.url, other.url]
    async with following(urls, registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_a_contract_that_said_what_was_not_true_is_doubted_too(simulate, following):
    sim = await simulate()
    sim.publish(5)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        before = word(sim.head.log_head)
        sim.once("eth_getLogs", lambda _: [])
        sim.once("eth_call", lambda _: before)
        sim.publish(1)
        await it.reach(sim.head.hash)
        assert len(it.logs) == 5
        sim.publish(1)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_rows_that_are_right_stand_whatever_the_contract_is_said_to_say(simulate, following):
    sim = pruned(await simulate())
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    stored, lie = sim.head.number, word(sim.blocks[5].log_head)
    sim.once("eth_call", lambda _: lie, times=2 * RECHECK_EVERY + 1)
    sim.publish(1)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert len(it.troubles) >= RECHECK_EVERY
    assert min(report.block.number for report in it.reports) >= stored


@pytest.mark.parametrize(
    ("code", "words"), [(429, "rate limit"), (-32603, "internal error"), (1, "header not found")]
)
async def test_a_walk_that_doubts_its_rows_outlives_an_endpoint_that_does_not_answer(
    simulate, following, code, words
):
    sim = await simulate(serves_state=False)
    sim.mine(3)
    sim.publish(5)
    sim.once("eth_getLogs", dropped)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        assert len(it.logs) == 4
        sim.once("eth_getLogs", lambda logs: logs, times=RECHECK_EVERY)
        for _ in range(MAX_ATTEMPTS):
            sim.refuse_once("eth_getLogs", code, words)
        sim.publish(1)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_an_undecodable_event_is_kept_with_its_reason(simulate, following):
    sim = await simulate()
    sim.publish(1)
    lie = sim.logs[0]
    broken = type(lie)(lie.address, (b"\x01" * 32, *lie.topics[1:]), lie.data, lie.position)
    slot = type(sim.head.log_head)().fold(broken)
    sim.blocks[-1] = type(sim.head)(1, sim.head.hash, sim.head.parent, (broken,), slot)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.logs == [broken]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>busy</html>", 200),
        (b'{"jsonrpc":"2.0","id":1,"resu', 200),
        (b'{"jsonrpc":"2.0","id":-7,"result":"0x1"}', 200),
        (b"[]", 200),
        (b"null", 200),
        (b"", 502),
        (b"slow down", 429),
    ],
)
async def test_replies_that_are_none_only_delay(simulate, following, garbage, body, status):
    sim = await simulate()
    sim.publish(4)
    sim.respond_once(garbage(body, status), times=8)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_an_endpoint_that_refuses_wide_ranges_is_asked_for_narrow_ones(simulate, following):
    sim = await simulate(max_logs=7)
    for _ in range(60):
        sim.publish(3)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


@pytest.mark.parametrize("depth", [1, 3, 6])
async def test_a_reorg_takes_its_events_away(simulate, following, depth):
    sim = await simulate()
    for _ in range(12):
        sim.publish(2)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        sim.reorg(depth, events=4)
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs
        assert any(progress.undone for progress in it.reports)


async def test_a_reorg_to_a_shorter_chain_is_one_too(simulate, following):
    sim = await simulate()
    for _ in range(12):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        del sim.blocks[-4:]
        sim.publish(2)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


@pytest.mark.parametrize("depth", [5, 6, 8])
async def test_a_reorg_of_the_first_block_is_followed_while_nothing_is_final(
    simulate, following, depth
):
    sim = await simulate()
    sim.mine(9)
    sim.publish(2)
    sim.mine(4)
    async with following([sim.url], registry=sim.registry, start_block=10) as it:
        await it.reach(sim.head.hash)
        sim.reorg(depth, events=0)
        sim.publish(3)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert [trouble.why for trouble in it.troubles] == []


async def test_an_endpoint_that_falls_behind_undoes_nothing(simulate, following):
    sim = await simulate()
    for _ in range(12):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        sim.visible = 6
        await it.until(lambda: it.reports[-1].head == 6)
        sim.visible = None
        sim.publish()
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert not any(progress.undone for progress in it.reports)


async def test_a_reorg_below_finality_stalls_and_undoes_nothing(simulate, following):
    sim = await simulate()
    for _ in range(30):
        sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        before = list(it.logs)
        sim.reorg(20)
        await it.until(lambda: it.troubles)
        assert it.troubles[0].code == Code.STALLED
        assert it.logs == before


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_block_that_the_chain_calls_finalized_is_never_undone(simulate, following, depth):
    sim = await simulate()
    sim.mine(5)
    sim.publish()
    sim.finalized = 6
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        sim.reorg(depth)
        await it.until(lambda: it.troubles)
    assert it.troubles[0].code == Code.STALLED


@pytest.mark.parametrize("depth", [20, 29])
async def test_a_dev_chain_is_followed_backwards_however_deep(simulate, following, depth):
    sim = await simulate(chain_id=31337)
    for _ in range(30):
        sim.publish()
    async with following([sim.url], registry=sim.registry, chain_id=31337, start_block=1) as it:
        await it.reach(sim.head.hash)
        sim.reorg(depth)
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs
        del sim.blocks[-5:]
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs


async def test_a_dev_chain_that_begins_anew_is_read_anew_each_time(simulate, following):
    sim = await simulate(chain_id=31337)
    async with following([sim.url], registry=sim.registry, chain_id=31337, start_block=1) as it:
        for events in (5, 3, 7):
            sim.blocks.clear()
            sim.mine()
            for _ in range(events):
                sim.publish()
            await it.reach(sim.head.hash)
            assert it.logs == sim.logs


@pytest.mark.parametrize("blocks", [0, 5, 30])
async def test_a_dev_chain_read_from_its_genesis_may_begin_with_another_one(
    simulate, following, blocks
):
    sim = await simulate(chain_id=31337)
    sim.mine(blocks)
    async with following([sim.url], registry=sim.registry, chain_id=31337) as it:
        await it.reach(sim.head.hash)
        sim.blocks.clear()
        sim.mine()
        await it.reach(sim.head.hash)
        sim.publish(2)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_logs_asked_for_by_an_orphaned_hash_are_asked_for_anew(simulate, following):
    sim = await simulate()
    for _ in range(4):
        sim.publish()
    sim.refuse_once("eth_getLogs", -32000, "unknown block")
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert [trouble.why for trouble in it.troubles] == []


async def test_a_second_endpoint_takes_over_when_the_first_lies(simulate, following):
    sim, other = await simulate(), await simulate()
    other.blocks = sim.blocks
    for _ in range(5):
        sim.publish(2)
    sim.once("eth_getLogs", dropped, times=1000)
    async with following([sim.url, other.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_a_chain_that_is_down_is_waited_for(simulate, following, garbage):
    sim = await simulate()
    sim.publish(2)
    sim.respond_once(garbage(b"", 503), times=30)
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.troubles[0].code == Code.RPC_UNAVAILABLE
    assert it.logs == sim.logs


async def test_trouble_is_over_when_the_chain_answers_again(simulate, following, garbage):
    sim = await simulate()
    sim.publish()
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
        sim.respond_once(garbage(b"", 503), times=20)
        await it.until(lambda: it.troubles)
        await it.until(lambda: it.reports[-1].trouble is None)
    assert it.reports[-1].block.hash == sim.head.hash


async def test_trouble_lasts_while_what_was_read_is_not_stored(simulate, following):
    class Reports(list):
        def append(self, progress):
            super().append(progress)
            if progress.block and progress.block.number < progress.head:
                idle.set()

    def refuse(*_):
        idle.wait(30)  # until the reader has said that it has nothing more to read
        idle.clear()
        raise Unavailable("another session holds a lock", Code.DATABASE_LOCKED)

    sim, idle = await simulate(), threading.Event()
    sim.publish()
    walk = following([sim.url], registry=sim.registry)
    walk.reports = Reports()
    async with walk as it:
        await it.reach(sim.head.hash)
        append, it.store.append = it.store.append, refuse
        sim.publish()
        await it.until(lambda: len([x for x in it.reports if x.trouble]) > 4)
        first = next(at for at, x in enumerate(it.reports) if x.trouble)
        assert all(x.trouble for x in it.reports[first:])
        it.store.append = append
        await it.reach(sim.head.hash)
        await it.until(lambda: it.reports[-1].trouble is None)


async def test_a_walk_that_has_nothing_to_do_says_so(simulate, following):
    sim = await simulate()
    sim.publish()
    for _ in range(2):
        async with following([sim.url], registry=sim.registry) as it:
            await it.until(lambda: it.reports and it.reports[-1].block)
            await it.until(lambda: it.reports[-1].block.number == it.reports[-1].head == 1)


async def test_a_cancelled_walk_leaves_whole_transactions(simulate, following):
    sim = await simulate()
    for _ in range(60):
        sim.publish(3)
    for _ in range(12):
        async with following([sim.url], registry=sim.registry) as it:
            await it.until(lambda: it.reports)
            cursor = it.store.cursor()
        assert cursor is None or len(it.logs) >= cursor.log_head.count
    async with following([sim.url], registry=sim.registry) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
