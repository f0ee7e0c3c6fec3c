"""Pacing of the calls to one endpoint: circuit breaker, calls per second, calls per batch.

Pauses after failures are random (full jitter). The rate is a token bucket without a limit until
the first refusal (429). Then it is halved at each refusal and grows by a constant per second while
it is used (AIMD, as in TCP). Pure: the time is passed in (seconds of a monotonic clock), and so is
the random function.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

FAILURES_TO_OPEN = 5  # in a row: one lost connection is normal, after five the endpoint is down
PROBE_POLL_S = 0.25  # how often waiting calls check while one call probes the endpoint
MAX_DOUBLINGS = 16
MIN_RATE = 2.0  # calls a second; an endpoint that allows less gets growing pauses
MAX_RATE = 1_000.0  # a limit that has grown this far is removed
GROWTH_PER_S = 1.0  # calls a second, more each second
BURST_S = 1.0  # the bucket holds the tokens of this time, and one call at least
MAX_DEBT_S = 5.0  # a batch may overdraw the bucket by the tokens of this time
MEASURED_CALLS = 256  # the newest calls, from which the first limit is taken
MAX_BATCH: Final = 100  # vendors refuse more, and a batch of headers stays near 2 MB
LONGER_S: Final = 60.0  # until longer batches than recently answered are tried again
SLOW_S: Final = 600.0  # the same after one without an answer in time: a try takes half a minute

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


@dataclass(slots=True)
class Throttle:
    """Calls per second to one endpoint; `rate` is None until its first refusal."""

    rate: float | None = None
    _tokens: float = 0.0
    _filled: float = 0.0
    _blocked_until: float = 0.0
    _cut: float = float("-inf")
    _taken: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=MEASURED_CALLS))

    @property
    def burst(self) -> int:
        """The longest batch: an endpoint that counts calls may never answer all of a longer one."""
        return MAX_BATCH if self.rate is None else max(1, int(self.rate * BURST_S))

    def wait_s(self, now: float) -> float:
        """Return the seconds until a call may be made; 0 if it may be made now."""
        self._fill(now)
        wait_s = max(0.0, self._blocked_until - now)
        if self.rate is not None and self._tokens < 1.0:
            wait_s = max(wait_s, (1.0 - self._tokens) / self.rate)
        return wait_s

    def take(self, now: float, calls: int = 1) -> None:
        """Take tokens for `calls`, after `wait_s` was 0; a batch may overdraw the bucket."""
        self._fill(now)
        self._taken.append((now, calls))
        if self.rate is not None:
            self._tokens = max(self._tokens - calls, 1.0 - MAX_DEBT_S * self.rate)

    def succeeded(self, calls: int = 1) -> None:
        """Record answered calls: the rate grows by GROWTH_PER_S for each second's worth."""
        if self.rate is not None:
            grown = self.rate + GROWTH_PER_S * calls / self.rate
            self.rate = grown if grown < MAX_RATE else None

    def refused(self, now: float, sent: float, rest_s: float) -> bool:
        """Record the refusal of a call sent at `sent`: halve the rate, and pause for `rest_s`.

        A refusal of a call that was sent before the last halving does not halve it again, and is
        False: it is one with those before.
        """
        self._blocked_until = max(self._blocked_until, now + rest_s)
        if sent < self._cut:
            return False
        self._fill(now)
        self.rate = max(MIN_RATE, (self._measured(now) if self.rate is None else self.rate) / 2)
        self._tokens, self._cut = min(self._tokens, 0.0), now
        return True

    def _fill(self, now: float) -> None:
        if self.rate is not None:
            brought = self._tokens + max(0.0, now - self._filled) * self.rate
            self._tokens = min(max(1.0, self.rate * BURST_S), brought)
        self._filled = max(now, self._filled)

    def _measured(self, now: float) -> float:
        if not self._taken:
            return MIN_RATE
        return sum(calls for _, calls in self._taken) / max(1.0, now - self._taken[0][0])


@dataclass(slots=True)
class Batches:
    """The length of an endpoint's batches.

    | a batch | next length |
    |---|---|
    | is refused | half, permanently |
    | fails (status 500, connection lost) | the same |
    | fails again, though a single call was answered between | half for LONGER_S, then doubled |
    | gets no answer in time | half for SLOW_S, then doubled |
    """

    _most: int = MAX_BATCH
    _usual: int = MAX_BATCH  # recently answered
    _longer_at: float = 0.0
    _failed: bool = False  # the last batch
    _alone: bool = False  # a single call was answered since then

    def longest(self, now: float) -> int:
        """Return how many calls to send in one batch."""
        return min(self._most, self._usual if now < self._longer_at else 2 * self._usual)

    def answered(self, calls: int) -> None:
        """Record that a batch or a single call was answered."""
        self._alone = calls == 1
        if calls > 1:
            self._failed = False
        self._usual = max(self._usual, calls)

    def refused(self, calls: int) -> None:
        """Record that the endpoint refuses batches of this length."""
        self._most = max(1, calls // 2)

    def failed(self, calls: int, now: float, *, slow: bool = False) -> None:
        """Record that a batch or a single call failed; `slow` if it got no answer in time."""
        if calls == 1:
            return
        if slow or calls > self._usual or (self._failed and self._alone):
            self._usual = max(1, calls // 2)
            self._longer_at = now + (SLOW_S if slow else LONGER_S)
        self._failed, self._alone = True, False
