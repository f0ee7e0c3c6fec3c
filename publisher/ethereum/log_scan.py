"""A contract's logs, looked for from the head backwards, within what an endpoint gives at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from capdex.errors import Code, Unavailable
from capdex.registry.events import Event
from publisher.ethereum.contract import Contract

MAX_CALLS: Final = 256  # at 10 000 blocks each, a year of the slowest common chain
SHRINK: Final = 4

Topics = Sequence[str | Sequence[str] | None]


async def pieces(
    contract: Contract, topics: Topics, *, upto: int | None = None
) -> AsyncIterator[tuple[Event, ...]]:
    """The events of `topics`, newest piece first, each in the order of the chain.

    Ends at the block of the contract's deployment; raises Unavailable RPC_UNAVAILABLE when the
    endpoint's limits put that out of reach.
    """
    first = contract.start_block
    last = await contract.head() if upto is None else upto
    span = last - first + 1
    for _ in range(MAX_CALLS):
        if last < first:
            return
        since = max(first, last - span + 1)
        try:
            events = await contract.logs(topics, since, last)
        except Unavailable as error:
            if error.code is not Code.RPC_UNAVAILABLE or span == 1:
                raise
            span = max(1, span // SHRINK)  # more blocks or logs than this endpoint gives at once
            continue
        yield events
        last = since - 1
    if last >= first:
        raise Unavailable(
            f"the history of the contract at {contract.address} is out of reach",
            Code.RPC_UNAVAILABLE,
            why=f"{contract.chain.endpoint.shown} gives too few blocks at once",
            fix="use another endpoint (--rpc-url), or set start-block of this network to the block "
            "of the deployment",
        )


async def events(contract: Contract, topics: Topics, *, upto: int | None = None) -> list[Event]:
    """All events of `topics` in the order of the chain; raises like `pieces`."""
    found = [piece async for piece in pieces(contract, topics, upto=upto)]
    return [event for piece in reversed(found) for event in piece]
