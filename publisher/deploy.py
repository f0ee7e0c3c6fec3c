"""Deploying the registry, and the file that remembers where it stands."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eth_account.signers.local import LocalAccount

from capdex.errors import Code, Unavailable, UsageError
from publisher.chain import DEFAULT_FEE_CAP_WEI, RECEIPT_WAIT_S, Chain
from publisher.files import write_atomically
from publisher.registry import parse_address
from publisher.reverts import artifact


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where a registry stands; hashes are 0x hex, addresses EIP-55."""

    chain_id: int
    registry: str
    deployer: str
    block_number: int
    block_hash: str
    tx_hash: str
    contract: str = "CapabilityRegistry"


async def deploy(
    chain: Chain,
    account: LocalAccount,
    directory: Path,
    *,
    force: bool = False,
    fee_cap_wei: int = 10 * DEFAULT_FEE_CAP_WEI,  # a contract costs some fifty publications
    timeout_s: float = RECEIPT_WAIT_S,
) -> tuple[Deployment, bool]:
    """Deploy the checked-in registry and write `directory/<chain-id>.json`.

    Returns the deployment and whether it is new: one that still stands on the chain is given back
    unless `force`. Raises what `Chain.price`, `send` and `wait` raise.
    """
    path = directory / f"{chain.chain_id}.json"
    if not force and path.exists():
        known = read_deployment(path)
        if known.chain_id == chain.chain_id and await chain.code(known.registry):
            return known, False
    priced = await chain.price(
        account.address, None, creation_code(), fee_cap_wei=fee_cap_wei
    )
    sent = await chain.send(account, priced)
    mined = await chain.wait(sent.tx_hash, timeout_s=timeout_s)
    if mined.contract_address is None or not await chain.code(mined.contract_address):
        raise Unavailable(
            f"transaction {mined.tx_hash} left no contract",
            Code.RPC_UNAVAILABLE,
            why="its receipt does not fit what was sent",
            fix="ask another endpoint (--rpc-url)",
        )
    deployment = Deployment(
        chain_id=chain.chain_id,
        registry=parse_address(mined.contract_address),
        deployer=account.address,
        block_number=mined.block_number,
        block_hash=mined.block_hash,
        tx_hash=mined.tx_hash,
    )
    write_atomically(path, (json.dumps(asdict(deployment), indent=2) + "\n").encode("utf-8"))
    return deployment, True


def creation_code(min_commitment_age_s: int = 0, max_commitment_age_s: int = 0) -> str:
    """The 0x hex that creates a registry; a minimum age of zero claims names at once (P12)."""
    arguments = (age.to_bytes(32, "big").hex() for age in (min_commitment_age_s, max_commitment_age_s))
    return str(artifact()["bytecode"]) + "".join(arguments)


def read_deployment(path: Path) -> Deployment:
    """Read a deployment file; raises UsageError UNREADABLE."""
    try:
        document: Any = json.loads(path.read_text("utf-8"))
        return Deployment(
            chain_id=int(document["chain_id"]),
            registry=parse_address(document["registry"]),
            deployer=parse_address(document["deployer"]),
            block_number=int(document["block_number"]),
            block_hash=str(document["block_hash"]),
            tx_hash=str(document["tx_hash"]),
            contract=str(document["contract"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        raise UsageError(
            f"{path} is not a deployment file",
            Code.UNREADABLE,
            why=str(error)[:200],
            fix="name the registry with --registry, or deploy again with --force",
        ) from None
