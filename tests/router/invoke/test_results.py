"""Long results: the start is answered, the rest read in slices, for a while."""

from __future__ import annotations

import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex_router.invoke.results import Bounds, Results
from capdex_router.model.refs import InvokeResult


def stored(path: Path, bounds: Bounds = Bounds(), now: list[float] | None = None) -> Results:  # noqa: B008
    clock = now if now is not None else [1_000.0]
    return Results(path, bounds, lambda: clock[0])


def whole(results: Results, first: Json) -> bytes:
    text, after = first["part"], first["next"]
    while after is not None:
        said = orjson.loads(after.removeprefix("call "))
        found = results.read(said["uri"], said["input"]["offset"])
        text, after = text + found["part"], found["next"]
    return str(text).encode()


def test_a_short_result_stays_as_it_is(tmp_path: Path) -> None:
    result = InvokeResult({"text": "a"}, None, 1)
    assert stored(tmp_path).shorten(result) is result


@given(text=st.text(alphabet="aé日🙂", min_size=20, max_size=60), size=st.integers(4, 16))
def test_the_slices_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int
) -> None:
    results = stored(tmp_path_factory.mktemp("results"), Bounds(slice_bytes=size))
    output = {"text": text}
    found = results.shorten(InvokeResult(output, None, 1)).output or {}
    assert found["bytes"] == len(orjson.dumps(output))
    assert orjson.loads(whole(results, found)) == output


def test_a_stored_result_expires(tmp_path: Path) -> None:
    now = [1_000.0]
    results = stored(tmp_path, Bounds(slice_bytes=10, expiry_s=60.0), now)
    found = results.shorten(InvokeResult({"text": "a" * 100}, None, 1)).output or {}
    now[0] += 59
    assert results.read(found["result"], 10)["part"] == "a" * 10
    now[0] += 1
    with pytest.raises(InvalidInput) as refused:
        results.read(found["result"])
    assert refused.value.code == Code.NOT_FOUND
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_go_when_room_is_short(tmp_path: Path) -> None:
    now = [1_000.0]
    results = stored(tmp_path, Bounds(slice_bytes=10, all_bytes=250), now)
    handles = []
    for _ in range(3):
        found = results.shorten(InvokeResult({"text": "a" * 100}, None, 1)).output or {}
        handles.append(found["result"])
        now[0] += 1
    with pytest.raises(InvalidInput):
        results.read(handles[0])
    assert results.read(handles[2])["bytes"] == 111


@pytest.mark.parametrize("work", ["read", "store"])
@pytest.mark.parametrize("number", range(6))
def test_what_another_router_removes_meanwhile_is_gone_and_no_fault(
    tmp_path: Path, work: str, number: int
) -> None:
    """The other one removes all, each time at another moment of the work of this one."""
    bounds = Bounds(slice_bytes=10)
    other = Results(tmp_path, bounds, lambda: 1e9)
    looks = -1

    def clock() -> float:
        nonlocal looks
        looks += 1
        if looks == number:
            other.shorten(InvokeResult({"text": "b" * 100}, None, 1))
        return 1_000.0

    for _ in range(3):
        first = stored(tmp_path, bounds).shorten(InvokeResult({"text": "a" * 100}, None, 1))
    handle = (first.output or {})["result"]
    here = Results(tmp_path, bounds, clock)
    if work == "store":
        handle = (here.shorten(InvokeResult({"text": "a" * 100}, None, 1)).output or {})["result"]
    read = 111
    with suppress(InvalidInput):
        read = here.read(handle)["bytes"]
    assert read == 111


def test_two_routers_at_once_store_and_read_within_their_bounds(tmp_path: Path) -> None:
    bounds = Bounds(slice_bytes=10, all_bytes=1_000)  # for nine results

    def work(_: int) -> int:
        results, read = Results(tmp_path, bounds), 0
        for _ in range(200):
            found = results.shorten(InvokeResult({"text": "a" * 100}, None, 1)).output or {}
            with suppress(InvalidInput):
                read += results.read(found["result"])["bytes"] == 111
        return read

    with ThreadPoolExecutor(2) as pool:
        assert min(pool.map(work, range(2))) > 0
    assert sum(x.stat().st_size for x in tmp_path.iterdir()) <= 1_111


def test_the_start_of_what_cannot_be_stored_is_answered_with_the_reason(tmp_path: Path) -> None:
    results = stored(tmp_path, Bounds(slice_bytes=10))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))  # as a disk that is full after 50 bytes
    try:
        full = results.shorten(InvokeResult({"text": "a" * 100}, None, 1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
    tmp_path.rmdir()
    gone = results.shorten(InvokeResult({"text": "a" * 100}, None, 1))
    for result, why in ((full, "File too large"), (gone, "No such file or directory")):
        assert result.ok
        assert result.output == {
            "part": '{"text":"a',
            "bytes": 111,
            "result": None,
            "next": None,
            "why": f"the rest is lost, since it could not be stored: {why}",
        }
    with pytest.raises(InvalidInput, match="no such stored result"):
        results.read("result:" + "a" * 16)


@given(st.text())
def test_no_other_handle_reads_a_file(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    with pytest.raises(InvalidInput):
        stored(tmp_path_factory.mktemp("results")).read(name)
    with pytest.raises(InvalidInput):
        stored(tmp_path_factory.mktemp("results")).read("result:" + name)


def test_an_offset_below_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="from 0 on"):
        stored(tmp_path).read("result:" + "a" * 16, -1)
