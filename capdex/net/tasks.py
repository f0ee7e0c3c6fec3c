"""Run coroutines concurrently, and cancel the others if one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


async def both(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """Return the results of two; unlike `gather`, cancel the other if one fails."""
    tasks = asyncio.create_task(first), asyncio.create_task(second)
    try:
        return await asyncio.gather(*tasks)
    finally:
        await end(tasks)


async def together(coroutines: Collection[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of all in order; cancel the others if one fails."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await end(tasks)


async def end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended; their errors are ignored."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception of a group that is not a group itself."""
    first = group.exceptions[0]
    return cause(first) if isinstance(first, BaseExceptionGroup) else first


async def run_to_completion(
    function: Callable[..., T], *args: object, executor: Executor | None = None, **named: object
) -> T:
    """Run `function` in a thread; a cancellation waits until it has ended."""
    loop = asyncio.get_running_loop()
    running = loop.run_in_executor(executor, partial(function, *args, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:
                continue
        if not running.cancelled():
            running.exception()  # retrieved: the cancellation is what counts
        raise
    finally:
        del running  # its exception refers to this frame: a cycle, left to the garbage collector
