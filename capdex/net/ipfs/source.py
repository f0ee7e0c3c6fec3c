"""A source of blocks, and how it is doing: how much it may be asked at once, and whether at all.

No I/O here: whoever asks says how each request ended, and is told what may be asked next.
"""

from __future__ import annotations

import math
import random
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from capdex.errors import Code, Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs.latency import Latency

FIRST_LIMIT: Final = 8  # requests at once, before anything is known of a source
MIN_LIMIT, MAX_LIMIT = 4, 128  # 128 fill a gateway 50 ms away; more only wait in its queue
SLOW_S: Final = 1.0  # a source that has a block has given it by then
LATE_S: Final = 0.2  # no answer is late before, however quick the others are; as TCP's on Linux
COOL_S: Final = 1.0  # the limit is cut once in this time: what was in flight says the same thing
BREAK_AFTER: Final = 16  # failures in a row, and a source rests; chance alone hardly makes so many
REST_S, MAX_REST_S = 1.0, 60.0  # twice as long each time in a row
BENCH_S: Final = 60.0  # for wrong bytes: asked only after everybody else, and not for the same CID
MEMORY: Final = 1 / 8  # the weight of the newest request in what is expected of the next
RECOVERY_S: Final = 60.0  # half of a bad reputation is forgotten in this time
GUESS_S: Final = 0.05  # how long a source is expected to take that was never asked
MAX_SPARED: Final = 1024  # blocks that one source asked not to be asked for, remembered


class Outcome(StrEnum):
    """How one request to a source ended."""

    GAVE = "gave"  # the block
    ABSENT = "absent"  # it has not got it
    WRONG = "wrong"  # other bytes than those the CID names
    REFUSED = "refused"  # an answer that is neither: a redirect, an encoding nobody asked for
    SLOW = "slow"  # it was given up on
    BUSY = "busy"  # it asked for patience: 429, 503
    FAILED = "failed"  # no connection, a cut one, or a fault of its own


class Source(Protocol):
    """Gives blocks; whatever `get` returns has the hash its CID names."""

    label: str

    async def get(self, cid: Cid) -> bytes:
        """The block; raises Unavailable, a SourceFault where more is known than its absence."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@dataclass(eq=False)
class SourceFault(Unavailable):
    """A request that gave no block; `outcome` says what that means for the source."""

    code: Code = Code.IPFS_UNAVAILABLE
    outcome: Outcome = Outcome.FAILED
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is known of one source, for metrics: `label` is its kind and place, never its address.

    `limit` and `in_flight` count requests, `resting_s` and `benched_s` are seconds still to go.
    """

    label: str
    limit: int
    in_flight: int
    resting_s: float
    benched_s: float
    requests: int
    received_bytes: int
    outcomes: Mapping[Outcome, int]


@dataclass(slots=True)
class Standing:
    """One source's standing; all times are seconds of the caller's monotonic clock.

    The limit of requests at once grows by one with each that is answered, until a first one is not
    (so that it doubles in each round trip), and from then on by one a round of `limit` answers. It
    is halved when requests time out, fail, or are refused for their number.

    A request holds its place until it has ended or is slow. One that is late, by what this source
    usually takes, leaves it earlier, but no more than `limit` at a time do: so a few blocks that do
    not come keep nobody waiting, and a source that slows down is asked twice as much at most.
    """

    limit: int = FIRST_LIMIT
    requests: int = 0
    received_bytes: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    _prompt: set[object] = field(default_factory=set)
    _late: set[object] = field(default_factory=set)
    _latency: Latency = field(default_factory=lambda: Latency(LATE_S, SLOW_S))
    _ramping: bool = True
    _credit: int = 0  # answers that may raise the limit: a round of them after it was met
    _answered: int = 0  # of those, since the limit was raised
    _cut_at: float = -math.inf
    _failures: int = 0  # in a row
    _rests: int = 0  # in a row
    _rested_at: float = -math.inf
    _rests_until: float = -math.inf
    _benched_until: float = -math.inf
    _spared: OrderedDict[str, float] = field(default_factory=OrderedDict)
    _hit: float = 1.0  # the share of requests that gave the block
    _took_s: float = GUESS_S
    _seen_at: float = -math.inf

    @property
    def in_flight(self) -> int:
        """Requests that keep others waiting."""
        return len(self._prompt)

    @property
    def late_s(self) -> float:
        """How long a request may take before it is late; at most SLOW_S."""
        return self._latency.late_s

    def begin(self, request: object) -> None:
        """Count a request, until it has ended or is slow."""
        self._prompt.add(request)
        if len(self._prompt) >= self.limit:
            self._credit = self.limit

    def give_way(self, request: object) -> bool:
        """Leave its place to others, having taken `late_s`; whether it may, as few others have."""
        leaves = not self._rests and len(self._late) < self.limit
        if leaves:
            self._prompt.remove(request)
            self._late.add(request)
        return leaves

    def leave(self, request: object) -> None:
        """Count it no more, since it has ended or is slow; safe to repeat."""
        self._prompt.discard(request)
        self._late.discard(request)

    def waits_for(self, request: object) -> bool:
        """Whether it has neither ended nor become slow."""
        return request in self._prompt or request in self._late

    def free(self, now: float) -> int:
        """How many more requests it may be sent; one at a time after a rest, to see how it is."""
        if self.resting_s(now):
            return 0
        return (1 if self._rests else self.limit) - self.in_flight

    def resting_s(self, now: float) -> float:
        """How long it is not to be asked at all."""
        return max(0.0, self._rests_until - now)

    def benched_s(self, now: float) -> float:
        """How long it is asked only after all others."""
        return max(0.0, self._benched_until - now)

    def spared_s(self, cid: Cid, now: float) -> float:
        """How long it is not to be asked for this block."""
        return max(self.resting_s(now), self._spared.get(cid.text, now) - now)

    def cost_s(self, now: float) -> float:
        """The time a block is expected to take from it, tries in vain included."""
        missed = (1 - self._hit) * math.exp2((self._seen_at - now) / RECOVERY_S)
        return self._took_s / max(1 - missed, 0.01)

    def rank(self, now: float) -> tuple[bool, int]:
        """Sorts sources by whom to ask first; what is alike within a factor of two is equal."""
        return self.benched_s(now) > 0, round(math.log2(max(self.cost_s(now), 1e-6)))

    def note(
        self,
        outcome: Outcome,
        cid: Cid,
        *,
        began: float,
        now: float,
        size_bytes: int = 0,
        retry_after_s: float | None = None,
    ) -> None:
        """Learn from a request that was sent at `began` and has ended `now`."""
        self.requests += 1
        self.received_bytes += size_bytes
        self.outcomes[outcome] += 1
        self._expect(outcome is Outcome.GAVE, now - began, now)
        if outcome is Outcome.GAVE:
            self._latency.note(now - began)
        if outcome is Outcome.WRONG:
            self._benched_until = now + BENCH_S
            self._spare(cid, now + BENCH_S)
        if retry_after_s:
            self._spare(cid, now + retry_after_s)
        match outcome:
            case Outcome.GAVE | Outcome.ABSENT:
                self._alive(now)
                self._grow()
            case Outcome.WRONG | Outcome.REFUSED:
                self._alive(now)
            case Outcome.FAILED | Outcome.BUSY:
                self._cut(now)
                self._fail(began, now, retry_after_s or 0.0)
            case Outcome.SLOW:  # what nobody has takes long to look for: that is no fault
                self._cut(now)

    def state(self, label: str, now: float) -> SourceState:
        """A copy of what is known."""
        return SourceState(
            label=label,
            limit=self.limit,
            in_flight=self.in_flight,
            resting_s=self.resting_s(now),
            benched_s=self.benched_s(now),
            requests=self.requests,
            received_bytes=self.received_bytes,
            outcomes={outcome: self.outcomes[outcome] for outcome in Outcome},
        )

    def _expect(self, gave: bool, took_s: float, now: float) -> None:
        first = self._seen_at == -math.inf
        self._took_s += (1.0 if first else MEMORY) * (took_s - self._took_s)
        self._hit += MEMORY * (gave - self._hit)
        self._seen_at = now

    def _alive(self, now: float) -> None:
        if self._rests:
            self._rests, self._rests_until = 0, now
        self._failures = 0

    def _grow(self) -> None:
        if not self._credit:
            return  # from requests that never met the limit nothing is learnt about it
        self._credit -= 1
        self._answered += 1
        if self._ramping or self._answered >= self.limit:
            self.limit, self._answered = min(MAX_LIMIT, self.limit + 1), 0

    def _cut(self, now: float) -> None:
        if now - self._cut_at >= COOL_S:
            self.limit = max(MIN_LIMIT, self.limit // 2)
            self._cut_at, self._answered, self._credit, self._ramping = now, 0, 0, False

    def _fail(self, began: float, now: float, retry_after_s: float) -> None:
        if began < self._rested_at:
            return  # it was sent before the rest that it would prolong
        self._failures += 1
        if self._rests or self._failures >= BREAK_AFTER:
            pause_s = min(MAX_REST_S, REST_S * 2 ** min(self._rests, 16))
            pause_s *= random.uniform(0.8, 1.2)  # noqa: S311 - jitter
            self._rests += 1
            self._rested_at, self._rests_until = now, now + max(pause_s, retry_after_s)
            self.limit, self._ramping, self._failures = FIRST_LIMIT, True, 0

    def _spare(self, cid: Cid, until: float) -> None:
        self._spared[cid.text] = until
        self._spared.move_to_end(cid.text)
        if len(self._spared) > MAX_SPARED:
            self._spared.popitem(last=False)
