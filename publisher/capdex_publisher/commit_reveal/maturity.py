"""Wait until a commitment has reached its minimum age, measured in block timestamps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from capdex.errors import Code, Unavailable
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.keys.public_accounts import DEV_CHAIN_ID
from capdex_publisher.progress import OnStep, Reserving
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import RECEIPT_WAIT_S

POLL_S: Final = 1.0  # no chain that asks for commitments makes blocks faster

T = TypeVar("T")


async def wait_until_mature(
    commitments: Mapping[str, bytes], *, registry: Registry, on_step: OnStep, timeout_s: float
) -> None:
    """Wait until every commitment (by name) is old enough.

    Raises Unavailable when the endpoint fails, or does not have a commitment, for `timeout_s`.
    """
    mature_at, deadline = 0, _now() + timeout_s
    while commitments:
        try:
            mature_at = mature_at or await _maturity_of(commitments, registry)
            left_s = mature_at - await block_time(registry.chain)
        except Unavailable:
            if _now() > deadline:
                raise
            await asyncio.sleep(POLL_S)
            continue
        if left_s <= 0:
            return
        on_step(Reserving(tuple(commitments), left_s))
        await asyncio.sleep(min(left_s, POLL_S))
        deadline = _now() + timeout_s


async def _maturity_of(commitments: Mapping[str, bytes], registry: Registry) -> int:
    """Return the block time at which the youngest is old enough; raises Unavailable."""
    made = [await registry.committed_at(one) for one in commitments.values()]
    if not all(made):  # an endpoint behind a balancer, or a reorganisation
        raise Unavailable(
            "a commitment that was in a block is no longer there",
            Code.RPC_UNAVAILABLE,
            why="the chain was reorganised, or the endpoint is behind",
            fix="run the same command again: it looks for it, and pays nothing twice",
        )
    least, _ = await registry.commitment_ages()
    return max(made) + least


async def block_time(chain: Chain) -> int:
    """Return the time of the next block in seconds, as the endpoint gives it.

    Endpoints without a pending block give the newest one's, which is earlier.
    """
    latest = await chain.block_number_of("latest", "timestamp")
    try:
        return max(latest, await chain.block_number_of("pending", "timestamp"))
    except Unavailable:
        return latest


def makes_blocks_on_demand(chain: Chain) -> bool:
    """Return True if the chain makes a block only when a transaction is sent.

    Estimates are made in the newest block. Elsewhere the next one comes by itself; to send before
    it has come would be a mistake, since a block in the making can bear an earlier time.
    """
    return chain.chain_id == DEV_CHAIN_ID


async def retry_until_mature(
    ask: Callable[[], Awaitable[T]], *, timeout_s: float = RECEIPT_WAIT_S
) -> T:
    """Await `ask` again until the contract no longer finds the commitment too young.

    `commit` waits for the block to come; an endpoint that estimates in the newest block agrees
    one block later.
    """
    deadline = _now() + timeout_s
    while True:
        try:
            return await ask()
        except Unavailable as error:
            young = (error.details or {}).get("error") == "CommitmentTooYoung"
            if not young or _now() > deadline:
                raise
        await asyncio.sleep(POLL_S)


def _now() -> float:
    return asyncio.get_running_loop().time()
