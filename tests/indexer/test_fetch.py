"""The queue of packages: fetched, judged, stored, tried again or parked, whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from capdex.cid import Cid
from capdex.errors import Code, Unavailable
from capdex.net import source
from capdex.net.blocks import BlockDirectory
from capdex.net.source import FIRST_LIMIT, Outcome, SourceFault
from capdex.problems import Reason
from indexer import fetch, recorder
from indexer.fetch import Fetcher
from indexer.outcome import MAX_TRIES, delay_s
from indexer.search import Index
from indexer.store import Lane, Store
from indexer.verifier import Verifier


class Shelf:
    """A source that has what is put on it; a CID in `slow` is never answered."""

    label = "shelf"

    def __init__(self) -> None:
        self.blocks: dict[str, bytes] = {}
        self.slow: set[str] = set()
        self.asked: list[str] = []
        self.waiting = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.down = self.lies = False

    def put(self, data: bytes) -> Cid:
        cid = Cid.of(data)
        self.blocks[cid.text] = data
        return cid

    async def get(self, cid: Cid) -> bytes:
        self.asked.append(cid.text)
        self.waiting += 1
        try:
            if cid.text in self.slow:
                await asyncio.Event().wait()
            await self.gate.wait()
        finally:
            self.waiting -= 1
        if self.down:
            raise SourceFault("the shelf is down", outcome=Outcome.FAILED)
        if self.lies:
            raise SourceFault("the shelf gave other bytes", outcome=Outcome.WRONG)
        if cid.text not in self.blocks:
            raise Unavailable("the shelf does not have it", Code.IPFS_UNAVAILABLE)
        return self.blocks[cid.text]

    async def close(self) -> None: ...


class Clock:
    """Seconds that pass when told so."""

    def __init__(self) -> None:
        self.now = 2e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def verifier() -> AsyncIterator[Verifier]:
    async with Verifier(1) as pool:
        yield pool


@pytest.fixture
def fetching(
    store: Store,
    shelf: Shelf,
    verifier: Verifier,
    block_directory: BlockDirectory,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Run a fetcher for the length of a block; its event says that rows were committed."""
    monkeypatch.setattr(fetch, "LOOK_S", 0.05)
    monkeypatch.setattr(recorder, "AWAY_S", 0.05)

    @asynccontextmanager
    async def start() -> AsyncIterator[asyncio.Event]:
        committed = asyncio.Event()
        fetcher = Fetcher(
            store, [shelf], verifier, block_directory, committed=committed, clock=clock
        )
        task = asyncio.create_task(fetcher.run())
        try:
            yield committed
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    return start


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a background task is about to bring about."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the store's rows are no event
            await asyncio.sleep(0.005)


def counts(index: Index) -> dict[str, int]:
    return dict(index.state().by_availability)


def release(index: Index, name: str) -> Any:
    """The one release of a name, whatever its state."""
    (one,) = index.releases(name)
    return one


async def test_what_is_announced_becomes_verified_and_is_kept(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    block_directory: BlockDirectory,
) -> None:
    chain.publish("note")
    chain.publish("weather", bound=False)
    for data in chain.packages.values():
        shelf.put(data)
    making.append(store, chain)
    async with fetching():
        await until(lambda: counts(search_index) == {"available": 2})
    assert search_index.state().by_verdict == {"verified": 1, "signed": 1}
    verified, unbound = chain.packages.values()
    assert block_directory.read(Cid.of(verified)) == verified
    assert block_directory.read(Cid.of(unbound)) is None


def cut(data: bytes, kind: int, leaf_bytes: int = 1000) -> list[bytes]:
    """A UnixFS file as dag-pb: its root block, then its leaves."""

    def field(number: int, value: int | bytes) -> bytes:
        length = value if isinstance(value, int) else len(value)
        head = bytes([number << 3 | (0 if isinstance(value, int) else 2)])
        low = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])
        return (
            head
            + (
                low
                if length >> 14
                else bytes([low[0], length >> 7])
                if length > 127
                else bytes([length])
            )
            + (b"" if isinstance(value, int) else value)
        )

    leaves = [data[i : i + leaf_bytes] for i in range(0, len(data), leaf_bytes)]
    links = b"".join(field(2, field(1, Cid.of(leaf).to_bytes())) for leaf in leaves)
    sizes = b"".join(field(4, len(leaf)) for leaf in leaves)
    return [links + field(1, field(1, kind) + field(3, len(data)) + sizes), *leaves]


@pytest.mark.parametrize(("kind", "verdict"), [(2, "verified"), (1, "mismatch")])
async def test_a_dag_pb_file_is_read_block_by_block_and_a_directory_refused(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    kind: int,
    verdict: str,
) -> None:
    def cid(data: bytes) -> str:
        root, *leaves = cut(data, kind)
        named = Cid.from_bytes(b"\x12\x20" + Cid.of(root).digest)
        shelf.blocks[named.text] = root
        for leaf in leaves:
            shelf.put(leaf)
        return named.text

    chain.publish("note", cid=cid)
    making.append(store, chain)
    async with fetching():
        await until(lambda: search_index.state().by_verdict != {})
    assert search_index.state().by_verdict == {verdict: 1}
    found = release(search_index, "note")
    assert found.reason == (None if verdict == "verified" else Reason.NOT_A_FILE)


async def test_a_dag_pb_file_that_lacks_a_block_is_asked_for_again(
    making: Any, store: Store, chain: Any, search_index: Index, shelf: Shelf, fetching: Any
) -> None:
    kept: list[bytes] = []

    def cid(data: bytes) -> str:
        root, *leaves = cut(data, 2)
        kept.extend(leaves)
        named = Cid.from_bytes(b"\x01\x70\x12\x20" + Cid.of(root).digest)
        shelf.blocks[named.text] = root
        return named.text

    chain.publish("note", cid=cid)
    making.append(store, chain)
    async with fetching():
        await until(lambda: bool(shelf.asked) and release(search_index, "note").message != "")
    assert counts(search_index) == {"pending": 1}
    assert Cid.of(kept[0]).text in shelf.asked


async def test_new_rows_are_fetched_as_soon_as_they_are_committed(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[float] = []
    due = store.due

    def counted(now: float, limit: int, **options: Any) -> Any:
        looked.append(now)
        return due(now, limit, **options)

    monkeypatch.setattr(store, "due", counted)
    monkeypatch.setattr(fetch, "LOOK_S", 3600.0)
    async with fetching() as committed:
        await until(lambda: bool(looked))
        chain.publish("note")
        shelf.put(*chain.packages.values())
        making.append(store, chain)
        committed.set()
        await until(lambda: counts(search_index) == {"available": 1})


async def test_bytes_already_in_the_directory_are_not_fetched(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    block_directory: BlockDirectory,
) -> None:
    chain.publish("note")
    await block_directory.put(*chain.packages.values())
    making.append(store, chain)
    async with fetching():
        await until(lambda: counts(search_index) == {"available": 1})
    assert shelf.asked == []


async def test_equal_cids_are_fetched_once(
    making: Any, store: Store, chain: Any, search_index: Index, shelf: Shelf, fetching: Any
) -> None:
    data = making.package_bytes("note")
    shelf.put(data)
    shelf.gate.clear()
    chain.mine(*(chain.release("note", f"1.0.{n}", data=data) for n in range(8)))
    making.append(store, chain)
    async with fetching():
        await until(lambda: shelf.waiting == 1)
        shelf.gate.set()
        await until(lambda: counts(search_index) == {"available": 8})
    assert shelf.asked == [Cid.of(data).text]


async def test_a_cid_that_comes_late_is_tried_again_and_had(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    clock: Clock,
) -> None:
    chain.publish("note")
    making.append(store, chain)
    async with fetching():
        await until(lambda: bool(store.due(clock.now + 2, 9)) and not store.due(clock.now, 9))
        assert "does not have it" in release(search_index, "note").message
        shelf.put(*chain.packages.values())
        clock.now += 2
        await until(lambda: counts(search_index) == {"available": 1})
    assert len(shelf.asked) == 2


async def test_a_cid_that_nobody_has_is_parked_after_its_tries_and_can_be_rearmed(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    clock: Clock,
) -> None:
    chain.publish("note")
    making.append(store, chain)

    def noted(tries: int) -> bool:
        """Whether that many tries are in the row, so that the clock may move on."""
        waiting = store.due(1e12, 1)
        return waiting[0].attempts >= tries if waiting else counts(search_index) == {"parked": 1}

    async with fetching():
        for tried in range(1, MAX_TRIES + 1):
            await until(lambda tried=tried: noted(tried))  # type: ignore[misc]
            clock.now += 2 * 24 * 3600
        parked = release(search_index, "note")
        assert parked.verdict is None
        assert parked.reason == Reason.UNAVAILABLE
        assert len(shelf.asked) == MAX_TRIES
        shelf.put(*chain.packages.values())
        store.rearm()
        await until(lambda: counts(search_index) == {"available": 1})


def test_tries_come_quickly_at_first_then_from_a_minute_to_a_day() -> None:
    delays = [delay_s(attempts) for attempts in range(MAX_TRIES)]
    assert delays[:5] == [1, 5, 15, 60, 120]
    assert delays == sorted(delays)
    assert delays[-1] == 24 * 3600
    assert 3 < sum(delays) / 86400 < 14  # a release is looked for for days


async def test_slow_cids_of_one_publisher_hold_nobody_else_up(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (fetch, source):
        monkeypatch.setattr(module, "SLOW_S", 0.01)
    monkeypatch.setattr(fetch, "MAX_SLOW", 6)
    flood = [chain.release("flood", f"1.0.{n}") for n in range(24)]
    shelf.slow = {Cid.of(data).text for data in chain.packages.values()}
    chain.mine(*flood)
    making.append(store, chain)
    async with fetching() as committed:
        await until(lambda: len(set(shelf.asked)) == 24)
        chain.mine(chain.release("other", publisher=making.OTHER))
        shelf.put(list(chain.packages.values())[-1])
        making.append(store, chain)
        committed.set()
        await until(lambda: counts(search_index).get("available") == 1)
        await until(lambda: shelf.waiting <= 6)
        assert "did not come at once" in search_index.releases("flood")[-1].message


async def test_whoever_waits_for_a_turn_at_a_source_is_not_given_up(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch, "SLOW_S", 0.01)
    monkeypatch.setattr(fetch, "MAX_SLOW", FIRST_LIMIT)  # as many as the shelf is asked for at once
    chain.mine(*(chain.release("flood", f"1.0.{n}") for n in range(2 * FIRST_LIMIT)))
    for data in chain.packages.values():
        shelf.put(data)
    shelf.gate.clear()
    making.append(store, chain)
    async with fetching():
        await until(lambda: shelf.waiting == FIRST_LIMIT)
        await asyncio.sleep(0.2)  # a try given up now would wait for a clock that stands still
        shelf.gate.set()
        await until(lambda: counts(search_index) == {"available": 2 * FIRST_LIMIT})


async def test_a_backlog_of_retries_delays_no_new_release(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    clock: Clock,
) -> None:
    chain.mine(*(chain.release("flood", f"1.0.{n}") for n in range(60)))
    making.append(store, chain)
    for job in store.due(clock.now, 60):
        store.retry_later(job.release_id, "nobody had it", clock.now)
    chain.publish("note")
    making.append(store, chain)
    new = [job.lane for job in store.due(clock.now, 99)]
    assert new == [Lane.NEW] + [Lane.RETRY] * 60
    shelf.put(list(chain.packages.values())[-1])
    async with fetching():
        await until(lambda: counts(search_index).get("available") == 1)
    assert shelf.asked[0] == Cid.of(list(chain.packages.values())[-1]).text


async def test_while_every_source_rests_nothing_is_tried_and_no_try_counted(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    block_directory: BlockDirectory,
    clock: Clock,
) -> None:
    shelf.down = True
    chain.mine(*(chain.release("note", f"1.0.{n}") for n in range(60)))
    here = list(chain.packages.values())[-1]
    await block_directory.put(here)
    making.append(store, chain)
    async with fetching():
        await until(lambda: not store.due(clock.now, 1))
    tries = [job.attempts for job in store.due(1e12, 99)]
    assert len(tries) == 59  # what was here already was judged
    assert sum(tries) == len(shelf.asked)
    assert sum(tries) < 40
    assert "rests" in search_index.releases("note")[1].message


async def test_a_source_that_gives_other_bytes_costs_nothing_but_its_standing(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    verifier: Verifier,
    block_directory: BlockDirectory,
    shelf: Shelf,
) -> None:
    chain.mine(*(chain.release("note", f"1.0.{n}") for n in range(30)))
    for data in chain.packages.values():
        shelf.put(data)
    making.append(store, chain)
    liar = Shelf()
    liar.lies = True
    fetcher = Fetcher(store, [liar, shelf], verifier, block_directory, committed=asyncio.Event())
    task = asyncio.create_task(fetcher.run())
    try:
        await until(lambda: counts(search_index) == {"available": 30})
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert search_index.state().by_verdict == {"verified": 30}
    lying, honest = fetcher.sources.states()
    assert lying.outcomes[Outcome.WRONG] == lying.requests < 15
    assert lying.benched_s > 0
    assert honest.outcomes[Outcome.GAVE] == 30


async def test_a_crash_repeats_work_and_skips_none(
    making: Any, store: Store, chain: Any, search_index: Index, shelf: Shelf, fetching: Any
) -> None:
    for name in ("note", "weather", "maps"):
        chain.publish(name)
    for data in chain.packages.values():
        shelf.put(data)
    shelf.gate.clear()
    making.append(store, chain)
    async with fetching():
        await until(lambda: shelf.waiting == 3)  # and here the process ends
    assert counts(search_index) == {"pending": 3}
    shelf.gate.set()
    async with fetching():
        await until(lambda: counts(search_index) == {"available": 3})


async def test_a_release_undone_while_it_is_fetched_leaves_nothing(
    making: Any, store: Store, chain: Any, search_index: Index, shelf: Shelf, fetching: Any
) -> None:
    base = chain.head
    chain.publish("note")
    shelf.put(*chain.packages.values())
    shelf.gate.clear()
    making.append(store, chain)
    async with fetching():
        await until(lambda: shelf.waiting == 1)
        store.rollback(base)
        shelf.gate.set()
        chain.fork(1)
        chain.mine()
        chain.publish("weather")
        shelf.put(list(chain.packages.values())[-1])
        making.append(store, chain)
        await until(lambda: counts(search_index) == {"available": 1})
    assert [x.name for x in search_index.releases("note")] == []


async def test_a_verdict_that_cannot_be_stored_costs_only_its_own_release(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("note", "weather", "maps"):
        chain.publish(name)
    for data in chain.packages.values():
        shelf.put(data)
    making.append(store, chain)
    record_many = store.record_many

    def picky(judgements: Any) -> list[bool]:
        if any('"weather"' in (x.document or "") for _, x in judgements):
            raise ValueError("no database takes this")
        return record_many(judgements)

    monkeypatch.setattr(store, "record_many", picky)
    async with fetching():
        await until(lambda: counts(search_index).get("available") == 2)
        await until(lambda: "a fault of this node" in release(search_index, "weather").message)


async def test_a_database_that_is_away_for_a_while_delays_and_loses_nothing(
    making: Any,
    store: Store,
    chain: Any,
    search_index: Index,
    shelf: Shelf,
    fetching: Any,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain.publish("note")
    shelf.put(*chain.packages.values())
    making.append(store, chain)
    away = [0]
    for name in ("due", "record_many", "delay_many"):
        call = getattr(store, name)

        def faulty(*arguments: Any, call: Any = call, **options: Any) -> Any:
            away[0] += 1
            if away[0] < 10:
                raise Unavailable("the database is away", Code.DATABASE_UNAVAILABLE)
            return call(*arguments, **options)

        monkeypatch.setattr(store, name, faulty)
    async with fetching():
        while counts(search_index) != {"available": 1}:
            clock.now += 60
            calls = away[0]
            await until(lambda calls=calls: away[0] > calls)  # type: ignore[misc]
    assert away[0] > 10
