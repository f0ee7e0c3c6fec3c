"""What has become of a job: a finding to store, or a delay with its reason."""

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
# A fresh CID often arrives seconds later; one that does not may take its pinning service a day.
FIRST_DELAYS_S: Final = (1.0, 5.0, 15.0)
DELAY_S: Final = 60.0
MAX_DELAY_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one release, and the blocks of it that are to be kept."""

    judgement: Judgement
    blocks: Mapping[Cid, bytes] = field(default_factory=dict)


Outcome = Finding | Delay


def delay_s(attempts: int) -> float:
    """How long to wait after that many failed tries and one more, before jitter."""
    if attempts < len(FIRST_DELAYS_S):
        return FIRST_DELAYS_S[attempts]
    return float(min(DELAY_S * 2 ** (attempts - len(FIRST_DELAYS_S)), MAX_DELAY_S))


def later(job: Job, why: str, now: float) -> Delay:
    """One more try, or none after so many in vain."""
    if job.attempts + 1 >= MAX_TRIES:
        return Delay(job.release_id, why, reason=Reason.UNAVAILABLE)
    pause_s = delay_s(job.attempts) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
    return Delay(job.release_id, why, now + pause_s)


def fault(job: Job, error: Exception, now: float) -> Delay:
    """A try that failed by a fault of ours, which is logged with all that is known of it."""
    log.error("not judged", cap_uri=job.announcement.cap_uri, exc_info=error)
    return later(job, f"a fault of this node: {type(error).__name__}", now)


def said(error: CapdexError) -> str:
    """An error in one line."""
    return f"{error.message}: {error.why}".removesuffix(": ")


def tell(job: Job, outcome: Outcome) -> None:
    """Log what has become of a release."""
    uri = job.announcement.cap_uri
    if isinstance(outcome, Finding):
        judgement = outcome.judgement
        if judgement.reason is not None:
            log.warning(
                "rejected", cap_uri=uri, reason=str(judgement.reason), why=judgement.message
            )
        else:
            log.info("verified", cap_uri=uri)
    elif outcome.reason is not None:
        log.warning("parked", cap_uri=uri, reason=str(outcome.reason), why=outcome.error)
    elif outcome.tried:
        log.info("not had yet", cap_uri=uri, why=outcome.error)
