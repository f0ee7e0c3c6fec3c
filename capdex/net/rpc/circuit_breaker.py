"""Pauses of an endpoint after failures (full jitter), then a circuit breaker.

Pure: the time is passed in (seconds of a monotonic clock), and so is the random function.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

FAILURES_TO_OPEN = 5  # in a row: one lost connection is normal, after five the endpoint is down
PROBE_POLL_S = 0.25  # how often waiting calls check while one call probes the endpoint
MAX_DOUBLINGS = 16

Uniform = Callable[[float, float], float]


class Circuit(StrEnum):
    """Closed: calls pass. Open: no call passes. Half open: one call at a time, as a probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


def full_jitter(
    failures: int, base_s: float, cap_s: float, uniform: Uniform = random.uniform
) -> float:
    """Return a random pause of up to base × 2^failures, at most `cap_s`.

    Full jitter: many nodes of one endpoint must not retry at the same instant.
    """
    return uniform(0.0, min(cap_s, base_s * 2.0 ** min(failures, MAX_DOUBLINGS)))


@dataclass(slots=True)
class Breaker:
    """Consecutive failures of one endpoint, and the pause that they cause."""

    base_s: float
    cap_s: float
    uniform: Uniform = random.uniform
    failures: int = 0
    _until: float = 0.0
    _probing: bool = False

    def circuit(self, now: float) -> Circuit:
        """Return the state of the circuit."""
        if self.failures < FAILURES_TO_OPEN:
            return Circuit.CLOSED
        return Circuit.OPEN if now < self._until and not self._probing else Circuit.HALF_OPEN

    def wait_s(self, now: float) -> float:
        """Return the seconds until a call may be made; 0 if it may be made now."""
        return PROBE_POLL_S if self._probing else max(0.0, self._until - now)

    def begin(self) -> None:
        """Record the start of a call, after `wait_s` was 0; on an open circuit it is the probe."""
        self._probing = self.failures >= FAILURES_TO_OPEN

    def abandoned(self) -> None:
        """Record the end of a cancelled call, which shows nothing about the endpoint."""
        self._probing = False

    def succeeded(self) -> None:
        """Record an answer."""
        self.failures, self._until, self._probing = 0, 0.0, False

    def failed(self, now: float, rest_s: float | None = None) -> None:
        """Record a failure; the pause is `rest_s` if given, else random.

        Calls that ran at the same time count as one failure.
        """
        if self._until > now and rest_s is None and not self._probing:
            return
        pause_s = full_jitter(self.failures, self.base_s, self.cap_s, self.uniform)
        self.failures = FAILURES_TO_OPEN if rest_s is not None else self.failures + 1
        self._until = now + (pause_s if rest_s is None else rest_s)
        self._probing = False
