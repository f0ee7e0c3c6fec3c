"""From when on an answer is late: the estimate of TCP's retransmission timer (RFC 6298, section 2).

No I/O and no clock: whoever waits says how long each answer took.
"""

from __future__ import annotations

from dataclasses import dataclass

GAIN, DEVIATION_GAIN, DEVIATIONS = 1 / 8, 1 / 4, 4  # alpha, beta and K of the RFC


@dataclass(slots=True)
class Latency:
    """What is known of how long answers take; `floor_s` and `ceiling_s` bound what is late."""

    floor_s: float
    ceiling_s: float
    _mean_s: float | None = None
    _deviation_s: float = 0.0

    @property
    def late_s(self) -> float:
        """Seconds after which an answer is unusually late; the ceiling before the first came."""
        if self._mean_s is None:
            return self.ceiling_s
        expected_s = self._mean_s + DEVIATIONS * self._deviation_s
        return min(self.ceiling_s, max(self.floor_s, expected_s))

    def note(self, took_s: float) -> None:
        """Learn from an answer; one of a minute counts as one that reached the ceiling."""
        took_s = min(took_s, self.ceiling_s)
        if self._mean_s is None:
            self._mean_s, self._deviation_s = took_s, took_s / 2
            return
        self._deviation_s += DEVIATION_GAIN * (abs(self._mean_s - took_s) - self._deviation_s)
        self._mean_s += GAIN * (took_s - self._mean_s)
