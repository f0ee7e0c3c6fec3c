"""Retry schedule of releases that could not be judged, and the results that are stored.

A try is repeated after 1, 5 and 15 s, then from 1 min doubled up to 24 h; after MAX_TRIES the
release is parked until `capdex node queue --rearm`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from capdex.errors import CapdexError
from capdex.ipld.cid import Cid
from capdex.problems import Reason
from indexer.projection.package_rows import Judgement
from indexer.store.fetch_queue import Delay, Job

log = structlog.get_logger(part="fetch")

MAX_TRIES: Final = 20
# A fresh CID often arrives seconds later; a pinning service may take a day.
FIRST_DELAYS_S: Final = (1.0, 5.0, 15.0)
DELAY_S: Final = 60.0
MAX_DELAY_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class JudgedRelease:
    """The judgement of one release, and its blocks that are to be kept."""

    judgement: Judgement
    blocks: Mapping[Cid, bytes] = field(default_factory=dict)


FetchResult = JudgedRelease | Delay


def delay_s(attempts: int) -> float:
    """Return the pause after `attempts` failed tries and one more, before jitter."""
    if attempts < len(FIRST_DELAYS_S):
        return FIRST_DELAYS_S[attempts]
    return float(min(DELAY_S * 2 ** (attempts - len(FIRST_DELAYS_S)), MAX_DELAY_S))


def retry_later(job: Job, why: str, now: float) -> Delay:
    """Return the delay until the next try, or park the release after MAX_TRIES."""
    if job.attempts + 1 >= MAX_TRIES:
        return Delay(job.release_id, why, reason=Reason.UNAVAILABLE)
    pause_s = delay_s(job.attempts) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
    return Delay(job.release_id, why, now + pause_s)


def retry_after_fault(job: Job, error: Exception, now: float) -> Delay:
    """Log an unexpected error with its traceback, and return the delay until the next try."""
    log.error("not judged", cap_uri=job.announcement.cap_uri, exc_info=error)
    return retry_later(job, f"a fault of this node: {type(error).__name__}", now)


def one_line(error: CapdexError) -> str:
    """Return the message and cause of an error in one line."""
    return f"{error.message}: {error.why}".removesuffix(": ")


def log_result(job: Job, result: FetchResult) -> None:
    """Log the result of a try."""
    uri = job.announcement.cap_uri
    if isinstance(result, JudgedRelease):
        found = result.judgement
        if found.reason is not None:
            log.warning("rejected", cap_uri=uri, reason=str(found.reason), why=found.message)
        else:
            log.info("verified", cap_uri=uri)
    elif result.reason is not None:
        log.warning("parked", cap_uri=uri, reason=str(result.reason), why=result.error)
    elif result.tried:
        log.info("not available yet", cap_uri=uri, why=result.error)
