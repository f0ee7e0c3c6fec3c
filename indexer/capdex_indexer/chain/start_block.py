"""Before the first block: check the chain id and the registry, find the first block to read."""

from __future__ import annotations

from dataclasses import dataclass

from capdex.encoding.abi import checksum_address
from capdex.encoding.hexadecimal import to_hex, unhex
from capdex.errors import Code, Refused, UsageError
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import quantity
from capdex_indexer.chain.reader import DEV_CHAIN_ID


@dataclass(frozen=True, slots=True)
class RegistryLocation:
    """The chain's genesis hash and the first block worth reading.

    A development chain has no lasting genesis (Anvil makes a new one when it starts after a
    SIGKILL, even with a state file), so there it is all zeros.
    """

    genesis: bytes
    start_block: int


async def locate_registry(
    rpc: Rpc, *, chain_id: int, registry: bytes, start_block: int | None = None
) -> RegistryLocation:
    """Check the endpoints against the configuration and find where to begin.

    Raises Refused(WRONG_CHAIN) if any endpoint serves another chain, UsageError (NO_CONTRACT, or
    USAGE for a start block that is yet to come), or RpcError if no endpoint answers.
    """
    answers = await rpc.survey("eth_chainId", (), quantity)
    for report in answers:
        if isinstance(report.answer, int) and report.answer != chain_id:
            raise Refused(
                f"the RPC endpoint speaks for chain {report.answer}, not {chain_id}",
                Code.WRONG_CHAIN,
                why=f"{report.label} answers eth_chainId with {report.answer}",
                fix="pass the endpoint of the configured chain, or configure the chain you mean",
            )
    silent = [report.answer for report in answers if isinstance(report.answer, RpcError)]
    if len(silent) == len(answers):
        raise silent[0]
    rpc.expect(chain_id)
    if not await rpc.code(registry) and not await _known_elsewhere(rpc, registry):
        if await _syncs(rpc):
            raise rpc.blame("it is still syncing, and has no registry's code yet")
        raise UsageError(
            f"no registry stands at {checksum_address(registry)} on chain {chain_id}",
            Code.NO_CONTRACT,
            why=f"{rpc.endpoint} knows no code at that address",
            fix="check the address, or deploy a registry with capdex deploy",
        )
    genesis = bytes(32) if chain_id == DEV_CHAIN_ID else await _genesis(rpc)
    rpc.expect(chain_id, genesis)
    if start_block is None:
        start_block = await _deployed_at(rpc, registry)
    elif (head := await rpc.block("latest")) and head.number < start_block:
        raise UsageError(
            f"the first block to read is {start_block}, and the chain is at block {head.number}",
            why="the registry stands already, so its block is an earlier one",
            fix="correct --start-block (`start-block` of the network), or leave it out",
        )
    return RegistryLocation(genesis, start_block)


async def _genesis(rpc: Rpc) -> bytes:
    """Return the hash of the first block; an endpoint that cannot tell it is blamed."""
    for _ in rpc.endpoints_state():
        if genesis := await rpc.first_block():
            return genesis
        error = rpc.blame(
            "it keeps neither block 0, the genesis block, nor block 1, by which the chain is told"
        )
    raise error


async def _syncs(rpc: Rpc) -> bool:
    try:
        return bool(await rpc.call("eth_syncing"))
    except RpcError as error:
        if not error.answered:
            raise
        return False


async def _known_elsewhere(rpc: Rpc, registry: bytes) -> bool:
    """True if another endpoint knows the code: the current one may be far behind."""
    label = rpc.endpoint
    codes = await rpc.survey("eth_getCode", [to_hex(registry), "latest"], unhex)
    if not any(x.answer and isinstance(x.answer, bytes) for x in codes):
        return False
    rpc.blame("it knows no code where others do", label)
    return True


async def _deployed_at(rpc: Rpc, registry: bytes) -> int:
    """Return the block of the deployment, by bisection; 0 if old state is not served."""
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
