"""The one thing a proof is checked against: what a second endpoint says of a block."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from capdex.errors import Code, Refused, Unavailable
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import Fault, RpcError
from capdex.net.rpc.types import Header

WAIT_S: Final = 12.0  # one slot of Ethereum: two endpoints are rarely further apart
POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class TrustedBlock:
    """The hash of a block, and how far behind the endpoint's head it is."""

    hash: bytes
    behind_blocks: int
    behind_s: int


async def trusted_block(rpc: Rpc, *, chain_id: int, number: int) -> TrustedBlock:
    """What the endpoint says of block `number`; waits a little where its head is behind that.

    Raises Refused (WRONG_CHAIN), RpcError, or Unavailable when the block does not come.
    """
    if (found := await rpc.chain_id()) != chain_id:
        raise Refused(
            f"the trusted endpoint speaks for chain {found}, not {chain_id}",
            Code.WRONG_CHAIN,
            why=f"it is {rpc.endpoint}",
            fix="name an endpoint of this network with --trust-rpc",
        )
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_S
    while (block := await _block(rpc, number)) is None:
        if loop.time() > deadline:
            raise Unavailable(
                f"the trusted endpoint has no block {number} yet",
                Code.RPC_UNAVAILABLE,
                why=f"{rpc.endpoint} is behind the node, or the node is on another chain",
                fix="try again, or trust another endpoint",
            )
        await asyncio.sleep(POLL_S)
    head = await rpc.block("latest") or block
    behind = max(0, head.number - block.number), max(0, head.timestamp - block.timestamp)
    return TrustedBlock(block.hash, *behind)


async def _block(rpc: Rpc, number: int) -> Header | None:
    try:
        found = await rpc.block(number)
    except RpcError as error:
        if error.fault in (Fault.BEYOND_HEAD, Fault.UNKNOWN_BLOCK):
            return None
        raise
    return found if found is None or found.number == number else None
