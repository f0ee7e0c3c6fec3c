"""When to leave an endpoint alone: full-jitter pauses after failures, then a circuit breaker.

Pure: the time is passed in (seconds of any clock that never goes back), chance as a function.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

FAILURES_TO_OPEN = 5  # in a row; one lost connection is nothing, five are an endpoint that is down
PROBE_POLL_S = 0.25  # whoever else waits looks again while one call tries the endpoint out
MAX_DOUBLINGS = 16

Uniform = Callable[[float, float], float]


class Circuit(StrEnum):
    """Closed: calls pass. Open: none does. Half open: one at a time, to see whether it is back."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


def full_jitter(
    failures: int, base_s: float, cap_s: float, uniform: Uniform = random.uniform
) -> float:
    """A pause after so many failures: anything up to base × 2^failures, at most `cap_s`.

    Full jitter: many nodes behind one endpoint must not come back at the same instant.
    """
    return uniform(0.0, min(cap_s, base_s * 2.0 ** min(failures, MAX_DOUBLINGS)))


@dataclass(slots=True)
class Breaker:
    """The failures of one endpoint in a row, and how long it rests for them."""

    base_s: float
    cap_s: float
    uniform: Uniform = random.uniform
    failures: int = 0
    _until: float = 0.0
    _probing: bool = False

    def circuit(self, now: float) -> Circuit:
        """What it does at this moment."""
        if self.failures < FAILURES_TO_OPEN:
            return Circuit.CLOSED
        return Circuit.OPEN if now < self._until and not self._probing else Circuit.HALF_OPEN

    def wait_s(self, now: float) -> float:
        """Seconds until a call may be made; 0 when it may be now."""
        return PROBE_POLL_S if self._probing else max(0.0, self._until - now)

    def begin(self) -> None:
        """A call is made, after `wait_s` was 0; with the breaker open it is the one probe."""
        self._probing = self.failures >= FAILURES_TO_OPEN

    def abandoned(self) -> None:
        """The call ended without saying anything of the endpoint: it was cancelled."""
        self._probing = False

    def succeeded(self) -> None:
        """The endpoint answered."""
        self.failures, self._until, self._probing = 0, 0.0, False

    def failed(self, now: float, rest_s: float | None = None) -> None:
        """The endpoint did not answer; `rest_s` instead of chance where the pause is known.

        Calls that were under way together tell of one failure, not of many.
        """
        if self._until > now and rest_s is None and not self._probing:
            return
        pause_s = full_jitter(self.failures, self.base_s, self.cap_s, self.uniform)
        self.failures = FAILURES_TO_OPEN if rest_s is not None else self.failures + 1
        self._until = now + (pause_s if rest_s is None else rest_s)
        self._probing = False
