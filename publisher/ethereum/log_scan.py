"""Scan a contract's logs from the head backwards, in ranges that the endpoint accepts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from capdex.errors import Code, Unavailable
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.registry.events import Event
from publisher.ethereum.contract import Contract, Topics

MAX_CALLS: Final = 256  # at 10 000 blocks each, a year of the slowest common chain
SHRINK: Final = 4


async def scan(
    contract: Contract, topics: Topics, *, upto: int | None = None
) -> AsyncIterator[tuple[Event, ...]]:
    """Iterate over the events of `topics` range by range, the newest range first.

    Within a range the events are in the order of the chain. Ends at the block of the contract's
    deployment; raises Unavailable RPC_UNAVAILABLE if the endpoint's limits do not allow to get
    there.
    """
    first = contract.start_block
    last = await contract.chain.head() if upto is None else upto
    span = last - first + 1
    for _ in range(MAX_CALLS):
        if last < first:
            return
        since = max(first, last - span + 1)
        try:
            events = await contract.logs(topics, since, last)
        except RpcError as error:
            if span == 1 or not _may_be_too_large(error):
                raise
            span = max(1, span // SHRINK)
            continue
        yield events
        last = since - 1
    if last >= first:
        raise Unavailable(
            f"the history of the contract at {contract.address} is out of reach",
            Code.RPC_UNAVAILABLE,
            why=f"{contract.chain.endpoint} gives too few blocks at once",
            fix="use another endpoint (--rpc-url), or set start-block of this network to the block "
            "of the deployment",
        )


async def all_events(contract: Contract, topics: Topics, *, upto: int | None = None) -> list[Event]:
    """Return all events of `topics` in the order of the chain; raises like `scan`."""
    ranges = [events async for events in scan(contract, topics, upto=upto)]
    return [event for events in reversed(ranges) for event in events]


def _may_be_too_large(error: RpcError) -> bool:
    """True if fewer blocks or logs may help: endpoints state their limits in many ways."""
    if error.fault in (RpcFault.TOO_LARGE_RANGE, RpcFault.TIMEOUT):
        return True
    return error.answered and error.fault is not RpcFault.RATE
