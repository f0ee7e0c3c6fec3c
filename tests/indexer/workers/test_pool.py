"""Judging in worker processes: the verdict is `judge`'s, and a bad package costs only itself."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from capdex.encoding.abi import checksum_address
from capdex.errors import Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.package import RejectedPackage, VerifiedPackage, judge
from capdex.problems import Reason, Verdict
from capdex.registry.events import Announcement
from indexer.fetch.fetcher import Fetcher
from indexer.query.index import Index
from indexer.store import Store
from indexer.workers.pool import COMMAND, MAX_ASIDE_BYTES, Parked, Verifier

PACKAGES = Path(__file__).parents[2] / "vectors" / "packages" / "hostile"

# A worker as it is, whose `judge` does to the process what some input may do one day.
HOSTILE = """
import os, resource, signal, sys, time
from pathlib import Path
from capdex import package
from indexer.workers import main as worker

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


async def test_the_verdict_is_the_one_that_judge_gives_here(making: Any, announce: Any) -> None:
    good, unbound = making.package_bytes(), making.package_bytes(publisher=None)
    async with Verifier(1) as verifier:
        for data in (good, unbound, b"", b"\xff", b"[" * 100_000, good[:-1]):
            announcement = announce(data)
            assert await verifier.judge(announcement, data) == judge(announcement, data)


async def test_a_verified_package_stays_one_across_the_pipe(making: Any, announce: Any) -> None:
    data = making.package_bytes()
    async with Verifier(1) as verifier:
        judged = await verifier.judge(announce(data), data)
    assert isinstance(judged, VerifiedPackage)
    assert judged.data == data
    assert judged.manifest.uri.name == "note"
    with pytest.raises(TypeError, match="only"):
        VerifiedPackage(
            judged.announcement,
            judged.manifest,
            judged.signer,
            judged.checks,
            judged.problems,
            data,
            judged.mint,
        )
    assert isinstance(pickle.loads(pickle.dumps(judged)), VerifiedPackage)  # noqa: S301


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
    assert [type(other) for other in others] == [VerifiedPackage] * 3


async def test_a_hundred_packages_of_which_twenty_end_their_worker(
    making: Any,
    chain: Any,
    block_directory: BlockDirectory,
    hostile: tuple[str, ...],
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/index.db"
    store, index = Store.open(url, making.DEPLOYMENT), Index(url)
    ways = ["spin"] * 3 + ["eat"] * 6 + ["crash"] * 9 + ["hang"] * 2
    names = [f"package-{i}" for i in range(100)]
    bad = {f"did:nuwa:cap:{name}@1.0.0": way for name, way in zip(names[::5], ways, strict=True)}
    for name in names:
        way = bad.get(f"did:nuwa:cap:{name}@1.0.0")
        chain.publish(name, data=f"{way} {name}".encode() if way else None)
    for data in chain.packages.values():
        await block_directory.put(data)
    making.append(store, chain)

    async with Verifier(2, judge_s=4.0, command=hostile) as verifier:
        fetcher = Fetcher(store, [], verifier, block_directory, committed=asyncio.Event())
        running = asyncio.create_task(fetcher.run())
        async with asyncio.timeout(300):
            while index.state().by_availability.get("pending"):  # noqa: ASYNC110 - rows
                await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    state = index.state()
    assert state.by_availability == {"available": 80, "parked": 20}
    assert state.by_verdict == {"verified": 80}
    found = {found.cap_uri: found for name in names for found in index.releases(name)}
    assert {uri for uri, one in found.items() if one.availability == "parked"} == set(bad)
    assert {found[uri].reason for uri in bad} == {Reason.WORKER_LIMIT}

    # The delay is bounded in steps: no good package is judged twice, no bad one more often than
    # its way to end calls for, and no worker is started but for one that ended.
    steps = [line.split() for line in (tmp_path / "steps").read_text().splitlines()]
    judged = Counter(what for step, what in steps if step == "judge")
    assert judged == {uri: 2 if bad.get(uri) in ("crash", "hang") else 1 for uri in found}
    started = [int(what) for step, what in steps if step == "start"]
    ended = sum(judged[uri] for uri in bad)
    assert 2 <= len(started) <= 2 + ended
    assert [pid for pid in started if is_there(pid)] == []
    index.close()
    store.close()


async def test_no_file_that_is_known_to_be_hostile_ends_its_worker(
    announce: Any, hostile: tuple[str, ...], tmp_path: Path
) -> None:
    async with Verifier(1, command=hostile) as verifier:
        for path in sorted(PACKAGES.glob("*.acp.yaml")):
            data = path.read_bytes()
            assert await verifier.judge(announce(data), data) == judge(announce(data), data)
    steps = (tmp_path / "steps").read_text().splitlines()
    assert [step.split()[0] for step in steps].count("start") == 1


@pytest.mark.parametrize(("data", "judge_s"), [(b"crash once", 60.0), (b"hang once", 1.0)])
async def test_a_worker_lost_to_something_else_costs_no_package(
    announce: Any, hostile: tuple[str, ...], data: bytes, judge_s: float
) -> None:
    async with Verifier(1, judge_s=judge_s, command=hostile) as verifier:
        judged = await verifier.judge(announce(data), data)
    assert isinstance(judged, RejectedPackage)
    assert judged.verdict is Verdict.INVALID


async def test_a_worker_that_has_worked_for_long_has_as_much_time_as_a_new_one(
    making: Any, announce: Any, hostile: tuple[str, ...]
) -> None:
    good = making.package_bytes()
    async with Verifier(1, command=hostile) as verifier:
        for number in range(8):  # 3.2 s of processor time, of which each may take 1
            data = b"work %d" % number
            assert isinstance(await verifier.judge(announce(data), data), RejectedPackage)
        assert isinstance(await verifier.judge(announce(good), good), VerifiedPackage)


async def test_what_a_library_prints_breaks_no_answer(
    making: Any, announce: Any, hostile: tuple[str, ...]
) -> None:
    good = making.package_bytes()
    async with Verifier(1, command=hostile) as verifier:
        assert isinstance(await verifier.judge(announce(b"print"), b"print"), RejectedPackage)
        assert isinstance(await verifier.judge(announce(good), good), VerifiedPackage)


async def test_a_cancelled_judgement_never_answers_the_next_one(
    making: Any, announce: Any, hostile: tuple[str, ...]
) -> None:
    good = making.package_bytes()
    async with Verifier(1, command=hostile) as verifier:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await verifier.judge(announce(b"hang"), b"hang")
        assert isinstance(await verifier.judge(announce(good), good), VerifiedPackage)


async def test_packages_are_judged_side_by_side(making: Any, announce: Any) -> None:
    data = {name: making.package_bytes(name) for name in ("note", "weather", "maps", "mail")}
    async with Verifier(2) as verifier:
        judged = await asyncio.gather(
            *(verifier.judge(announce(file, name), file) for name, file in data.items())
        )
    assert [x.manifest.uri.name for x in judged if isinstance(x, VerifiedPackage)] == list(data)


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
    assert [isinstance(one, Parked) for one in judged] == [name == names[at] for name in names]
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
    assert [type(one) for one in results] == [Unavailable, Unavailable]


async def test_an_answer_that_is_none_is_told_and_costs_the_worker(announce: Any) -> None:
    garbled = (
        "import sys; w = sys.stdout.buffer; w.write(b'\\0\\0\\0\\2N.\\0\\0\\0\\3abc'); w.close()"
    )
    async with Verifier(1, command=(sys.executable, "-c", garbled)) as verifier:
        for _ in range(2):
            with pytest.raises(pickle.UnpicklingError):
                await verifier.judge(announce(b"a"), b"a")


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


PID = "__import__('os').getpid()"


async def idle(verifier: Verifier) -> int:
    """The process of a worker, once one is idle."""
    while (pid := await verifier.aside(os.getpid)) == os.getpid():  # noqa: ASYNC110 - it has no news
        await asyncio.sleep(0.01)
    return pid


async def test_other_work_is_done_by_a_worker_that_is_idle() -> None:
    async with Verifier(2) as verifier:
        await idle(verifier)
        assert await verifier.aside(partial(sum, [1, 2])) == 3
        where = await asyncio.gather(*(verifier.aside(os.getpid) for _ in range(20)))
        assert os.getpid() not in where
        with pytest.raises(ValueError, match="invalid literal"):
            await verifier.aside(partial(int, "three"))
        assert await verifier.aside(os.getpid) in where  # that cost no worker


async def test_other_work_is_done_in_a_thread_where_no_worker_is_idle(
    announce: Any, hostile: tuple[str, ...], tmp_path: Path
) -> None:
    async with Verifier(1, command=hostile) as verifier:
        judging = asyncio.create_task(verifier.judge(announce(b"hang"), b"hang"))
        while "judge" not in (tmp_path / "steps").read_text():  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.01)
        assert await verifier.aside(os.getpid) == os.getpid()
        judging.cancel()
    assert await Verifier(1).aside(os.getpid) == os.getpid()  # before any has started


async def test_work_too_large_for_a_pipe_is_done_in_a_thread() -> None:
    large = {"padding": bytes(MAX_ASIDE_BYTES)}
    async with Verifier(1) as verifier:
        await idle(verifier)
        assert await verifier.aside(partial(eval, PID, large)) == os.getpid()
        assert await verifier.aside(partial(eval, PID, {})) != os.getpid()


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", "bytearray(1 << 30)"])
async def test_work_that_a_worker_does_not_survive_is_done_here(how: str) -> None:
    code = f"import os\nif os.getppid() == {os.getpid()}:\n    {how}\ndone.append(1)"
    done: list[int] = []
    async with Verifier(1) as verifier:
        before = await idle(verifier)
        await verifier.aside(partial(exec, code, {"done": done}))
        assert done == [1]
        assert await idle(verifier) != before


async def test_work_that_nobody_waits_for_any_more_costs_no_worker() -> None:
    async with Verifier(1) as verifier:
        worker = await idle(verifier)
        sleeping = asyncio.create_task(verifier.aside(partial(time.sleep, 0.05)))
        await asyncio.sleep(0.01)
        sleeping.cancel()
        assert await idle(verifier) == worker


async def test_modules_of_the_current_directory_are_not_run(
    making: Any, announce: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit('this is somebody else's file')")
    monkeypatch.chdir(tmp_path)
    data = making.package_bytes()
    async with Verifier(1, command=COMMAND) as verifier:
        assert isinstance(await verifier.judge(announce(data), data), VerifiedPackage)


@pytest.mark.parametrize("command", [("/nonexistent",), (sys.executable, "-c", "")])
async def test_a_machine_that_starts_no_process_is_said_to_be_so(command: tuple[str, ...]) -> None:
    with pytest.raises(Unavailable) as caught:
        async with Verifier(1, command=command):
            pass
    assert caught.value.why
    assert caught.value.fix
