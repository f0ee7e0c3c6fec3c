"""How fast an endpoint may be asked: a token bucket whose rate is learned from its refusals.

There is no limit until the first refusal (429). Then the rate is halved at each refusal and grows
by a constant a second while it is used (AIMD, as TCP does). Pure: the time is passed in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

MIN_RATE = 2.0  # calls a second; whoever allows less says so by pauses, which grow
MAX_RATE = 1_000.0  # a limit that has grown this far is none
GROWTH_PER_S = 1.0  # calls a second, more each second
BURST_S = 1.0  # the bucket holds what this time brings, and one call at least
MAX_DEBT_S = 5.0  # what a batch takes beyond that is paid back for so long at most
MEASURED_CALLS = 256  # the newest calls, from which the first limit is taken
MAX_BATCH: Final = 100  # vendors refuse more, and a batch of headers stays near 2 MB
LONGER_S: Final = 60.0  # before more is tried than was answered of late


@dataclass(slots=True)
class Throttle:
    """Calls a second to one endpoint; `rate` is None while it never refused one."""

    rate: float | None = None
    _tokens: float = 0.0
    _filled: float = 0.0
    _blocked_until: float = 0.0
    _cut: float = float("-inf")
    _taken: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=MEASURED_CALLS))

    def wait_s(self, now: float) -> float:
        """Seconds until a call may be made; 0 when it may be now."""
        self._fill(now)
        wait_s = max(0.0, self._blocked_until - now)
        if self.rate is not None and self._tokens < 1.0:
            wait_s = max(wait_s, (1.0 - self._tokens) / self.rate)
        return wait_s

    def take(self, now: float, calls: int = 1) -> None:
        """`calls` are made, after `wait_s` was 0; a batch may leave the bucket in debt."""
        self._fill(now)
        self._taken.append((now, calls))
        if self.rate is not None:
            self._tokens = max(self._tokens - calls, 1.0 - MAX_DEBT_S * self.rate)

    def succeeded(self, calls: int = 1) -> None:
        """So many calls were answered: the rate grows by GROWTH_PER_S for a second's worth."""
        if self.rate is not None:
            grown = self.rate + GROWTH_PER_S * calls / self.rate
            self.rate = grown if grown < MAX_RATE else None

    def refused(self, now: float, sent: float, rest_s: float) -> None:
        """A call sent at `sent` was refused: half the rate, and nothing at all for `rest_s`.

        Calls that were under way when the rate was halved are refused for the old rate.
        """
        self._blocked_until = max(self._blocked_until, now + rest_s)
        if sent < self._cut:
            return
        self._fill(now)
        self.rate = max(MIN_RATE, (self._measured(now) if self.rate is None else self.rate) / 2)
        self._tokens, self._cut = min(self._tokens, 0.0), now

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
