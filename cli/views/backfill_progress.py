"""How far a backfill is, on one line of a terminal that changes; log lines go above it."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from cli.terminal.output import Stream
from indexer.monitoring.health import Health

EVERY_S: Final = 0.5
WINDOW_S: Final = 30.0  # the pace of so long: ranges with events are slower than empty ones
ERASE: Final = "\r\x1b[2K"


class Line:
    """The line, and the stream that logs are written to around it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._shown = ""

    def show(self, text: str) -> None:
        """Put `text` in place of what was shown; nothing takes the line away."""
        if text != self._shown:
            self._shown = text
            room = shutil.get_terminal_size().columns - 5  # a line that wraps cannot be taken away
            said = f"  {self._stream.mark('plan')} {text[:room]}" if text else ""
            self._stream.file.write(ERASE + said)
            self._stream.file.flush()

    def write(self, text: str) -> int:
        """Lines of a log: above the one that changes."""
        shown, self._shown = self._shown, ""
        if shown:
            self._stream.file.write(ERASE)
        self._stream.file.write(text)
        if text.endswith("\n"):
            self.show(shown)
        return len(text)

    def flush(self) -> None:
        """As of a stream."""
        self._stream.file.flush()


class Pace:
    """Blocks a second, lately, and when they will have been enough; `timer` is monotonic."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._seen: deque[tuple[float, int]] = deque()
        self._first: int | None = None

    def describe(self, block: int, head: int, events: int) -> str:
        """Where a backfill is: block, share of what it had to read, pace, time left."""
        now = self._timer()
        self._seen.append((now, block))
        while now - self._seen[0][0] > WINDOW_S and len(self._seen) > 2:
            self._seen.popleft()
        self._first = block if self._first is None else self._first
        began, at = self._seen[0]
        speed = (block - at) / (now - began) if now > began else 0.0
        share = (block - self._first) / max(1, head - self._first)
        left = duration((head - block) / speed) if speed > 0 else "…"
        return (
            f"reading the past: {share:.0%}, {left} left, block {spaced(block)} of {spaced(head)}, "
            f"{spaced(round(speed))} blocks/s, {spaced(events)} events"
        )


def spaced(number: int) -> str:
    """A number in groups of three."""
    return f"{number:,}".replace(",", " ")


def duration(seconds: float) -> str:
    """About how long: `4 s`, `3 min`, `2 h 5 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    if hours < 24:
        return f"{hours} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


async def show_backfill(health: Health, line: Line) -> None:
    """Show each backfill of a node, for ever; the line is taken away on leaving."""
    pace = Pace()
    try:
        while True:
            at = health.at
            if health.writes and at.block is not None and not health.following and not at.trouble:
                line.show(pace.describe(at.block.number, at.head, at.log.count))
            else:
                line.show("")
                pace = Pace()
            await asyncio.sleep(EVERY_S)
    finally:
        line.show("")
