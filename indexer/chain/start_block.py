"""Before the first block: is this the chain, is this the registry, where does it begin?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from capdex.encoding.abi import checksum_address
from capdex.errors import Code, Refused, UsageError
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import Header, hex_, quantity, unhex
from indexer.chain.reader import DEV_CHAIN_ID

log = structlog.get_logger(part="node")

PAUSE_S = 1.0  # where an endpoint asks for patience and does not say how much
MAX_TRIES = 6  # as for a call that fails: whoever has no first block is not to be believed at once


@dataclass(frozen=True, slots=True)
class Place:
    """Where a registry stands: the chain's genesis hash and the first block worth reading.

    A development chain has no lasting genesis (Anvil makes a new one whenever it starts after a
    SIGKILL, whatever its state file holds), so there it is all zeros.
    """

    genesis: bytes
    start_block: int


async def locate(
    rpc: Rpc, *, chain_id: int, registry: bytes, start_block: int | None = None
) -> Place:
    """Check the endpoints against the configuration and find where to begin.

    One that asks for patience is waited for. Raises Refused(WRONG_CHAIN) when any endpoint speaks
    for another chain, UsageError(NO_CONTRACT), or RpcError when nobody answers.
    """
    while True:
        try:
            return await _locate(rpc, chain_id, registry, start_block)
        except RpcError as error:
            if error.fault is not RpcFault.RATE:
                raise
            log.warning("waiting", code=str(error.code), why=f"{error.message}: {error.why}")
            await asyncio.sleep(error.retry_after_s or PAUSE_S)


async def _locate(rpc: Rpc, chain_id: int, registry: bytes, start_block: int | None) -> Place:
    heard = await rpc.survey("eth_chainId", (), quantity)
    for one in heard:
        if isinstance(one.said, int) and one.said != chain_id:
            raise Refused(
                f"the RPC endpoint speaks for chain {one.said}, not {chain_id}",
                Code.WRONG_CHAIN,
                why=f"{one.label} answers eth_chainId with {one.said}",
                fix="pass the endpoint of the configured chain, or configure the chain you mean",
            )
    silent = [one.said for one in heard if isinstance(one.said, RpcError)]
    if len(silent) == len(heard):
        raise silent[0]
    rpc.expect(chain_id)
    if not await rpc.code(registry) and not await _known_elsewhere(rpc, registry):
        raise UsageError(
            f"no registry stands at {checksum_address(registry)} on chain {chain_id}",
            Code.NO_CONTRACT,
            why=f"{rpc.endpoint} knows no code at that address",
            fix="check the address, or deploy a registry with capdex deploy",
        )
    genesis = await _genesis(rpc)
    if start_block is None:
        start_block = await _deployed_at(rpc, registry)
    return Place(bytes(32) if chain_id == DEV_CHAIN_ID else genesis.hash, start_block)


async def _genesis(rpc: Rpc) -> Header:
    """The first block, of another endpoint where one says that there is none, or a moment later."""
    tries = 0
    while (genesis := await rpc.block(0)) is None:
        error, tries = rpc.blame("it knows no genesis block"), tries + 1
        if tries == MAX_TRIES:
            raise error
    return genesis


async def _known_elsewhere(rpc: Rpc, registry: bytes) -> bool:
    """Whether another endpoint knows the code: the current one may be far behind."""
    if rpc.alone:
        return False
    label = rpc.endpoint
    codes = await rpc.survey("eth_getCode", [hex_(registry), "latest"], unhex)
    if not any(one.said and isinstance(one.said, bytes) for one in codes):
        return False
    rpc.blame("it knows no code where others do", label)
    return True


async def _deployed_at(rpc: Rpc, registry: bytes) -> int:
    """The block that brought the code, by bisection; 0 where old states are not served."""
    head = await rpc.block("latest")
    low, high = 0, head.number if head else 0
    try:
        while low < high:
            middle = (low + high) // 2
            if await rpc.code(registry, hex(middle)):
                high = middle
            else:
                low = middle + 1
    except RpcError as error:
        if error.fault is RpcFault.RATE or not (error.answered or error.fault is RpcFault.FATAL):
            raise
        return 0
    return low
