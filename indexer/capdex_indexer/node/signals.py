"""Long-running commands: run until SIGINT or SIGTERM, stop in order, tune the interpreter."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import Timer
from typing import Any, Final

# A range of logs is some ten thousand objects without reference cycles. With the default threshold
# the collector scans each range hundreds of times, which costs a quarter of a backfill.
GC_THRESHOLD: Final = 100_000
# How long the event loop waits at most for a decoding thread to release the interpreter lock.
SWITCH_INTERVAL_S: Final = 0.001


def tune_interpreter() -> None:
    """Collect garbage rarely, never scan the objects that exist now, and switch threads often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 100)
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def run_until_stopped(
    work: Coroutine[Any, Any, None],
    *,
    on_stop: Callable[[], None] = lambda: None,
    within_s: float | None = None,
) -> int:
    """Run `work` on uvloop until it ends; SIGINT (130), SIGTERM (143) or SIGHUP (129) cancels it.

    A second signal, or `within_s` seconds after the first one, ends the process at once: use
    `within_s` only for work that survives a crash.
    """
    tune_interpreter()
    try:
        import uvloop
    except ImportError:  # not available on every system
        return asyncio.run(_until_stopped(work, on_stop, within_s))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_until_stopped(work, on_stop, within_s))


def _exit_after(code: int, within_s: float) -> None:
    """Start a timer that ends the process with `code`, whatever it then waits for."""

    def end() -> None:
        # The process may wait for a thread after its event loop closed: only os._exit ends that.
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
            _exit_after(code, within_s)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # by `nohup`
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
