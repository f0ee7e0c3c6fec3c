"""Judging in worker processes: the verdict is `judge`'s, and a bad package costs only itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import structlog
from sqlalchemy import select

from capdex.encoding.abi import checksum_address
from capdex.errors import Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.rpc.errors import RpcError
from capdex.net.rpc.replies import RpcReply, read_one
from capdex.net.rpc.transport import read_in_thread
from capdex.package import judge
from capdex.problems import Reason, Verdict
from capdex.registry.events import Announcement
from capdex.registry.logs import BlockRef
from capdex_indexer.db.models import RELEASE
from capdex_indexer.fetch import fetcher
from capdex_indexer.fetch.fetcher import Fetcher
from capdex_indexer.monitoring.health import Health
from capdex_indexer.projection.block_range import LogReader
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_indexer.sync.loop import SyncProgress
from capdex_indexer.workers import pool
from capdex_indexer.workers.frames import ANSWER, MAX_REPLY_BYTES, WorkStatus
from capdex_indexer.workers.pool import COMMAND, Parked, Verifier
from capdex_indexer.workers.process import WorkerLost

PACKAGES = Path(__file__).parents[2] / "vectors" / "packages" / "hostile"

# A worker as it is, whose `judge` does to the process what some input may do one day.
HOSTILE = """
import os, resource, signal, sys, time
from pathlib import Path
from capdex import package
from capdex_indexer.workers import main as worker

once = Path(sys.argv[1])
steps = open(sys.argv[2], "a", buffering=1)
honest = package.judge
print("start", os.getpid(), file=steps)

def judge(announcement, data):
    how = data.partition(b" ")[0]
    print("judge", announcement.cap_uri, file=steps)
    if how == b"spin":
        while True:
            pass
    if how == b"eat":
        bytearray(1 << 30)
    if how == b"crash" and (data != b"crash once" or not once.exists()):
        once.touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == b"hang" and (data != b"hang once" or not once.exists()):
        once.touch()
        time.sleep(3600)
    if how == b"work":
        resource.getrusage = lambda who: resource.struct_rusage([0] * 16)  # it lags behind
        until = time.process_time() + 0.4
        while time.process_time() < until:
            pass
    if data == b"print":
        print("noise" * 1000, flush=True)
        os.write(1, b"more noise")
    if data == b"raise":
        raise RuntimeError("a fault of ours")
    return honest(announcement, data)

package.judge = judge
worker.main()
"""


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[str, ...]:
    """A command for workers that `spin`, `eat`, `crash`, `hang` and `print` when told so."""
    script = tmp_path / "hostile.py"
    script.write_text(HOSTILE)
    return (sys.executable, "-P", str(script), str(tmp_path / "crashed"), str(tmp_path / "steps"))


@pytest.fixture
def killed(hostile: tuple[str, ...], tmp_path: Path) -> tuple[str, ...]:
    """A command for workers that are killed at each package while there is a file `killing`."""
    script = Path(hostile[2])
    text = script.read_text()
    begins = '    how = data.partition(b" ")[0]\n'
    kill = (
        f"    if Path({str(tmp_path / 'killing')!r}).exists():\n        os.kill(os.getpid(), 9)\n"
    )
    script.write_text(text.replace(begins, begins + kill))
    return hostile


def is_there(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def announce(making: Any) -> Any:
    def make(data: bytes, name: str = "note") -> Announcement:
        cid = Cid.of(data)
        publisher = checksum_address(making.PUBLISHER)
        uri = f"did:nuwa:cap:{name}@1.0.0"
        return Announcement(making.CHAIN_ID, publisher, uri, "1.0.0", str(cid), cid.digest)

    return make


async def test_a_pool_that_got_no_package_ends_its_process(
    hostile: tuple[str, ...], tmp_path: Path
) -> None:
    async with Verifier(command=hostile):
        pass
    ((_, pid),) = [line.split() for line in (tmp_path / "steps").read_text().splitlines()]
    assert not is_there(int(pid))


async def test_the_judgement_is_the_one_that_is_made_here(making: Any, announce: Any) -> None:
    good, unbound = making.package_bytes(), making.package_bytes(publisher=None)
    async with Verifier(1) as verifier:
        for data in (good, unbound, b"", b"\xff", b"[" * 100_000, good[:-1]):
            announcement = announce(data)
            here = Judgement.of(judge(announcement, data))
            assert await verifier.judge(announcement, data) == here


@pytest.mark.parametrize("how", [b"crash", b"eat", b"hang", b"spin", b"raise"])
async def test_a_package_that_takes_its_worker_along_is_parked_and_no_other(
    making: Any, announce: Any, hostile: tuple[str, ...], how: bytes
) -> None:
    good = making.package_bytes()
    judge_s = 0.3 if how == b"hang" else 60.0
    async with Verifier(1, judge_s=judge_s, command=hostile) as verifier:
        bad, *others = await asyncio.gather(
            verifier.judge(announce(how), how),
            *(verifier.judge(announce(good), good) for _ in range(3)),
        )
    assert isinstance(bad, Parked)
    assert bad.reason is Reason.WORKER_LIMIT
    assert bad.message
    assert [other.verdict for other in others] == [Verdict.VERIFIED] * 3


async def test_a_hundred_packages_of_which_twenty_end_their_worker(
    making: Any,
    chain: Any,
    block_directory: BlockDirectory,
    hostile: tuple[str, ...],
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/index.db"
    store, index = Store.open(url, making.DEPLOYMENT), Index(url)
    # one that spins: it takes all the processor time that a package may have
    ways = ["spin"] + ["eat"] * 7 + ["crash"] * 10 + ["hang"] * 2
    names = [f"package-{i}" for i in range(100)]
    bad = {f"did:nuwa:cap:{name}@1.0.0": way for name, way in zip(names[::5], ways, strict=True)}
    for name in names:
        way = bad.get(f"did:nuwa:cap:{name}@1.0.0")
        chain.publish(name, data=f"{way} {name}".encode() if way else None)
    for data in chain.packages.values():
        await block_directory.put(data)
    making.append(store, chain)

    async with Verifier(2, judge_s=4.0, command=hostile) as verifier:
        fetching = Fetcher(store, [], verifier, block_directory, committed=asyncio.Event())
        running = asyncio.create_task(fetching.run())
        async with asyncio.timeout(300):
            while index.status().by_availability.get("pending"):  # noqa: ASYNC110 - rows
                await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    state = index.status()
    assert state.by_availability == {"available": 80, "parked": 20}
    assert state.by_verdict == {"verified": 80}
    releases = {release.cap_uri: release for name in names for release in index.releases(name)}
    assert {uri for uri, x in releases.items() if x.availability == "parked"} == set(bad)
    assert {releases[uri].reason for uri in bad} == {Reason.WORKER_LIMIT}

    # The delay is bounded in steps: no good package is judged twice, no bad one more often than
    # its way to end calls for, and no worker is started but for one that ended. On a busy machine
    # the wall clock may end a worker that spins before its processor time does: it is tried again.
    steps = [line.split() for line in (tmp_path / "steps").read_text().splitlines()]
    judged = Counter(what for step, what in steps if step == "judge")
    tries = {"crash": (2,), "hang": (2,), "spin": (1, 2)}
    assert judged.keys() == releases.keys()
    assert [x for x, n in judged.items() if n not in tries.get(bad.get(x, ""), (1,))] == []
    started = [int(what) for step, what in steps if step == "start"]
    ended = sum(judged[uri] for uri in bad)
    assert 2 <= len(started) <= 2 + ended
    assert [pid for pid in started if is_there(pid)] == []
    index.close()
    store.close()


async def test_workers_that_are_killed_count_against_no_release_and_the_node_says_so(
    making: Any,
    chain: Any,
    block_directory: BlockDirectory,
    killed: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetcher, "WORKER_S", 0.05)
    url = f"sqlite:///{tmp_path}/index.db"
    store, index = Store.open(url, making.DEPLOYMENT), Index(url)
    for number in range(20):
        chain.publish(f"package-{number}")
    for data in chain.packages.values():
        await block_directory.put(data)
    making.append(store, chain)
    killing = tmp_path / "killing"
    killing.touch()
    with structlog.testing.capture_logs() as lines:
        async with Verifier(2, command=killed) as verifier:
            fetching = Fetcher(store, [], verifier, block_directory, committed=asyncio.Event())
            health = Health(judging_fails=lambda: verifier.trouble is not None)
            health.report(SyncProgress(BlockRef(1, b"", b"", 0), 1))
            running = asyncio.create_task(fetching.run())
            async with asyncio.timeout(60):
                while verifier.trouble is None:  # noqa: ASYNC110 - a process
                    await asyncio.sleep(0.01)
            assert [fault["code"] for fault in health.faults()] == ["NO_JUDGE"]
            killing.unlink()
            async with asyncio.timeout(60):
                while index.status().by_availability.get("pending"):  # noqa: ASYNC110 - rows
                    await asyncio.sleep(0.05)
            assert health.faults() == []
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert index.status().by_verdict == {"verified": 20}
    with index.read() as connection:
        assert set(connection.execute(select(RELEASE.c.attempts)).scalars()) == {0}
    assert [line for line in lines if line["log_level"] != "info"] == []
    index.close()
    store.close()


async def test_an_idle_worker_that_is_killed_costs_nothing(
    making: Any, announce: Any, hostile: tuple[str, ...], tmp_path: Path
) -> None:
    good = making.package_bytes()
    async with Verifier(1, command=hostile) as verifier:
        for _ in range(3):
            judged = await verifier.judge(announce(good), good)
            assert judged.verdict is Verdict.VERIFIED
            pids = [
                line.split()[1]
                for line in (tmp_path / "steps").read_text().splitlines()
                if line.startswith("start")
            ]
            os.kill(int(pids[-1]), signal.SIGKILL)


async def test_workers_end_when_there_is_no_work_and_start_when_there_is(
    making: Any,
    announce: Any,
    hostile: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "REST_S", 0.01)
    good = making.package_bytes()

    def started() -> list[int]:
        steps = [line.split() for line in (tmp_path / "steps").read_text().splitlines()]
        return [int(what) for step, what in steps if step == "start"]

    async with Verifier(2, command=hostile) as verifier:
        for times in range(1, 4):
            while any(map(is_there, started())):  # noqa: ASYNC110 - a process
                await asyncio.sleep(0.01)
            assert len(started()) == times
            assert (await verifier.judge(announce(good), good)).verdict is Verdict.VERIFIED


async def test_packages_that_come_one_by_one_go_to_the_worker_that_runs(
    making: Any, announce: Any, hostile: tuple[str, ...], tmp_path: Path
) -> None:
    good = making.package_bytes()
    async with Verifier(3, command=hostile) as verifier:
        for _ in range(4):
            assert (await verifier.judge(announce(good), good)).verdict is Verdict.VERIFIED
    assert (tmp_path / "steps").read_text().count("start") == 1


async def test_no_file_that_is_known_to_be_hostile_ends_its_worker(
    announce: Any, hostile: tuple[str, ...], tmp_path: Path
) -> None:
    async with Verifier(1, command=hostile) as verifier:
        for path in sorted(PACKAGES.glob("*.acp.yaml")):
            data = path.read_bytes()
            here = Judgement.of(judge(announce(data), data))
            assert await verifier.judge(announce(data), data) == here
    steps = (tmp_path / "steps").read_text().splitlines()
    assert [step.split()[0] for step in steps].count("start") == 1


@pytest.mark.parametrize(("data", "judge_s"), [(b"crash once", 60.0), (b"hang once", 1.0)])
async def test_a_worker_lost_to_something_else_costs_no_package(
    announce: Any, hostile: tuple[str, ...], data: bytes, judge_s: float
) -> None:
    async with Verifier(1, judge_s=judge_s, command=hostile) as verifier:
        judged = await verifier.judge(announce(data), data)
    assert judged.verdict is Verdict.INVALID


async def test_a_worker_that_has_worked_for_long_has_as_much_time_as_a_new_one(
    making: Any, announce: Any, hostile: tuple[str, ...]
) -> None:
    good = making.package_bytes()
    async with Verifier(1, command=hostile) as verifier:
        for number in range(8):  # 3.2 s of processor time, of which each may take 1
            data = b"work %d" % number
            judged = await verifier.judge(announce(data), data)
            assert judged.verdict is Verdict.INVALID
        assert (await verifier.judge(announce(good), good)).verdict is Verdict.VERIFIED


async def test_what_a_library_prints_breaks_no_answer(
    making: Any, announce: Any, hostile: tuple[str, ...]
) -> None:
    good = making.package_bytes()
    async with Verifier(1, command=hostile) as verifier:
        judged = await verifier.judge(announce(b"print"), b"print")
        assert judged.verdict is Verdict.INVALID
        assert (await verifier.judge(announce(good), good)).verdict is Verdict.VERIFIED


async def test_a_cancelled_judgement_never_answers_the_next_one(
    making: Any, announce: Any, hostile: tuple[str, ...]
) -> None:
    good = making.package_bytes()
    async with Verifier(1, command=hostile) as verifier:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await verifier.judge(announce(b"hang"), b"hang")
        assert (await verifier.judge(announce(good), good)).verdict is Verdict.VERIFIED


async def test_packages_are_judged_side_by_side(making: Any, announce: Any) -> None:
    data = {name: making.package_bytes(name) for name in ("note", "weather", "maps", "mail")}
    async with Verifier(2) as verifier:
        judged = await asyncio.gather(
            *(verifier.judge(announce(file, name), file) for name, file in data.items())
        )
    ids = [json.loads(one.metadata or "")["id"] for one in judged if isinstance(one, Judgement)]
    assert ids == [f"did:nuwa:cap:{name}@1.0.0" for name in data]


@pytest.mark.parametrize("at", [3, 10])  # among the first handed over, and among those added
@pytest.mark.parametrize(("how", "times"), [(b"eat", 1), (b"crash", 2), (b"spin", 1)])
async def test_packages_handed_over_together_are_blamed_one_by_one(
    making: Any,
    announce: Any,
    hostile: tuple[str, ...],
    tmp_path: Path,
    how: bytes,
    times: int,
    at: int,
) -> None:
    names = [f"package-{i}" for i in range(20)]
    files = {name: making.package_bytes(name) for name in names}
    files[names[at]] = how
    async with Verifier(1, command=hostile) as verifier:
        judged = await asyncio.gather(
            *(verifier.judge(announce(file, name), file) for name, file in files.items())
        )
    assert [isinstance(x, Parked) for x in judged] == [name == names[at] for name in names]
    steps = [line.split() for line in (tmp_path / "steps").read_text().splitlines()]
    counted = Counter(what for step, what in steps if step == "judge")
    bad = f"did:nuwa:cap:{names[at]}@1.0.0"
    assert counted == {f"did:nuwa:cap:{x}@1.0.0": 1 for x in names} | {bad: times}
    # No worker judges anything more after it met a bound.
    behind = [steps[i + 1][0] for i, (_, what) in enumerate(steps[:-1]) if what == bad]
    assert behind == ["start"]


async def test_where_no_new_worker_starts_those_who_wait_are_told(
    making: Any, announce: Any, hostile: tuple[str, ...], tmp_path: Path
) -> None:
    good = making.package_bytes()
    async with Verifier(1, command=hostile) as verifier:
        (tmp_path / "hostile.py").unlink()
        results = await asyncio.gather(
            verifier.judge(announce(b"crash"), b"crash"),
            verifier.judge(announce(good), good),
            return_exceptions=True,
        )
    assert [type(one) for one in results] == [WorkerLost, WorkerLost]


@pytest.mark.parametrize("answer", [b"", b"[]", b"N.", b'["verified"]', b"\xff"])
async def test_a_worker_that_answers_something_else_is_replaced_and_its_package_parked(
    announce: Any, answer: bytes
) -> None:
    frames = bytes(5) + ANSWER.pack(WorkStatus.DONE, len(answer)) + answer
    code = f"import sys; w = sys.stdout.buffer; w.write({frames!r}); w.flush(); sys.stdin.read()"
    async with Verifier(1, command=(sys.executable, "-c", code)) as verifier:
        assert isinstance(await verifier.judge(announce(b"a"), b"a"), Parked)


async def test_whoever_waits_when_the_verifier_closes_is_cancelled(
    announce: Any, hostile: tuple[str, ...], tmp_path: Path
) -> None:
    async with Verifier(1, command=hostile) as verifier:
        asking = [
            asyncio.create_task(verifier.judge(announce(data), data)) for data in (b"hang", b"a")
        ]
        while "judge" not in (tmp_path / "steps").read_text():  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.01)
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(one) for one in results] == [asyncio.CancelledError] * 2


REGISTRY = b"\x22" * 20
READER = LogReader(REGISTRY, 1, 9)


def reply(count: int = 3, *, padding: int = 0) -> RpcReply:
    """A reply of `eth_getLogs` to the call 1."""
    logs = [
        {
            "address": "0x" + REGISTRY.hex(),
            "blockNumber": hex(1 + at),
            "blockHash": "0x" + bytes([at] * 32).hex(),
            "transactionHash": "0x" + bytes([at + 1] * 32).hex(),
            "logIndex": "0x0",
            "topics": ["0x" + bytes([7] * 32).hex()],
            "data": "0x" + bytes(10 + padding).hex(),
        }
        for at in range(count)
    ]
    return RpcReply(200, None, json.dumps({"jsonrpc": "2.0", "id": 1, "result": logs}).encode())


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of calls whose replies were read in a thread of this process."""
    read: list[int] = []

    async def counted(label: str, answer: RpcReply, id_: int, reader: Any) -> Any:
        read.append(id_)
        return await read_in_thread(label, answer, id_, reader)

    monkeypatch.setattr(pool, "read_in_thread", counted)
    return read


async def idle(verifier: Verifier, in_threads: list[int]) -> None:
    """Wait until a worker is idle."""
    while True:
        await verifier.read_reply("endpoint", reply(), 1, READER)
        if not in_threads:
            return
        in_threads.clear()


async def test_an_idle_worker_reads_replies(in_threads: list[int]) -> None:
    here = read_one("endpoint", reply(), 1, READER)
    async with Verifier(2) as verifier:
        await idle(verifier, in_threads)
        asked = (verifier.read_reply("endpoint", reply(), 1, READER) for _ in range(20))
        assert await asyncio.gather(*asked) == [here] * 20
        assert not in_threads


async def test_a_reply_that_is_refused_is_read_again_here_and_costs_no_worker(
    in_threads: list[int],
) -> None:
    async with Verifier(1) as verifier:
        await idle(verifier, in_threads)
        with pytest.raises(RpcError, match="the block"):
            await verifier.read_reply("the block's endpoint", reply(), 2, READER)
        assert in_threads == [2]
        in_threads.clear()
        await verifier.read_reply("endpoint", reply(), 1, READER)
        assert not in_threads


async def test_a_reply_is_read_in_a_thread_where_no_worker_is_idle(
    announce: Any, hostile: tuple[str, ...], tmp_path: Path, in_threads: list[int]
) -> None:
    async with Verifier(1, command=hostile) as verifier:
        judging = asyncio.create_task(verifier.judge(announce(b"hang"), b"hang"))
        while "judge" not in (tmp_path / "steps").read_text():  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.01)
        await verifier.read_reply("endpoint", reply(), 1, READER)
        judging.cancel()
    await Verifier(1).read_reply("endpoint", reply(), 1, READER)  # before any has started
    assert in_threads == [1, 1]


async def test_replies_that_are_too_long_or_of_other_calls_are_read_in_a_thread(
    in_threads: list[int],
) -> None:
    async with Verifier(1) as verifier:
        await idle(verifier, in_threads)
        long = reply(1, padding=MAX_REPLY_BYTES // 2)
        drafts, _ = await verifier.read_reply("endpoint", long, 1, READER)
        assert len(drafts) == 1
        assert len(await verifier.read_reply("endpoint", reply(), 1, list)) == 3
    assert in_threads == [1, 1]


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", "bytearray(1 << 30)", "sys.exit()"])
async def test_a_reply_that_ends_its_worker_is_read_here(
    tmp_path: Path, in_threads: list[int], how: str
) -> None:
    script = tmp_path / "dying.py"
    script.write_text(
        "import os, sys\nfrom capdex_indexer.workers import main\n"
        f"def read_logs(*request):\n    {how}\n"
        "main.read_logs = read_logs\nmain.main()\n"
    )
    async with Verifier(1, command=(sys.executable, "-P", str(script))) as verifier:
        for _ in range(2):
            drafts, _ = await verifier.read_reply("endpoint", reply(), 1, READER)
            assert len(drafts) == 3
    assert in_threads == [1, 1]


async def test_modules_of_the_current_directory_are_not_run(
    making: Any, announce: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orjson.py").write_text("raise SystemExit('this is somebody else's file')")
    monkeypatch.chdir(tmp_path)
    data = making.package_bytes()
    async with Verifier(1, command=COMMAND) as verifier:
        assert (await verifier.judge(announce(data), data)).verdict is Verdict.VERIFIED


@pytest.mark.parametrize("command", [("/nonexistent",), (sys.executable, "-c", "")])
async def test_a_machine_that_starts_no_process_is_said_to_be_so(command: tuple[str, ...]) -> None:
    with pytest.raises(Unavailable) as caught:
        async with Verifier(1, command=command):
            pass
    assert caught.value.why
    assert caught.value.fix
