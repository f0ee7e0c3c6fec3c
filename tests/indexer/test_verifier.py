"""Judging in worker processes: the verdict is `judge`'s, and a bad package costs only itself."""

from __future__ import annotations

import asyncio
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from capdex.cid import Cid
from capdex.errors import Unavailable
from capdex.events import Announcement, checksum_address
from capdex.package import RejectedPackage, VerifiedPackage, judge
from capdex.problems import Reason, Verdict
from indexer.verifier import COMMAND, Parked, Verifier

# A worker as it is, whose `judge` does to the process what some input may do one day.
HOSTILE = """
import os, signal, sys, time
from pathlib import Path
from indexer import worker

once = Path(sys.argv[1])
honest = worker.judge

def judge(announcement, data):
    if data == b"spin":
        while True:
            pass
    if data == b"eat":
        bytearray(1 << 30)
    if data == b"crash" or (data == b"crash once" and not once.exists()):
        once.touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    if data == b"hang":
        time.sleep(3600)
    if data == b"print":
        print("noise" * 1000, flush=True)
        os.write(1, b"more noise")
    if data == b"raise":
        raise RuntimeError("a fault of ours")
    return honest(announcement, data)

worker.judge = judge
worker.main()
"""


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[str, ...]:
    """A command for workers that `spin`, `eat`, `crash`, `hang` and `print` when told so."""
    script = tmp_path / "hostile.py"
    script.write_text(HOSTILE)
    return (sys.executable, "-P", str(script), str(tmp_path / "crashed"))


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


async def test_a_worker_lost_to_something_else_costs_no_package(
    announce: Any, hostile: tuple[str, ...]
) -> None:
    async with Verifier(1, command=hostile) as verifier:
        judged = await verifier.judge(announce(b"crash once"), b"crash once")
    assert isinstance(judged, RejectedPackage)
    assert judged.verdict is Verdict.INVALID


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
