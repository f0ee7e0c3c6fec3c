"""Progress of a backfill on one line of the terminal: share, pace and time left."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import duration, grouped
from capdex_indexer.monitoring.health import Health

EVERY_S: Final = 0.5
WINDOW_S: Final = 30.0  # of the pace: ranges with events are slower than empty ones


class Pace:
    """Blocks a second over the last `WINDOW_S`, and the time left; `timer` is monotonic."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._samples: deque[tuple[float, int]] = deque()
        self._first: int | None = None

    def describe(self, block: int, head: int, events: int) -> str:
        """Return the share of the blocks read, the time left, the block and the pace."""
        now = self._timer()
        self._samples.append((now, block))
        while now - self._samples[0][0] > WINDOW_S and len(self._samples) > 2:
            self._samples.popleft()
        self._first = block if self._first is None else self._first
        began, at = self._samples[0]
        speed = (block - at) / (now - began) if now > began else 0.0
        share = (block - self._first) / max(1, head - self._first)
        left = duration((head - block) / speed) if speed > 0 else "…"
        return (
            f"backfill: {share:.0%}, {left} left, block {grouped(block)} of {grouped(head)}, "
            f"{grouped(round(speed))} blocks/s, {grouped(events)} events"
        )


async def show_backfill(health: Health, line: StatusLine) -> None:
    """Show each backfill of a node until cancelled, then erase the line."""
    pace = Pace()
    try:
        while True:
            at = health.at
            if health.writes and at.block is not None and not health.following and not at.trouble:
                line.show(pace.describe(at.block.number, at.head, at.log_head.count))
            else:
                line.clear()
                pace = Pace()
            await asyncio.sleep(EVERY_S)
    finally:
        line.clear()
