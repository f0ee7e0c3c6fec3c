"""Turns: whatever some owners do with their places, another has one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, Unavailable
from capdex.net.turns import Turns


class Calls:
    """Calls that hold their places until they are ended."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.running: list[tuple[str, asyncio.Event]] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, owner: str) -> None:
        self.tasks.append(asyncio.create_task(self._hold(owner)))
        await settled()

    async def _hold(self, owner: str) -> None:
        async with self.turns.turn(owner):
            end = asyncio.Event()
            self.running.append((owner, end))
            try:
                await end.wait()
            finally:
                self.running.remove((owner, end))

    async def end(self, number: int) -> None:
        if self.running:
            self.running[number % len(self.running)][1].set()
            await settled()

    async def cancel(self, number: int) -> None:
        if self.tasks:
            self.tasks[number % len(self.tasks)].cancel()
            await settled()

    def held(self) -> Counter[str]:
        return Counter(owner for owner, _ in self.running)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.integers(0, 2)),
        st.tuples(st.just("end"), st.integers(0, 20)),
        st.tuples(st.just("cancel"), st.integers(0, 40)),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_three_owners_do_a_fourth_has_one_of_eight_places(
    steps: Sequence[tuple[str, int]],
) -> None:
    async def main() -> None:
        calls = Calls(Turns(8, 1_000))
        for step, number in steps:
            match step:
                case "start":
                    await calls.start("abc"[number])
                case "end":
                    await calls.end(number)
                case _:
                    await calls.cancel(number)
            assert calls.held().total() <= 7
            assert max(calls.held().values(), default=0) <= 4
        await calls.start("d")
        assert calls.held()["d"] == 1
        while calls.running:  # nobody waits for ever, and no place is lost
            await calls.end(0)
        done = await asyncio.gather(*calls.tasks, return_exceptions=True)
        assert all(x is None or isinstance(x, asyncio.CancelledError) for x in done)
        for _ in range(4):
            await calls.start("e")
        assert calls.held()["e"] == 4
        for task in calls.tasks:
            task.cancel()
        await asyncio.gather(*calls.tasks, return_exceptions=True)

    asyncio.run(main())


async def test_one_owner_fills_neither_the_places_nor_the_room_to_wait() -> None:
    turns = Turns(2, 4)
    calls = Calls(turns)
    for _ in range(3):
        await calls.start("a")
    with pytest.raises(Unavailable) as refused:
        async with turns.turn("a"):
            pass
    assert refused.value.code is Code.RATE_LIMITED
    await calls.start("b")
    assert calls.held() == {"a": 1, "b": 1}
    await calls.start("c")  # behind two calls of the first owner, which had its turn
    await calls.end(0)
    assert calls.held() == {"b": 1, "c": 1}
    for task in calls.tasks:
        task.cancel()
    await asyncio.gather(*calls.tasks, return_exceptions=True)
