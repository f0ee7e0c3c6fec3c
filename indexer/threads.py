"""Blocking work in threads, which a cancellation never leaves half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def whole(
    function: Callable[..., T], *args: Any, executor: Executor | None = None, **named: Any
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
