"""Figures of the node over time: sampled while it runs, the last hour finely, the day coarsely."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import structlog

from capdex.errors import CapdexError

STEP_S: Final = 15.0
HOUR: Final = 240  # samples
DAY: Final = 288
MAX_DIGESTS: Final = 500
COARSE: Final = 20  # fine samples for each coarse one: five minutes

log = structlog.get_logger(part="explorer")


class Sample(NamedTuple):
    """Figures at an epoch time (s): lag in seconds, releases, packages awaited, reorganisations.

    None where the node did not know.
    """

    at: float
    lag_s: float | None
    releases: int
    waiting: int
    reorgs: int


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of this process, the oldest first; a restart begins anew."""

    hour: deque[Sample] = field(default_factory=lambda: deque(maxlen=HOUR))
    day: deque[Sample] = field(default_factory=lambda: deque(maxlen=DAY))
    digests: dict[int, str] = field(default_factory=dict)  # of the index, by block number

    def add(self, sample: Sample, count: int) -> None:
        """Add the `count`-th sample; every COARSE-th is kept for the day as well."""
        self.hour.append(sample)
        if count % COARSE == 0:
            self.day.append(sample)

    def note(self, status: dict[str, Any]) -> None:
        """Keep the index digest in the JSON of `/status` with its block."""
        block, digest = status["chain"]["block_number"], status["index_digest"]
        if block is None or digest is None:
            return
        self.digests.pop(block, None)  # a reorganisation may have changed it
        self.digests[block] = digest
        while len(self.digests) > MAX_DIGESTS:
            del self.digests[next(iter(self.digests))]

    async def take_always(self, status: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """Take a sample every STEP_S until cancelled."""
        count = 0
        while True:
            try:
                answer = await status()
                self.note(answer)
                self.add(read_sample(answer, time.time()), count)
            except (CapdexError, OSError, ValueError) as error:
                log.debug("no sample", why=str(error))  # the chart has a gap
            count += 1
            await asyncio.sleep(STEP_S)


def read_sample(status: dict[str, Any], at: float) -> Sample:
    """Return the sample in the JSON of `/status`; `at` is epoch seconds."""
    releases = status.get("releases") or {}
    awaited = releases.get("by_availability") or {}
    lag_s = status.get("lag_seconds")
    return Sample(
        at,
        float(lag_s) if isinstance(lag_s, int | float) else None,
        int(releases.get("total") or 0),
        int(awaited.get("pending") or 0) + int(awaited.get("parked") or 0),
        sum((status.get("reorgs") or {}).values()),
    )
