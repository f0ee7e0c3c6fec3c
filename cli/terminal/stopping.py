"""Ending a long-lived command in order, when it is asked to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import Timer
from typing import Any

from cli.terminal.signals import settle


def run_until_stopped(
    work: Coroutine[Any, Any, None],
    *,
    on_stop: Callable[[], None] = lambda: None,
    within_s: float | None = None,
) -> int:
    """Run `work` on uvloop until it ends, or SIGINT (130) or SIGTERM (143) cancels it.

    What has not ended `within_s` after the signal is cut off, as it is at once by a second signal:
    for work that no crash harms. Its children notice that by themselves.
    """
    settle()
    try:
        import uvloop
    except ImportError:  # not made for every system
        return asyncio.run(_until_stopped(work, on_stop, within_s))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_until_stopped(work, on_stop, within_s))


def _cut_off(code: int, within_s: float) -> None:
    """End the process with `code` when that time has passed, whatever it then waits for."""

    def end() -> None:
        # The wait may be for a thread, with no loop any more: nothing but this ends that.
        with suppress(OSError, ValueError):
            sys.stderr.write(f"not ended after {within_s:g} s: cut off\n")
            sys.stderr.flush()
        os._exit(code)

    timer = Timer(within_s, end)
    timer.daemon = True
    timer.start()


async def _until_stopped(
    work: Coroutine[Any, Any, None], on_stop: Callable[[], None], within_s: float | None
) -> int:
    stopped, code = asyncio.Event(), 0

    def stop(number: int) -> None:
        nonlocal code
        if code:
            os._exit(code)
        code = 128 + number
        stopped.set()
        if within_s is not None:
            _cut_off(code, within_s)

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
