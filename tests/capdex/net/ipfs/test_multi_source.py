"""Several sources: their order, races between them, and the error if none has the block."""

from __future__ import annotations

import asyncio
import gc

import pytest

from capdex.errors import Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs import source
from capdex.net.ipfs.multi_source import AllResting, MultiSource
from capdex.net.ipfs.source import FAILURES_TO_REST, SLOW_TO_DEMOTE, FetchOutcome, SourceFault

PACKAGES = {Cid.of(b"%d" % number): b"%d" % number for number in range(200)}
CIDS = list(PACKAGES)


class Shelf:
    """A source that has every package; it may be told to fail, or to wait for its gate."""

    kind = "gateway"

    def __init__(self, label: str = "shelf") -> None:
        self.label = label
        self.outcome: FetchOutcome | None = None
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


async def all_of(sources: MultiSource, cids: list[Cid]) -> list[bytes | BaseException]:
    return await asyncio.gather(*(sources.get(cid) for cid in cids), return_exceptions=True)


async def test_states_count_requests_and_bytes() -> None:
    shelf = Shelf()
    sources = MultiSource([shelf])
    assert await all_of(sources, CIDS) == list(PACKAGES.values())
    (state,) = sources.healths()
    assert (state.label, state.requests, state.in_flight) == ("gateway-1", 200, 0)
    assert state.received_bytes == sum(map(len, PACKAGES.values()))
    assert state.outcomes[FetchOutcome.GAVE] == 200


async def test_the_next_source_is_requested_too_when_one_is_slow_and_first_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "SLOW_S", 0.01)
    silent, well = Shelf("silent"), Shelf("well")
    silent.gate.clear()
    sources = MultiSource([silent, well])
    for cid in CIDS[:20]:
        assert await sources.get(cid) == PACKAGES[cid]
    assert len(silent.asked) == SLOW_TO_DEMOTE
    assert silent.waiting == 0
    assert sources.healths()[0].outcomes[FetchOutcome.SLOW] == SLOW_TO_DEMOTE


async def test_a_source_that_gave_wrong_bytes_is_requested_only_after_the_others() -> None:
    liar, well = Shelf("liar"), Shelf("well")
    liar.outcome = FetchOutcome.WRONG
    sources = MultiSource([liar, well])
    for cid in CIDS[:20]:
        assert await sources.get(cid) == PACKAGES[cid]
    assert len(liar.asked) == 1
    well.outcome, liar.outcome = FetchOutcome.ABSENT, None
    assert await sources.get(CIDS[20]) == PACKAGES[CIDS[20]]


async def test_a_dead_source_is_asked_a_few_times_and_then_left_alone() -> None:
    dead = Shelf("dead")
    dead.outcome = FetchOutcome.FAILED
    well = Shelf("well")
    sources = MultiSource([dead, well])
    for cid in CIDS:
        assert await sources.get(cid) == PACKAGES[cid]
    assert len(dead.asked) <= FAILURES_TO_REST
    assert len(well.asked) == len(CIDS)


async def test_when_all_sources_rest_none_is_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "REST_S", 60.0)  # nobody comes to its end, however busy
    dead = Shelf("dead")
    dead.outcome = FetchOutcome.FAILED
    sources = MultiSource([dead])
    for cid in CIDS[:FAILURES_TO_REST]:
        with pytest.raises(Unavailable, match="no source gave"):
            await sources.get(cid)
    answers = await all_of(sources, CIDS)
    assert len(dead.asked) == FAILURES_TO_REST
    assert all(isinstance(one, AllResting) for one in answers)
    resting = answers[0]
    assert isinstance(resting, AllResting)
    assert 0 < resting.wait_s <= 72
    assert "dead rests" in resting.why


async def test_the_error_names_what_each_source_said() -> None:
    first, second = Shelf("first"), Shelf("second")
    first.outcome, second.outcome = FetchOutcome.ABSENT, FetchOutcome.REFUSED
    with pytest.raises(Unavailable) as caught:
        await MultiSource([first, second]).get(CIDS[0])
    assert caught.value.why == "first failed; second failed"
    with pytest.raises(Unavailable, match="no source gave") as caught:
        await MultiSource([]).get(CIDS[0])
    assert caught.value.why == "no source is configured"


async def test_a_cancelled_request_is_no_longer_in_flight() -> None:
    shelf = Shelf()
    sources = MultiSource([shelf])
    for _ in range(80):
        task = asyncio.create_task(sources.get(CIDS[0]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await sources.get(CIDS[1]) == PACKAGES[CIDS[1]]
    (state,) = sources.healths()
    assert (state.requests, state.in_flight) == (1, 0)


async def test_a_source_that_fails_beside_the_one_that_gives_leaves_no_error_to_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "SLOW_S", 0.01)
    logged: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: logged.append(what["message"]))
    *failing, well = shelves = [Shelf() for _ in range(12)]
    gate = asyncio.Event()
    for shelf in shelves:
        shelf.gate = gate
    for shelf in failing:
        shelf.outcome = FetchOutcome.FAILED
    asking = asyncio.create_task(MultiSource(shelves).get(CIDS[0]))
    while not well.waiting:  # noqa: ASYNC110 - another task
        await asyncio.sleep(0.01)
    gate.set()  # all end in one turn of the loop
    assert await asking == PACKAGES[CIDS[0]]
    del asking
    gc.collect()
    assert logged == []
