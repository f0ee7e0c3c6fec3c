"""Lines of the log about what happens again and again: one of each kind in a minute."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

INTERVAL_S: Final = 60.0  # between two lines of one kind


class RareLines:
    """Counts what happens by kind, and says when a line about it is due."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._unlogged: Counter[str] = Counter()
        self._next_at: dict[str, float] = {}

    def due(self, kind: str) -> int:
        """Count one of a kind; return how many a line is due for, 0 if the last one is recent."""
        now = self._timer()
        self._unlogged[kind] += 1
        if now < self._next_at.get(kind, now):
            return 0
        self._next_at[kind] = now + INTERVAL_S
        return self._unlogged.pop(kind)
