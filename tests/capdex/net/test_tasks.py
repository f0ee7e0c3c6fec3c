"""Coroutines side by side."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from capdex.errors import Unavailable
from capdex.net.tasks import both, cause, run_to_completion, together


async def fail(message: str = "no") -> int:
    raise Unavailable(message)


async def fail_in_a_group() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fail("the session is lost"))


async def fail_in_a_group_of_groups() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fail_in_a_group())


async def test_a_fault_inside_of_groups_is_told_as_itself() -> None:
    with pytest.raises(BaseExceptionGroup) as raised:
        await fail_in_a_group_of_groups()
    found = cause(raised.value)
    assert isinstance(found, Unavailable)
    assert found.message == "the session is lost"


@pytest.mark.parametrize("gather", [lambda *x: both(*x), lambda *x: together(x)])
async def test_what_runs_beside_a_failure_is_ended(gather) -> None:  # type: ignore[no-untyped-def]
    ended = asyncio.Event()

    async def waits() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 0

    with pytest.raises(Unavailable):
        await gather(waits(), fail())
    assert ended.is_set()


async def test_a_fault_of_a_thread_needs_no_garbage_collector() -> None:
    def work() -> None:
        raise Unavailable("no")

    async def fails() -> weakref.ref[Unavailable]:
        try:
            await run_to_completion(work)
        except Unavailable as error:
            return weakref.ref(error)
        raise AssertionError

    gc.disable()  # the errors of many requests would else stop all others while they are collected
    try:
        fault = await fails()
        await asyncio.sleep(0)
        assert fault() is None
    finally:
        gc.enable()
