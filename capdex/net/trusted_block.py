"""Read the block that a proof is checked against from a trusted second endpoint."""

from __future__ import annotations

import asyncio
from typing import Final

from capdex.errors import Code, Refused, Unavailable
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.registry.logs import BlockRef

WAIT_S: Final = 12.0  # one slot of Ethereum: two endpoints rarely differ by more
POLL_S: Final = 0.5


async def trusted_block(rpc: Rpc, *, chain_id: int, number: int) -> tuple[BlockRef, BlockRef]:
    """Return block `number` of the endpoint, and the endpoint's newest block.

    Waits up to WAIT_S while the endpoint has not reached the block.
    Raises Refused (WRONG_CHAIN), RpcError, or Unavailable when the block does not come.
    """
    if (found := await rpc.chain_id()) != chain_id:
        raise Refused(
            f"the trusted endpoint is of chain {found}, not {chain_id}",
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
    return block, await rpc.block("latest") or block


async def _block(rpc: Rpc, number: int) -> BlockRef | None:
    try:
        found = await rpc.block(number)
    except RpcError as error:
        if error.fault in (RpcFault.BEYOND_HEAD, RpcFault.UNKNOWN_BLOCK):
            return None
        raise
    return found if found is None or found.number == number else None
