"""Several sources at once: who is asked, how much, and what is said when nobody has it."""

from __future__ import annotations

import asyncio

import pytest

from capdex.errors import Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs import source
from capdex.net.ipfs.multi_source import Resting, Sources
from capdex.net.ipfs.source import BREAK_AFTER, FIRST_LIMIT, MAX_LIMIT, Outcome, SourceFault

PACKAGES = {Cid.of(b"%d" % number): b"%d" % number for number in range(200)}
CIDS = list(PACKAGES)


class Shelf:
    """A source that has every package; it may be told to fail, or to wait for its gate."""

    kind = "gateway"

    def __init__(self, label: str = "shelf") -> None:
        self.label = label
        self.outcome: Outcome | None = None
        self.silent: set[Cid] = set()
        self.retry_after_s: float | None = None
        self.asked: list[Cid] = []
        self.waiting = self.most = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, cid: Cid) -> bytes:
        self.asked.append(cid)
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
            if cid in self.silent:
                await asyncio.Event().wait()
        finally:
            self.waiting -= 1
        if self.outcome is not None:
            raise SourceFault(
                f"{self.label} failed", outcome=self.outcome, retry_after_s=self.retry_after_s
            )
        return PACKAGES[cid]

    async def close(self) -> None: ...


async def all_of(sources: Sources, cids: list[Cid]) -> list[bytes | BaseException]:
    return await asyncio.gather(*(sources.get(cid) for cid in cids), return_exceptions=True)


async def waiting(shelf: Shelf, count: int) -> None:
    """Until so many requests have come."""
    async with asyncio.timeout(20):
        while shelf.waiting < count:  # noqa: ASYNC110 - more than one event
            await asyncio.sleep(0)


async def test_a_source_is_asked_for_no_more_at_once_than_its_standing_allows() -> None:
    shelf = Shelf()
    shelf.gate.clear()
    sources = Sources([shelf])
    asking = asyncio.create_task(all_of(sources, CIDS))
    await waiting(shelf, FIRST_LIMIT)
    assert sources.limit() == FIRST_LIMIT
    shelf.gate.set()
    assert await asking == list(PACKAGES.values())
    assert shelf.most > FIRST_LIMIT  # it did well
    (state,) = sources.states()
    assert (state.label, state.requests, state.in_flight) == ("gateway-1", 200, 0)
    assert state.received_bytes == sum(map(len, PACKAGES.values()))
    assert state.limit >= shelf.most


async def test_a_slow_request_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SLOW_S", 0.01)
    shelf = Shelf()
    shelf.gate.clear()
    asking = asyncio.create_task(all_of(Sources([shelf]), CIDS[:50]))
    await waiting(shelf, 50)
    shelf.gate.set()
    assert await asking == list(PACKAGES.values())[:50]


async def test_blocks_that_do_not_come_keep_no_other_waiting_once_they_are_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "LATE_S", 0.01)
    monkeypatch.setattr(source, "SLOW_S", 600.0)
    shelf = Shelf()
    sources = Sources([shelf])
    while (limit := sources.limit()) < MAX_LIMIT:  # until it is known what is usual
        assert await all_of(sources, CIDS) == list(PACKAGES.values())
    silent = [Cid.of(b"nobody gives %d" % number) for number in range(3 * limit)]
    shelf.silent |= set(silent)
    asking = [asyncio.create_task(sources.get(cid)) for cid in silent[:limit]]
    await waiting(shelf, limit)
    async with asyncio.timeout(20):
        assert await all_of(sources, CIDS) == list(PACKAGES.values())
    asking += [asyncio.create_task(sources.get(cid)) for cid in silent[limit:]]
    await waiting(shelf, 2 * limit)
    await asyncio.sleep(0.1)
    assert shelf.waiting == 2 * limit  # a source that is slow as a whole is asked no more than this
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_a_dead_source_is_asked_a_few_times_and_then_left_alone() -> None:
    dead = Shelf("dead")
    dead.outcome = Outcome.FAILED
    well = Shelf("well")
    sources = Sources([dead, well])
    for cid in CIDS:
        assert await sources.get(cid) == PACKAGES[cid]
    assert len(dead.asked) <= BREAK_AFTER
    assert len(well.asked) == len(CIDS)


async def test_when_everybody_rests_that_is_said_and_nobody_asked() -> None:
    dead = Shelf("dead")
    dead.outcome = Outcome.FAILED
    sources = Sources([dead])
    answers = await all_of(sources, CIDS)
    asked = len(dead.asked)
    assert BREAK_AFTER <= asked <= 2 * BREAK_AFTER
    assert all(isinstance(one, Unavailable) for one in answers)
    resting = [one for one in answers if isinstance(one, Resting)]
    assert len(resting) == len(CIDS) - asked
    assert 0 < resting[0].wait_s <= 1.2
    assert "dead rests" in resting[0].why
    assert sources.limit() == 0


async def test_who_asks_for_patience_is_not_asked_for_the_same_again() -> None:
    busy, well = Shelf("busy"), Shelf("well")
    busy.outcome, busy.retry_after_s = Outcome.BUSY, 60.0
    assert await Sources([busy, well]).get(CIDS[0]) == PACKAGES[CIDS[0]]
    alone = Sources([busy])
    with pytest.raises(Unavailable, match="no source gave"):
        await alone.get(CIDS[0])
    with pytest.raises(Resting) as caught:
        await alone.get(CIDS[0])
    assert 59 < caught.value.wait_s <= 60
    busy.outcome = None
    assert await alone.get(CIDS[1]) == PACKAGES[CIDS[1]]


async def test_two_sources_that_do_alike_share_the_work() -> None:
    first, second = Shelf("first"), Shelf("second")
    assert await all_of(Sources([first, second]), CIDS) == list(PACKAGES.values())
    assert first.asked
    assert second.asked
    assert len(first.asked) + len(second.asked) == len(CIDS)


async def test_whoever_gives_up_leaves_the_place_to_the_next() -> None:
    shelf = Shelf()
    shelf.gate.clear()
    sources = Sources([shelf])
    tasks = [asyncio.create_task(sources.get(cid)) for cid in CIDS[: 3 * FIRST_LIMIT]]
    await waiting(shelf, FIRST_LIMIT)
    for task in tasks[: 2 * FIRST_LIMIT]:
        task.cancel()
    shelf.gate.set()
    rest = await asyncio.gather(*tasks, return_exceptions=True)
    assert rest[2 * FIRST_LIMIT :] == [PACKAGES[cid] for cid in CIDS[16:24]]
    (state,) = sources.states()
    assert state.in_flight == 0


async def test_a_task_that_is_cancelled_before_it_began_holds_no_place() -> None:
    shelf = Shelf()
    sources = Sources([shelf])
    for _ in range(10 * FIRST_LIMIT):
        task = asyncio.create_task(sources.get(CIDS[0]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await sources.get(CIDS[1]) == PACKAGES[CIDS[1]]
    assert sources.states()[0].in_flight == 0
