"""The walk over endpoints that disagree: nothing wrong is stored, and nothing right undone."""

from __future__ import annotations

import asyncio
import re

import pytest

from capdex.errors import Code
from capdex.net.rpc import failover
from capdex.net.tasks import run_to_completion
from capdex_indexer.chain import reader as chain
from capdex_indexer.chain import reorg as forks
from capdex_indexer.store import Operator
from capdex_indexer.workers.pool import Verifier

pytestmark = pytest.mark.usefixtures("hasty")


@pytest.fixture
def twins(simulate):
    """Make endpoints that show the same chain, each with a list of blocks of its own."""

    async def make(count, blocks=30, **settings):
        sims = [await simulate(**settings) for _ in range(count)]
        for _ in range(blocks):
            sims[0].publish()
        for sim in sims[1:]:
            sim.blocks = list(sims[0].blocks)
        return sims

    return make


@pytest.fixture
def accepting():
    """What an operator accepted; call `.of` as the hook."""

    class Accepting:
        hash = None
        asked = 0
        of_store = None

        async def of(self):
            self.asked += 1
            return await run_to_completion(self.of_store) if self.of_store else self.hash

    return Accepting()


def urls(sims):
    return [sim.url for sim in sims]


def stalled(it):
    return [trouble for trouble in it.troubles if trouble.code == Code.STALLED]


@pytest.mark.parametrize("depth", [9, 20, 30])  # of `finality_depth` 8: 9 replaces one final block
async def test_a_deep_reorg_is_followed_once_an_operator_accepts_it(
    twins, following, accepting, depth
):
    (sim,) = await twins(1)
    async with following(
        [sim.url], registry=sim.registry, start_block=1, accepted=accepting.of
    ) as it:
        await it.reach(sim.head.hash)
        before = list(it.logs)
        sim.reorg(depth, events=3)
        await it.until(lambda: stalled(it))
        assert it.logs == before
        (command,) = re.findall(r"`capdex node accept (0x[0-9a-f]{64})`", stalled(it)[0].why)
        accepting.hash = bytes.fromhex(command[2:])
        assert accepting.hash == sim.blocks[31 - depth].hash
        await it.reach(sim.head.hash)
        assert it.logs == sim.logs
        sim.publish(2)
        await it.reach(sim.head.hash)
        sim.reorg(3, events=2)  # what is not final goes on being reorganised by itself
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_what_an_operator_writes_beside_the_running_node_is_heard(
    twins, following, accepting
):
    (sim,) = await twins(1)
    async with following(
        [sim.url], registry=sim.registry, start_block=1, accepted=accepting.of
    ) as it:
        accepting.of_store = it.store.accepted
        await it.reach(sim.head.hash)
        sim.reorg(20, events=3)
        await it.until(lambda: stalled(it))
        with Operator(f"sqlite:///{it.path}") as operator:
            operator.accept("0x" + sim.blocks[11].hash.hex())
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_a_reorg_below_the_ring_is_followed_from_the_start(
    twins, following, accepting, monkeypatch
):
    monkeypatch.setattr(forks, "RING", 1)
    (sim,) = await twins(1, blocks=60)
    async with following(
        [sim.url], registry=sim.registry, start_block=1, accepted=accepting.of
    ) as it:
        await it.reach(sim.head.hash)
        sim.reorg(50, events=3)
        await it.until(lambda: stalled(it))
        accepting.hash = sim.head.hash
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_a_node_that_starts_on_a_deep_reorg_stalls_and_can_be_told(
    twins, following, accepting
):
    (sim,) = await twins(1)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    sim.reorg(25, events=2)
    async with following(
        [sim.url], registry=sim.registry, start_block=1, accepted=accepting.of
    ) as it:
        await it.until(lambda: stalled(it))
        accepting.hash = sim.blocks[6].hash
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_what_was_final_when_it_was_read_is_final_for_a_node_that_starts_again(
    twins, following
):
    (sim,) = await twins(1, finalized=28)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    before = list(it.logs)
    sim.reorg(4)  # not as deep as `finality_depth`
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.until(lambda: stalled(it))
    assert it.logs == before


@pytest.mark.parametrize("which", ["unknown", "below the fork", "of the old chain", "kept of it"])
async def test_accepting_another_block_accepts_nothing(twins, following, accepting, which):
    (sim,) = await twins(1)
    old = list(sim.blocks)
    async with following(
        [sim.url], registry=sim.registry, start_block=1, accepted=accepting.of
    ) as it:
        await it.reach(sim.head.hash)
        before = list(it.logs)
        sim.reorg(20)
        accepting.hash = {
            "unknown": b"\x07" * 32,
            "below the fork": old[9].hash,
            "of the old chain": old[20].hash,
            "kept of it": old[20].hash,
        }[which]
        if which == "kept of it":  # nodes give blocks of a lost fork by hash
            lost = old[20].to_json()
            sim.once("eth_getBlockByHash", lambda block: block or lost, times=1000)
        await it.until(lambda: accepting.asked >= 3 and stalled(it))
    assert it.logs == before


async def test_an_endpoint_that_rewrites_what_is_final_is_left_for_the_other(twins, following):
    liar, honest = await twins(2)
    async with following(urls([liar, honest]), registry=liar.registry, start_block=1) as it:
        await it.reach(honest.head.hash)
        liar.reorg(20, events=4)
        honest.publish(2)
        await it.reach(honest.head.hash)
        assert it.logs == honest.logs
        assert it.rpc.endpoint.startswith(honest.url.rstrip("/"))
    assert not stalled(it)
    assert not any(progress.undone for progress in it.reports)


async def test_of_endpoints_that_all_rewrite_what_is_final_the_one_alone_is_left(twins, following):
    alone, *others = await twins(3)
    async with following(urls([alone, *others]), registry=alone.registry, start_block=1) as it:
        await it.reach(alone.head.hash)
        for number, sim in enumerate((alone, others[0])):
            sim.reorg(20, events=4 + number)
        others[1].blocks = list(others[0].blocks)
        await it.reach(others[0].head.hash)
        assert it.logs == others[0].logs
        assert not it.rpc.endpoint.startswith(alone.url.rstrip("/"))
    assert not stalled(it)


@pytest.mark.parametrize("at", [5, 30])  # below what is final, and above it
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-32005, "query returned more than 10000 results"),
        (4444, "pruned history unavailable"),
        (-32000, "header not found"),
    ],
)
async def test_a_block_that_one_endpoint_never_answers_for_is_asked_of_the_other(
    twins, following, code, words, at
):
    sims = await twins(2)
    sims[0].refuse_block(at, code, words)
    async with following(urls(sims), registry=sims[0].registry, start_block=1) as it:
        await it.reach(sims[0].head.hash)
    assert it.logs == sims[0].logs


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("number", 2**63),
        ("timestamp", 0),
        ("timestamp", 2**256 - 1),
        ("timestamp", 1_700_000_000_000),  # milliseconds
        ("timestamp", 1_700_000_000_000_000_000),  # nanoseconds, as Quorum's Raft has them
    ],
)
async def test_a_block_of_no_calendar_or_database_is_asked_of_the_other(
    twins, following, field, value
):
    liar, honest = await twins(2)
    liar.once("eth_getBlockByNumber", lambda block: {**block, field: hex(value)}, times=100_000)
    async with following(urls([liar, honest]), registry=liar.registry, start_block=1) as it:
        await it.reach(honest.head.hash)
        assert it.store.cursor().block.timestamp == int(honest.head.to_json()["timestamp"], 16)
    assert it.logs == honest.logs
    assert not stalled(it)


async def test_a_deep_reorg_that_two_endpoints_show_is_followed(twins, following):
    a, b = await twins(2)
    async with following(urls([a, b]), registry=a.registry, start_block=1) as it:
        await it.reach(a.head.hash)
        a.reorg(20, events=4)
        b.blocks = list(a.blocks)
        await it.reach(a.head.hash)
    assert it.logs == a.logs
    assert [progress.undone for progress in it.reports if progress.undone] == [20]


async def test_a_deep_reorg_waits_for_the_second_endpoint_to_answer(twins, following, garbage):
    a, b = await twins(2)
    async with following(urls([a, b]), registry=a.registry, start_block=1) as it:
        await it.reach(a.head.hash)
        a.reorg(20, events=4)
        b.respond_once(garbage(b"", 503), times=100_000)
        await it.until(lambda: stalled(it))
        b.blocks = list(a.blocks)
        b._responses.clear()
        await it.reach(a.head.hash)
    assert it.logs == a.logs


async def test_two_endpoints_on_two_new_chains_decide_nothing(twins, following):
    a, b = await twins(2)
    async with following(urls([a, b]), registry=a.registry, start_block=1) as it:
        await it.reach(a.head.hash)
        before = list(it.logs)
        a.reorg(20, events=1)
        b.reorg(20, events=2)
        await it.until(lambda: stalled(it))
    assert it.logs == before


async def test_an_endpoint_behind_undoes_nothing_and_the_other_is_asked(
    twins, following, monkeypatch
):
    monkeypatch.setattr(forks, "LAG_SWITCH_S", 0.0)
    a, b = await twins(2)
    async with following(urls([a, b]), registry=a.registry, start_block=1) as it:
        await it.reach(a.head.hash)
        a.visible = 20
        b.publish(2)
        await it.reach(b.head.hash)
    assert it.logs == b.logs
    assert not any(progress.undone for progress in it.reports)


async def test_an_endpoint_that_stands_still_is_left_for_one_that_goes_on(
    twins, following, monkeypatch
):
    monkeypatch.setattr(chain, "COMPARE_S", 0.05)
    a, b = await twins(2)
    async with following(urls([a, b]), registry=a.registry, start_block=1) as it:
        await it.reach(a.head.hash)
        for _ in range(5):
            b.publish()
        await it.reach(b.head.hash)
    assert it.logs == b.logs


async def test_an_endpoint_that_goes_on_far_behind_the_others_is_left_for_one_of_them(
    twins, following, monkeypatch
):
    monkeypatch.setattr(chain, "COMPARE_S", 0.05)
    a, b = await twins(2, blocks=60)
    a.blocks, a.visible = b.blocks, 20
    async with following(urls([a, b]), registry=a.registry, start_block=1) as it:

        def left():
            if it.rpc.endpoint != a.url.rstrip("/"):
                return True
            b.publish()
            a.visible += 1
            return False

        await it.until(left)
        await it.reach(b.head.hash)
    assert it.logs == b.logs


async def test_an_endpoint_that_never_answers_holds_up_nobody_who_follows_another(
    twins, following, monkeypatch
):
    monkeypatch.setattr(chain, "COMPARE_S", 0.05)
    (sim,), asked, ended = await twins(1), asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard = b""
        while b"eth_chainId" not in heard and (more := await reader.read(1024)):
            heard += more
        asked.set()
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        all_urls = [*urls([sim]), f"http://127.0.0.1:{port}"]
        async with following(all_urls, registry=sim.registry, start_block=1) as it:
            await it.reach(sim.head.hash)
            await asked.wait()
            sim.publish(2)
            await it.reach(sim.head.hash)
        ended.set()
    assert it.logs == sim.logs


async def test_another_chain_behind_a_second_endpoint_is_never_read(twins, following, garbage):
    sim, foreign = await twins(2)
    foreign.chain_id = 5
    foreign.publish(9)
    async with following(urls([sim, foreign]), registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        sim.respond_once(garbage(b"", 503), times=20)
        sim.publish(2)
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
    assert set(foreign.calls) <= {"eth_chainId"}


@pytest.mark.parametrize("count", [1, 2])
async def test_endpoints_that_change_their_chain_are_told_as_of_another_one(
    twins, following, monkeypatch, count
):
    monkeypatch.setattr(failover, "FOREIGN_COOLDOWN_S", 0.2)
    sims = await twins(count)
    async with following(urls(sims), registry=sims[0].registry, start_block=1) as it:
        await it.reach(sims[0].head.hash)
        stored, ours = list(it.logs), list(sims[0].blocks)
        sims[0].reorg(20, events=4)
        for sim in sims:
            sim.chain_id, sim.blocks = 5, list(sims[0].blocks)
        await it.until(lambda: it.troubles)
        assert it.troubles[0].code == Code.WRONG_CHAIN
        assert it.logs == stored
        for sim in sims:
            sim.chain_id, sim.blocks = 1, list(ours)
        sims[0].publish()
        await it.reach(sims[0].head.hash)


async def test_an_endpoint_that_wants_patience_is_not_hammered(twins, following, garbage):
    (sim,) = await twins(1)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        sent = len(sim._responses)
        sim.respond_once(garbage(b"", 429, **{"Retry-After": "120"}), times=100)
        await it.until(lambda: len(it.troubles) >= 5)
        assert len(sim._responses) - sent >= 98  # what was under way when it said so
    assert {trouble.code for trouble in it.troubles} == {Code.RATE_LIMITED}


async def test_empty_logs_of_a_block_with_some_are_asked_of_the_other_endpoint(twins, following):
    a, b = await twins(2, blocks=5, serves_state=False)
    a.once("eth_getLogs", lambda logs: [], times=100_000)
    async with following(urls([a, b]), registry=a.registry, start_block=1) as it:
        await it.reach(b.head.hash)
    assert it.logs == b.logs
    assert not it.troubles


@pytest.mark.parametrize("limit", [1, 7, 40])
async def test_the_range_that_an_endpoint_names_is_asked_for(twins, following, limit):
    (sim,) = await twins(1, blocks=200, max_blocks=limit)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
        assert it.reader.range_sizer.blocks <= 2 * limit
    assert it.logs == sim.logs
    assert sim.calls.count("eth_getLogs") < 8 + 3 * (200 // limit)


async def test_replies_of_megabytes_are_read_beside_the_loop(twins, following, monkeypatch):
    monkeypatch.setattr(failover, "OFF_LOOP_BYTES", 1)
    (sim,) = await twins(1, blocks=60)
    async with following([sim.url], registry=sim.registry, start_block=1) as it:
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs


async def test_replies_are_read_by_workers_that_have_nothing_to_judge(
    twins, following, monkeypatch
):
    monkeypatch.setattr(failover, "OFF_LOOP_BYTES", 1)
    (sim,) = await twins(1, blocks=60)
    sim.once("eth_getLogs", lambda logs: [{**logs[0], "data": "0xno hex"}], times=2)
    async with (
        Verifier(2) as verifier,
        following(
            [sim.url], registry=sim.registry, start_block=1, read_reply=verifier.read_reply
        ) as it,
    ):
        await it.reach(sim.head.hash)
    assert it.logs == sim.logs
