"""The line of jobs: fair between publishers, each release in it once."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from capdex.events import Announcement
from indexer.line import Line
from indexer.store import Job


def job(release_id: int, publisher: str = "0xA") -> Job:
    return Job(release_id, Announcement(1, publisher, "", "", "", b""), 0)


async def take(line: Line, count: int) -> list[int]:
    return [(await line.take()).release_id for _ in range(count)]


async def test_publishers_take_turns() -> None:
    line = Line(places=9, depth=9)
    await line.add([job(1, "0xA"), job(2, "0xA"), job(3, "0xA"), job(4, "0xB"), job(5, "0xC")])
    assert await take(line, 5) == [1, 4, 5, 2, 3]


async def test_one_publisher_never_holds_every_place() -> None:
    line = Line(places=2, depth=9)
    await line.add([job(number) for number in range(4)])
    first = [await line.take(), await line.take()]
    third = asyncio.create_task(line.take())
    await line.hungry.wait()
    assert not third.done()
    await line.add([job(9, "0xB")])
    assert (await third).release_id == 9
    await line.done(first[0])
    assert (await line.take()).release_id == 2


async def test_a_release_stands_in_line_once_until_it_is_done() -> None:
    line = Line(places=2, depth=9)
    assert await line.add([job(1), job(1)]) == 1
    taken = await line.take()
    assert await line.add([job(1)]) == 0
    assert len(line) == 1
    await line.done(taken)
    assert await line.add([job(1)]) == 1


async def test_a_flood_waits_in_the_store_not_in_memory() -> None:
    line = Line(places=2, depth=3)
    assert await line.add([job(number) for number in range(100)]) == 3
    assert len(line) == 3


async def test_an_empty_line_is_hungry_until_something_comes() -> None:
    line = Line(places=1, depth=1)
    waiting = asyncio.create_task(line.take())
    await line.hungry.wait()
    await line.add([job(1)])
    assert (await waiting).release_id == 1
    assert not line.hungry.is_set()


@given(
    jobs=st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ABC")), max_size=60),
    places=st.integers(1, 3),
)
def test_everything_in_line_comes_out_once(jobs: list[tuple[int, str]], places: int) -> None:
    async def scenario() -> None:
        line = Line(places=places, depth=100)
        given = dict(jobs)
        await line.add([job(release_id, publisher) for release_id, publisher in jobs])
        out = []
        for _ in given:
            one = await line.take()
            out.append(one.release_id)
            await line.done(one)
        assert sorted(out) == sorted(given)
        assert len(line) == 0

    asyncio.run(scenario())
