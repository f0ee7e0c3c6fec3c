"""Sources of blocks, and what the outcomes of requests say about a source's health.

Health is pure: the caller passes the time, in seconds of a monotonic clock.

| outcomes of a source | what follows |
|---|---|
| one WRONG, or SLOW_TO_DEMOTE requests in a row that took SLOW_S | requested after the other sources for DEMOTED_S |
| FAILURES_TO_REST in a row FAILED or BUSY | not requested: 1 s, doubled each time up to 60 s, or as its Retry-After says |
| GAVE, ABSENT, WRONG or REFUSED | it is up again |
"""  # noqa: E501 - a table

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from capdex.errors import Code, Unavailable
from capdex.ipld.cid import Cid

SLOW_S: Final = 1.0  # a source that has a block has usually given it by then
SLOW_TO_DEMOTE: Final = 4  # slow requests in a row
DEMOTED_S: Final = 60.0
# In a row. Failures are quicker than blocks: of 128 requests at once, 3 in 10 may fail first.
FAILURES_TO_REST: Final = 64
REST_S, MAX_REST_S = 1.0, 60.0
PROBE_S: Final = 1.0  # retry after this while another request tests a source that rested


class FetchOutcome(StrEnum):
    """How one request to a source ended."""

    GAVE = "gave"  # the block
    ABSENT = "absent"  # the source does not have it
    WRONG = "wrong"  # other bytes than those the CID names
    REFUSED = "refused"  # an answer that is neither: a redirect, an encoding not asked for
    SLOW = "slow"  # it took too long
    BUSY = "busy"  # status 429 or 503
    FAILED = "failed"  # no connection, a cut one, or another error of the source


class BlockSource(Protocol):
    """Gives blocks; whatever `get` returns has the hash its CID names."""

    label: str

    async def get(self, cid: Cid) -> bytes:
        """Return the block; raise Unavailable if it is absent, SourceFault for other outcomes."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@dataclass(eq=False)
class SourceFault(Unavailable):
    """A request that gave no block; `outcome` says what that means for the source."""

    code: Code = Code.IPFS_UNAVAILABLE
    outcome: FetchOutcome = FetchOutcome.FAILED
    retry_after_s: float | None = None


@dataclass(slots=True)
class SourceHealth:
    """Counters of one source, and whether it is to be requested (see the table above).

    `label` is its kind and number, never its address: metrics show it.
    """

    label: str
    in_flight: int = 0
    requests: int = 0
    received_bytes: int = 0
    outcomes: Counter[FetchOutcome] = field(default_factory=Counter)
    _slow: int = 0  # in a row
    _failures: int = 0  # in a row
    _rests: int = 0  # in a row
    _rested_at: float = -math.inf
    _rests_until: float = -math.inf
    _demoted_until: float = -math.inf

    def wait_s(self, now: float) -> float:
        """Return the seconds until a request may be sent; after a rest one at a time."""
        if self._rests and self.in_flight:
            return max(PROBE_S, self._rests_until - now)
        return max(0.0, self._rests_until - now)

    def is_demoted(self, now: float) -> bool:
        """True while the source is to be requested only after the others."""
        return now < self._demoted_until

    def begin(self) -> None:
        """Count a request that starts."""
        self.in_flight += 1

    def end(
        self,
        outcome: FetchOutcome | None,
        *,
        began: float,
        now: float,
        size_bytes: int = 0,
        retry_after_s: float | None = None,
    ) -> None:
        """Learn from a request sent at `began`; None if it was cancelled and says nothing."""
        self.in_flight -= 1
        if outcome is None:
            return
        self.requests += 1
        self.received_bytes += size_bytes
        self.outcomes[outcome] += 1
        if outcome in (FetchOutcome.FAILED, FetchOutcome.BUSY):
            self._fail(began, now, retry_after_s or 0.0)
            return
        if outcome is not FetchOutcome.SLOW:
            self._failures, self._rests, self._rests_until = 0, 0, -math.inf
        self._slow = self._slow + 1 if now - began >= SLOW_S else 0
        if outcome is FetchOutcome.WRONG or self._slow >= SLOW_TO_DEMOTE:
            self._demoted_until, self._slow = now + DEMOTED_S, 0

    def _fail(self, began: float, now: float, retry_after_s: float) -> None:
        if began < self._rested_at:
            return  # sent before the rest, which it must not prolong
        self._failures += 1
        if self._rests or self._failures >= FAILURES_TO_REST:
            rest_s = min(MAX_REST_S, REST_S * 2 ** min(self._rests, 16))
            rest_s *= random.uniform(0.8, 1.2)  # noqa: S311 - jitter
            self._rests, self._failures = self._rests + 1, 0
            self._rested_at, self._rests_until = now, now + max(rest_s, retry_after_s)
