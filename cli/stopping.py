"""Ending a long-lived command in order, when it is asked to."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any


def run_until_stopped(
    work: Coroutine[Any, Any, None], *, on_stop: Callable[[], None] = lambda: None
) -> int:
    """Run `work` on uvloop until it ends, or SIGINT (130) or SIGTERM (143) cancels it.

    A second signal ends the process at once; its children notice that by themselves.
    """
    try:
        import uvloop
    except ImportError:  # not made for every system
        return asyncio.run(_until_stopped(work, on_stop))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_until_stopped(work, on_stop))


async def _until_stopped(work: Coroutine[Any, Any, None], on_stop: Callable[[], None]) -> int:
    stopped, code = asyncio.Event(), 0

    def stop(number: int) -> None:
        nonlocal code
        if code:
            os._exit(code)
        code = 128 + number
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    working, waiting = loop.create_task(work), loop.create_task(stopped.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if code:
        on_stop()
        working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    return code
