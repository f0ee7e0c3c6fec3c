"""Rates of requests: one token bucket for each client, in a bounded table."""

from __future__ import annotations

from typing import Final

MAX_CLIENTS: Final = 10_000  # about 1.5 MB
BURST_S: Final = 2.0  # the bucket holds what comes in so many seconds


class Rates:
    """Token buckets of `rate` requests a second, each with BURST_S seconds' worth.

    A bucket is one number: the time at which it is full again. A client without one has a full
    bucket, so a bucket that is full again can be dropped.
    """

    def __init__(self, rate: float, *, max_clients: int = MAX_CLIENTS) -> None:
        self._interval_s = 1.0 / rate
        self._capacity_s = max(BURST_S, self._interval_s)
        self._max_clients = max_clients
        self._full_at: dict[str, float] = {}

    def take(self, client: str, now: float) -> float:
        """Take one request; return 0.0, or the seconds until the client may send one."""
        full_at = max(self._full_at.pop(client, now), now) + self._interval_s
        wait_s = full_at - now - self._capacity_s
        if wait_s > 1e-9:
            self._full_at[client] = full_at - self._interval_s  # a refused request costs nothing
            return wait_s
        self._full_at[client] = full_at
        if len(self._full_at) > self._max_clients:
            del self._full_at[next(iter(self._full_at))]  # whose last request is the oldest
        return 0.0
