"""How many calls an endpoint takes at once: what it refuses, and what it fails at without a word.

Pure: the time is passed in (seconds of any clock that never goes back).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_BATCH: Final = 100  # vendors refuse more, and a batch of headers stays near 2 MB
LONGER_S: Final = 60.0  # before more is tried than was answered of late


@dataclass(slots=True)
class Batches:
    """The length of an endpoint's batches.

    One that is refused is halved for good. One that only fails (a status of 500, a connection that
    is cut) says nothing, unless it fails again although a single call was answered meanwhile: then
    it is halved for a while, and doubled again as long as that goes well.
    """

    _most: int = MAX_BATCH
    _usual: int = MAX_BATCH  # of late
    _longer_at: float = 0.0
    _failed: bool = False  # the last one
    _alone: bool = False  # a single call was answered since

    def longest(self, now: float) -> int:
        """How many calls to send at once."""
        return min(self._most, self._usual if now < self._longer_at else 2 * self._usual)

    def answered(self, calls: int) -> None:
        """A batch was answered, or a single call."""
        self._alone = calls == 1
        if calls > 1:
            self._failed = False
        self._usual = max(self._usual, calls)

    def refused(self, calls: int) -> None:
        """The endpoint takes no batch as long as that."""
        self._most = max(1, calls // 2)

    def failed(self, calls: int, now: float) -> None:
        """A batch was not answered, or a single call."""
        if calls == 1:
            return
        if calls > self._usual or (self._failed and self._alone):
            self._usual, self._longer_at = max(1, calls // 2), now + LONGER_S
        self._failed, self._alone = True, False
