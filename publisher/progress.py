"""What publishing and its like report: the steps as they happen, and how it ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from capdex.errors import Unavailable
from publisher.ethereum.contract import Receipt
from publisher.ethereum.transaction import Mined, Sent

SERVED_WAIT_S: Final = 30.0  # a node that follows the chain needs a second; then people wonder
MAX_SERVED_POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A package is stored, and was fetched back from `source`."""

    cid: str
    size_bytes: int
    source: str


@dataclass(frozen=True, slots=True)
class Reserved:
    """The commitment for a new name is in a block."""

    name: str
    mined: Mined


@dataclass(frozen=True, slots=True)
class Reserving:
    """New names wait until they may be claimed, for `left_s` more seconds of block time."""

    names: tuple[str, ...]
    left_s: int


@dataclass(frozen=True, slots=True)
class Served:
    """The configured node answers with the release; None: it did not within the time allowed."""

    after_s: float | None


Step = Uploaded | Reserved | Reserving | Sent | Receipt | Served
OnStep = Callable[[Step], None]
IsServed = Callable[[str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended. `already`: nothing had to be sent.

    The transaction's fields are None only where it lies beyond what the endpoint will search;
    hashes are hex (the transaction's with 0x), fees are in wei. Gas and fee are those of the whole
    transaction, which published `batch` releases.
    """

    cap_uri: str
    cid: str
    sha256: str
    already: bool
    tx_hash: str | None = None
    block_number: int | None = None
    gas_used: int | None = None
    fee_wei: int | None = None
    batch: int | None = None
    served_after_s: float | None = None

    @classmethod
    def of(
        cls,
        cap_uri: str,
        cid: str,
        sha256: bytes,
        receipt: Receipt | None,
        *,
        already: bool,
        served_after_s: float | None = None,
    ) -> Outcome:
        """The outcome of a release and the transaction that brought it about."""
        outcome = cls(cap_uri, cid, sha256.hex(), already, served_after_s=served_after_s)
        if receipt is None:
            return outcome
        return replace(
            outcome,
            tx_hash=receipt.tx_hash,
            block_number=receipt.block_number,
            gas_used=receipt.gas_used,
            fee_wei=receipt.fee_wei,
            batch=len(receipt.events),
        )

    def to_json(self) -> dict[str, Any]:
        """The outcome as the command line prints it."""
        return asdict(self)


def ignore(step: Step) -> None:
    """The `on_step` of a caller that shows no progress."""


async def wait_served(
    subject: str, served: IsServed | None, on_step: OnStep, *, timeout_s: float = SERVED_WAIT_S
) -> float | None:
    """Ask until the node shows what was done to a release or name: seconds that took, or None.

    A node that is down or slow is no failure: what is on chain stays there.
    """
    if served is None:
        return None
    started, pause_s, after_s = time.monotonic(), 0.05, None
    try:
        async with asyncio.timeout(timeout_s):
            while after_s is None:
                try:
                    if await served(subject):
                        after_s = time.monotonic() - started
                        break
                except Unavailable:
                    pass
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, MAX_SERVED_POLL_S)
    except TimeoutError:
        pass
    on_step(Served(after_s))
    return after_s
