"""Asking an endpoint for the proof of a contract's log slot at a block."""

from __future__ import annotations

from capdex.errors import Code, InvalidInput, Unavailable, VerificationFailure
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import Fault, RpcError
from capdex.net.rpc.evidence import Evidence, read_block
from capdex.proof.log_head import LOG_SLOT, LogProof, verify_log
from capdex.proof.verify import Anchor


async def prove_log(rpc: Rpc, *, chain_id: int, contract: bytes, block: int) -> LogProof:
    """The proof for a contract (20 bytes) at block number `block`, checked before it is given out.

    Raises InvalidInput for a block that is not there or whose state the endpoint no longer keeps,
    RpcError or Unavailable when it does not give what is needed.
    """
    try:
        found = await rpc.call("eth_getBlockByNumber", [hex(block), False], read_block)
        if found is None or found.number != block:
            raise InvalidInput(f"{rpc.endpoint} has no block {block}", fix="ask for one it has")
        evidence = Evidence(rpc, contract, found.hash)
        await evidence.words([LOG_SLOT])
    except RpcError as error:
        if error.fault is not Fault.NO_STATE:
            raise
        raise InvalidInput(
            f"the state of block {block} is too old to be proven",
            why=f"{rpc.endpoint} no longer keeps it",
            fix="take a newer block, or an endpoint with an archive",
        ) from None
    except ValueError as error:
        raise _broken(rpc, block, str(error)) from None
    proof = LogProof(
        chain_id,
        contract,
        found.number,
        found.hash,
        found.header,
        evidence.account_proof,
        evidence.slots[LOG_SLOT],
    )
    try:
        verify_log(LogProof.parse(proof.to_json()), Anchor(chain_id, contract, found.hash))
    except VerificationFailure as error:
        raise _broken(rpc, block, error.why) from None
    return proof


def _broken(rpc: Rpc, block: int, why: str) -> Unavailable:
    return Unavailable(
        f"what {rpc.endpoint} says of block {block} proves nothing",
        Code.RPC_UNAVAILABLE,
        why=why,
        fix="ask another endpoint",
    )
