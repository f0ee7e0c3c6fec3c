"""Steps that publishing and other transactions report while they run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from capdex.errors import Unavailable
from capdex_publisher.ethereum.contract import Receipt
from capdex_publisher.ethereum.transaction import Leaving, Reverted, Sent, Shallow

SERVED_WAIT_S: Final = 30.0  # a node that follows the chain needs a second; then people wonder
MAX_SERVED_POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A package is stored, and was fetched back from `source`."""

    cid: str
    size_bytes: int
    source: str


@dataclass(frozen=True, slots=True)
class FilesUploaded:
    """The files of a package are stored, and were fetched back from `source`."""

    cap_uri: str
    count: int
    size_bytes: int
    seconds: float
    source: str


@dataclass(frozen=True, slots=True)
class Reserved:
    """The commitment for a new name is in a block."""

    name: str
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Reserving:
    """New names wait until they may be claimed, for `left_s` more seconds of block time."""

    names: tuple[str, ...]
    left_s: int


@dataclass(frozen=True, slots=True)
class Served:
    """The configured node answers with the release; None if it did not within the time allowed.

    `why` is then what it answered instead, or why it did not answer.
    """

    after_s: float | None
    why: str = ""


Step = (
    FilesUploaded
    | Uploaded
    | Reserved
    | Reserving
    | Leaving
    | Sent
    | Shallow
    | Receipt
    | Reverted
    | Served
)
OnStep = Callable[[Step], None]


def ignore(step: object) -> None:
    """Ignore a step: the `on_step` of callers that show no progress."""


async def wait_served(
    is_served: Callable[[], Awaitable[bool]] | None,
    on_step: OnStep,
    *,
    timeout_s: float = SERVED_WAIT_S,
) -> Served:
    """Poll the node until it shows the change, and return whether it did.

    A node that is down or slow is not a failure: what is on chain stays there.
    """
    if is_served is None:
        return Served(None)
    started, pause_s, why = time.monotonic(), 0.05, "it does not answer"
    try:
        async with asyncio.timeout(timeout_s):
            while why := await _why_not(is_served):
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, MAX_SERVED_POLL_S)
            served = Served(time.monotonic() - started)
    except TimeoutError:
        served = Served(None, why)
    on_step(served)
    return served


async def _why_not(is_served: Callable[[], Awaitable[bool]]) -> str:
    try:
        return "" if await is_served() else "the node does not know it yet"
    except Unavailable as error:
        return error.line
