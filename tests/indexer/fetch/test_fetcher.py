"""The queue of packages: fetched, judged, stored, tried again or parked, whatever goes wrong."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from capdex.encoding.multiformats import write_varint
from capdex.errors import Code, Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs import source
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.source import FetchOutcome, SourceFault
from capdex.problems import Reason
from capdex_indexer.fetch import fetcher as fetch
from capdex_indexer.fetch import result_writer
from capdex_indexer.fetch.fetcher import Fetcher
from capdex_indexer.fetch.result_writer import MAX_TRIES, delay_s
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index
from capdex_indexer.query.pending import read_queue
from capdex_indexer.store import Delay, Lane, Operator, Store
from capdex_indexer.workers.pool import Verifier


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

    def put(self, *blocks: bytes) -> None:
        self.blocks |= {Cid.of(data).text: data for data in blocks}

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
            raise SourceFault("the shelf is down", outcome=FetchOutcome.FAILED)
        if self.lies:
            raise SourceFault("the shelf gave other bytes", outcome=FetchOutcome.WRONG)
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


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a background task is about to bring about."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the store's rows are no event
            await asyncio.sleep(0.005)


@dataclass
class Queue:
    """What `chain` announces, queued in `store`, for fetchers to bring from `shelf` to `kept`."""

    making: Any
    chain: Any
    store: Store
    index: Index
    verifier: Verifier
    kept: BlockDirectory
    url: str
    shelf: Shelf = field(default_factory=Shelf)
    clock: Clock = field(default_factory=Clock)
    committed: asyncio.Event = field(default_factory=asyncio.Event)
    told: list[str] = field(default_factory=list)  # of verified releases

    @property
    def packages(self) -> list[bytes]:
        """Whatever was announced, the oldest first."""
        return list(self.chain.packages.values())

    def append(self) -> None:
        """Queue what the chain has announced since."""
        self.making.append(self.store, self.chain)

    @asynccontextmanager
    async def fetching(self, *sources: Shelf) -> AsyncIterator[Fetcher]:
        """Run a fetcher for the length of a block, over these sources or the shelf."""
        places = sources or [self.shelf]

        fetcher = Fetcher(
            self.store,
            places,
            self.verifier,
            self.kept,
            committed=self.committed,
            clock=self.clock,
            verified=lambda job: self.told.append(job.announcement.cap_uri),
        )
        task = asyncio.create_task(fetcher.run())
        try:
            yield fetcher
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @property
    def counts(self) -> dict[str, int]:
        return dict(self.index.status().by_availability)

    async def becomes(self, **counts: int) -> None:
        """Wait until that many releases are available, pending and parked, and no others are."""
        await until(lambda: self.counts == counts)

    def release(self, name: str) -> Any:
        """The one release of a name, whatever its state."""
        (one,) = self.index.releases(name)
        return one

    def waiting(self, name: str) -> Any:
        """The releases of a name that are queued, as the operator sees them."""
        with self.index.read() as connection:
            return read_queue(connection, name=name).releases

    def error(self, name: str) -> str:
        """The outcome of the last try of the one queued release of a name; else empty."""
        return "".join(x.error for x in self.waiting(name))


@pytest.fixture
async def queue(
    making: Any,
    chain: Any,
    store: Store,
    search_index: Index,
    block_directory: BlockDirectory,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Queue]:
    monkeypatch.setattr(fetch, "POLL_S", 0.05)
    monkeypatch.setattr(result_writer, "DATABASE_RETRY_S", 0.05)
    async with Verifier(1) as verifier:
        yield Queue(making, chain, store, search_index, verifier, block_directory, database_url)


async def test_what_is_announced_becomes_verified_and_is_kept(queue: Queue) -> None:
    queue.chain.publish("note")
    queue.chain.publish("weather", bound=False)
    queue.shelf.put(*queue.packages)
    queue.append()
    async with queue.fetching():
        await queue.becomes(available=2)
    assert queue.index.status().by_verdict == {"verified": 1, "signed": 1}
    verified, unbound = queue.packages
    assert queue.kept.read(Cid.of(verified)) == verified
    assert queue.kept.read(Cid.of(unbound)) is None


async def test_what_fills_a_transaction_is_stored_at_once(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "BACKLOG", 0)
    monkeypatch.setattr(result_writer, "GATHER_S", 3600.0)
    monkeypatch.setattr(result_writer, "MAX_BATCH", 4)
    for number in range(8):
        queue.chain.publish(f"note-{number}")
    queue.shelf.put(*queue.packages)
    queue.append()
    async with queue.fetching():
        await until(lambda: queue.counts.get("available", 0) >= 4)


def cut(data: bytes, kind: int, leaf_bytes: int = 1000) -> list[bytes]:
    """A UnixFS file as dag-pb: its root block, then its leaves."""

    def field(number: int, value: int | bytes) -> bytes:
        if isinstance(value, int):
            return bytes([number << 3]) + write_varint(value)
        return bytes([number << 3 | 2]) + write_varint(len(value)) + value

    leaves = [data[i : i + leaf_bytes] for i in range(0, len(data), leaf_bytes)]
    links = b"".join(field(2, field(1, Cid.of(leaf).to_bytes())) for leaf in leaves)
    sizes = b"".join(field(4, len(leaf)) for leaf in leaves)
    return [links + field(1, field(1, kind) + field(3, len(data)) + sizes), *leaves]


@pytest.mark.parametrize(("kind", "verdict"), [(2, "verified"), (1, "mismatch")])
async def test_a_dag_pb_file_is_read_block_by_block_and_a_directory_refused(
    queue: Queue, kind: int, verdict: str
) -> None:
    def cid(data: bytes) -> str:
        root, *leaves = cut(data, kind)
        named = Cid.from_bytes(b"\x12\x20" + Cid.of(root).digest)
        queue.shelf.blocks[named.text] = root
        queue.shelf.put(*leaves)
        return named.text

    queue.chain.publish("note", cid=cid)
    queue.append()
    async with queue.fetching():
        await until(lambda: queue.index.status().by_verdict != {})
    assert queue.index.status().by_verdict == {verdict: 1}
    found = queue.release("note")
    assert found.reason == (None if verdict == "verified" else Reason.NOT_A_FILE)


async def test_a_dag_pb_file_that_lacks_a_block_is_asked_for_again(queue: Queue) -> None:
    lacking: list[bytes] = []

    def cid(data: bytes) -> str:
        root, *leaves = cut(data, 2)
        lacking.extend(leaves)
        named = Cid.from_bytes(b"\x01\x70\x12\x20" + Cid.of(root).digest)
        queue.shelf.blocks[named.text] = root
        return named.text

    queue.chain.publish("note", cid=cid)
    queue.append()
    async with queue.fetching():
        await until(lambda: bool(queue.shelf.asked) and queue.error("note") != "")
    assert queue.counts == {"pending": 1}
    assert Cid.of(lacking[0]).text in queue.shelf.asked


async def test_new_rows_are_fetched_as_soon_as_they_are_committed(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[float] = []
    due = queue.store.due

    def counted(now: float, limit: int, **options: Any) -> Any:
        looked.append(now)
        return due(now, limit, **options)

    monkeypatch.setattr(queue.store, "due", counted)
    monkeypatch.setattr(fetch, "POLL_S", 3600.0)
    async with queue.fetching():
        await until(lambda: bool(looked))
        queue.chain.publish("note")
        queue.shelf.put(*queue.packages)
        queue.append()
        queue.committed.set()
        await queue.becomes(available=1)


async def test_bytes_already_in_the_directory_are_not_fetched(queue: Queue) -> None:
    queue.chain.publish("note")
    await queue.kept.put(*queue.packages)
    queue.append()
    async with queue.fetching():
        await queue.becomes(available=1)
    assert queue.shelf.asked == []


async def test_equal_cids_are_fetched_once(queue: Queue) -> None:
    data = queue.making.package_bytes("note")
    queue.shelf.put(data)
    queue.shelf.gate.clear()
    queue.chain.mine(*(queue.chain.release("note", f"1.0.{n}", data=data) for n in range(8)))
    queue.append()
    async with queue.fetching():
        await until(lambda: queue.shelf.waiting == 1)
        queue.shelf.gate.set()
        await queue.becomes(available=8)
    assert queue.shelf.asked == [Cid.of(data).text]


async def test_a_cid_that_comes_late_is_tried_again_and_had(queue: Queue) -> None:
    store, clock = queue.store, queue.clock
    queue.chain.publish("note")
    queue.append()
    async with queue.fetching():
        await until(lambda: bool(store.due(clock.now + 2, 9)) and not store.due(clock.now, 9))
        assert "does not have it" in queue.error("note")
        queue.shelf.put(*queue.packages)
        clock.now += 2
        await queue.becomes(available=1)
    assert len(queue.shelf.asked) == 2


async def test_a_cid_that_nobody_has_is_parked_after_its_tries_and_can_be_rearmed(
    queue: Queue,
) -> None:
    queue.chain.publish("note")
    queue.append()

    def noted(tries: int) -> bool:
        """Whether that many tries are in the row, so that the clock may move on."""
        waiting = queue.store.due(1e12, 1)
        return waiting[0].attempts >= tries if waiting else queue.counts == {"parked": 1}

    async with queue.fetching():
        for tried in range(1, MAX_TRIES + 1):
            await until(lambda tried=tried: noted(tried))  # type: ignore[misc]
            queue.clock.now += 2 * 24 * 3600
        parked = queue.release("note")
        assert parked.verdict is None
        assert parked.reason == Reason.UNAVAILABLE
        assert len(queue.shelf.asked) == MAX_TRIES
        queue.shelf.put(*queue.packages)
        with Operator(queue.url) as operator:
            operator.rearm()
        await queue.becomes(available=1)


def test_tries_come_quickly_at_first_then_from_a_minute_to_a_day() -> None:
    delays = [delay_s(attempts) for attempts in range(MAX_TRIES)]
    assert delays[:5] == [1, 5, 15, 60, 120]
    assert delays == sorted(delays)
    assert delays[-1] == 24 * 3600
    assert 3 < sum(delays) / 86400 < 14  # a release is looked for for days


async def test_slow_cids_of_one_publisher_delay_no_other(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "SLOT_S", 0.01)
    monkeypatch.setattr(fetch, "SLOTS", 8)
    monkeypatch.setattr(fetch, "MIN_SLOTS", 1)
    chain, shelf = queue.chain, queue.shelf
    flood = [chain.release("flood", f"1.0.{n}") for n in range(48)]
    shelf.slow = {Cid.of(data).text for data in queue.packages}
    chain.mine(*flood)
    queue.append()
    async with queue.fetching():
        await until(lambda: shelf.waiting > 24)  # slow fetches hold no slot
        chain.mine(chain.release("other", publisher=queue.making.OTHER))
        shelf.put(queue.packages[-1])
        queue.append()
        queue.committed.set()
        await until(lambda: queue.counts.get("available") == 1)


async def test_slow_fetches_leave_fewer_slots(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "SLOT_S", 0.2)
    monkeypatch.setattr(fetch, "SLOTS", 8)
    monkeypatch.setattr(fetch, "MIN_SLOTS", 2)
    chain, shelf = queue.chain, queue.shelf
    chain.mine(*(chain.release("flood", f"1.0.{n}") for n in range(60)))
    shelf.slow = {Cid.of(data).text for data in queue.packages}
    queue.append()
    async with queue.fetching() as fetcher:
        most = 0
        while shelf.waiting < 30:
            fast = fetcher._queue.running - fetcher._slow
            allowed = max(2, 8 - fetcher._slow // 4)
            assert fast <= max(most, allowed)  # those that began earlier keep theirs
            most = fast
            await asyncio.sleep(0)
    assert len(shelf.asked) < 60


async def test_more_releases_than_fit_into_memory_are_read_as_room_comes(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "POLL_S", 600.0)
    monkeypatch.setattr(fetch, "CAPACITY", 12)
    monkeypatch.setattr(fetch, "MIN_READ", 3)
    monkeypatch.setattr(fetch, "SLOTS", 4)
    queue.chain.mine(*(queue.chain.release("note", f"1.0.{n}") for n in range(40)))
    queue.shelf.put(*queue.packages)
    queue.append()
    async with queue.fetching():
        await queue.becomes(available=40)


async def test_a_backlog_of_retries_delays_no_new_release(queue: Queue) -> None:
    store, now = queue.store, queue.clock.now
    queue.chain.mine(*(queue.chain.release("flood", f"1.0.{n}") for n in range(60)))
    queue.append()
    for job in store.due(now, 60):
        store.delay_many([Delay(job.release_id, "nobody had it", now)])
    queue.chain.publish("note")
    queue.append()
    new = [job.lane for job in store.due(now, 99)]
    assert new == [Lane.NEW] + [Lane.RETRY] * 60
    queue.shelf.put(queue.packages[-1])
    async with queue.fetching():
        await until(lambda: queue.counts.get("available") == 1)
    assert queue.shelf.asked[0] == Cid.of(queue.packages[-1]).text


async def test_while_every_source_rests_nothing_is_tried_and_no_try_counted(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "SLOTS", 8)
    monkeypatch.setattr(source, "FAILURES_TO_REST", 16)
    queue.shelf.down = True
    queue.chain.mine(*(queue.chain.release("note", f"1.0.{n}") for n in range(60)))
    await queue.kept.put(queue.packages[-1])
    queue.append()
    async with queue.fetching():
        await until(lambda: not queue.store.due(queue.clock.now, 1))
    tries = [job.attempts for job in queue.store.due(1e12, 99)]
    assert len(tries) == 59  # what was here already was judged
    assert sum(tries) == len(queue.shelf.asked)
    assert sum(tries) < 40
    assert any("rests" in x.error for x in queue.waiting("note"))


async def test_a_source_that_gives_other_bytes_costs_nothing_but_its_standing(
    queue: Queue,
) -> None:
    queue.chain.mine(*(queue.chain.release("note", f"1.0.{n}") for n in range(30)))
    queue.shelf.put(*queue.packages)
    queue.append()
    liar = Shelf()
    liar.lies = True
    async with queue.fetching(liar, queue.shelf) as fetcher:
        await queue.becomes(available=30)
        requests = len(liar.asked)
        queue.chain.mine(*(queue.chain.release("note", f"1.1.{n}") for n in range(9)))
        queue.shelf.put(*queue.packages)
        queue.append()
        queue.committed.set()
        await queue.becomes(available=39)
        assert len(liar.asked) == requests  # it comes last for a minute
    lying, honest = fetcher.sources.healths()
    assert lying.outcomes[FetchOutcome.WRONG] == requests
    assert queue.index.status().by_verdict == {"verified": 39}
    assert honest.outcomes[FetchOutcome.GAVE] == 39


async def test_a_crash_repeats_work_and_skips_none(queue: Queue) -> None:
    for name in ("note", "weather", "maps"):
        queue.chain.publish(name)
    queue.shelf.put(*queue.packages)
    queue.shelf.gate.clear()
    queue.append()
    async with queue.fetching():
        await until(lambda: queue.shelf.waiting == 3)  # and here the process ends
    assert queue.counts == {"pending": 3}
    queue.shelf.gate.set()
    async with queue.fetching():
        await queue.becomes(available=3)


async def test_a_release_undone_while_it_is_fetched_leaves_nothing(queue: Queue) -> None:
    chain, shelf = queue.chain, queue.shelf
    base = chain.head
    chain.publish("note")
    shelf.put(*queue.packages)
    shelf.gate.clear()
    queue.append()
    async with queue.fetching():
        await until(lambda: shelf.waiting == 1)
        queue.store.rollback(base)
        shelf.gate.set()
        chain.fork(1)
        chain.mine()
        chain.publish("weather")
        shelf.put(queue.packages[-1])
        queue.append()
        await queue.becomes(available=1)
        await until(lambda: bool(queue.told))
    assert [x.name for x in queue.index.releases("note")] == []
    assert queue.told == ["did:nuwa:cap:weather@1.0.0"]


async def test_a_verdict_that_cannot_be_stored_costs_only_its_own_release(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("note", "weather", "maps"):
        queue.chain.publish(name)
    queue.shelf.put(*queue.packages)
    queue.append()
    record_many = queue.store.record_many

    def picky(judgements: Any) -> list[bool]:
        if any('"weather"' in (x.document or "") for _, x in judgements):
            raise ValueError("no database takes this")
        return record_many(judgements)

    monkeypatch.setattr(queue.store, "record_many", picky)
    async with queue.fetching():
        await until(lambda: queue.counts.get("available") == 2)
        await until(lambda: "a fault of this node" in queue.error("weather"))
        await until(lambda: len(queue.told) > 1)
    assert sorted(queue.told) == ["did:nuwa:cap:maps@1.0.0", "did:nuwa:cap:note@1.0.0"]


async def test_a_disk_that_takes_no_blocks_costs_no_try_and_is_used_when_it_does(
    queue: Queue,
) -> None:
    queue.chain.publish("note")
    queue.shelf.put(*queue.packages)
    queue.append()
    (package,) = queue.packages
    in_the_way = queue.kept.path / Cid.of(package).text[-2:]
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.touch()

    async def in_time(condition: Callable[[], bool]) -> None:
        def later() -> bool:
            queue.clock.now += result_writer.DISK_RETRY_S
            return condition()

        await until(later)

    async with queue.fetching():
        await in_time(lambda: len(queue.shelf.asked) > 2)
        await until(lambda: "cannot be used" in queue.error("note"))
        health = Health(keeping_fails=lambda: queue.kept.trouble is not None)
        assert [fault["code"] for fault in health.faults()] == ["NO_ROOM"]
        (job,) = queue.store.due(1e12, 1)
        assert job.attempts == 0
        in_the_way.unlink()
        await in_time(lambda: queue.counts == {"available": 1})
    assert [fault["code"] for fault in health.faults()] == ["BACKFILL"]
    assert queue.kept.read(Cid.of(package)) == package


async def test_a_database_that_is_away_for_a_while_delays_and_loses_nothing(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.chain.publish("note")
    queue.shelf.put(*queue.packages)
    queue.append()
    away = [0]
    for name in ("due", "record_many", "delay_many"):
        call = getattr(queue.store, name)

        def faulty(*arguments: Any, call: Any = call, **options: Any) -> Any:
            away[0] += 1
            if away[0] < 10:
                raise Unavailable("the database is away", Code.DATABASE_UNAVAILABLE)
            return call(*arguments, **options)

        monkeypatch.setattr(queue.store, name, faulty)
    async with queue.fetching():
        while queue.counts != {"available": 1}:
            queue.clock.now += 60
            calls = away[0]
            await until(lambda calls=calls: away[0] > calls)  # type: ignore[misc]
    assert away[0] > 10


async def test_a_fetch_that_fails_while_its_release_is_cancelled_leaves_no_error_to_the_log(
    store: Store, block_directory: BlockDirectory
) -> None:
    logged: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, what: logged.append(what["message"]))
    shelf = Shelf()
    shelf.gate.clear()
    async with Verifier(1) as verifier:
        fetcher = Fetcher(store, [shelf], verifier, block_directory, committed=asyncio.Event())
        waiting = asyncio.create_task(fetcher._fetch_once(Cid.of(b"nobody has it")))
        await until(lambda: shelf.waiting == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        shelf.gate.set()
        await until(lambda: not fetcher._fetches)
    del waiting  # its error holds the fetch
    gc.collect()
    assert logged == []
