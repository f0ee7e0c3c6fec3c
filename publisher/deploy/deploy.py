"""Putting the contracts on a chain, and the file that remembers since when they stand there.

They go through the CREATE2 factory, so where they stand is known before, and it does not matter who
deployed them: `publisher.deploy.create2` says which address each has.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from web3.exceptions import BlockNotFound

from capdex.encoding.keccak import keccak
from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from publisher.deploy import create2
from publisher.deploy.create2 import Creation
from publisher.ethereum.client import Chain
from publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Transaction
from publisher.files import write_atomically
from publisher.keys.signer import Signer
from publisher.tx.confirm import RECEIPT_WAIT_S

DEPLOYING_FEE_CAP_WEI = 10 * DEFAULT_FEE_CAP_WEI  # a contract costs some fifty publications


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where a contract stands, and since which block; hashes are 0x hex, addresses EIP-55.

    `registry` is the contract itself, or the registry that it is about. `deployer` and `tx_hash`
    are empty where they are not known.
    """

    chain_id: int
    contract: str
    address: str
    registry: str
    arguments: dict[str, int | str]
    deployer: str
    block_number: int
    block_hash: str
    tx_hash: str


async def deploy(
    chain: Chain,
    signer: Signer,
    directory: Path,
    creation: Creation | None = None,
    *,
    start_block: int | None = None,
    fee_cap_wei: int = DEPLOYING_FEE_CAP_WEI,
    timeout_s: float = RECEIPT_WAIT_S,
) -> tuple[Deployment, bool]:
    """Put a contract (the chain's registry) on the chain and write down where.

    Returns the deployment and whether it is new: what stands already is looked up, not made again.
    Raises what `price`, `find`, `Chain.send` and `Chain.wait` raise.
    """
    creation = creation or create2.registry(chain.chain_id)
    found = await find(chain, creation, directory, start_block=start_block)
    if found is not None:
        return found, False
    try:
        transaction = await price(chain, signer.address, creation, fee_cap_wei=fee_cap_wei)
        mined = await chain.wait(
            await chain.send(signer, transaction),
            timeout_s=timeout_s,
            signer=signer,
            done=lambda: stands(chain, creation),
        )
    except InvalidInput:
        # The factory refuses what exists: somebody may have been first.
        found = await find(chain, creation, directory, start_block=start_block)
        if found is None:
            raise
        return found, False
    if not await stands(chain, creation):
        raise Unavailable(
            f"transaction {mined.tx_hash} left no contract at {creation.address}",
            Code.RPC_UNAVAILABLE,
            why="its receipt does not fit what was sent",
            fix="ask another endpoint (--rpc-url)",
        )
    made = _deployment(
        chain, creation, signer.address, mined.block_number, mined.block_hash, mined.tx_hash
    )
    _write(made, directory)
    return made, True


async def price(
    chain: Chain, sender: str, creation: Creation, *, fee_cap_wei: int = DEPLOYING_FEE_CAP_WEI
) -> Transaction:
    """The priced transaction that makes a contract.

    Raises UsageError NO_CONTRACT where the chain has no factory, InvalidInput REVERTED when the
    constructor refuses, and what `Chain.price` raises.
    """
    if await chain.code(create2.FACTORY) != create2.FACTORY_CODE:
        raise UsageError(
            f"chain {chain.chain_id} has no CREATE2 factory at {create2.FACTORY}",
            Code.NO_CONTRACT,
            why="contracts are deployed through it, so that they have one address on every chain",
            fix=f"send 0.01 ether to {create2.FACTORY_MAKER}, then broadcast the signed "
            "transaction that docs/networks.md gives",
        )
    try:
        return await chain.price(
            sender, create2.FACTORY, creation.calldata, fee_cap_wei=fee_cap_wei
        )
    except InvalidInput as error:
        if error.code is not Code.REVERTED:
            raise
        raise InvalidInput(
            f"the factory cannot make {creation.contract} at {creation.address}",
            Code.REVERTED,
            why="its constructor refuses, or the endpoint does not know the chain's newest state",
            fix="the timepoint has to be over, and the token an ERC-5805 one"
            if creation.contract == "CapabilityVotes"
            else "run the same command again, or use another endpoint (--rpc-url)",
        ) from None


async def stands(chain: Chain, creation: Creation) -> bool:
    """Whether the contract stands on the chain.

    Code at a CREATE2 address is that contract by construction; that it also answers with its
    constructor's arguments is asked, since not every chain with Ethereum's API has its machine.
    Raises UsageError NO_CONTRACT when it does not.
    """
    if not await chain.code(creation.address):
        return False
    for view, value in creation.arguments:
        expected = value if isinstance(value, int) else int(value, 16)
        if await _view(chain, creation.address, view) != expected:
            raise UsageError(
                f"what stands at {creation.address} is not {creation.contract}",
                Code.NO_CONTRACT,
                why=f"{view}() does not answer {value}",
                fix="ask another endpoint (--rpc-url); if it says the same, use another chain",
            )
    return True


async def find(
    chain: Chain, creation: Creation, directory: Path, *, start_block: int | None = None
) -> Deployment | None:
    """The deployment of a contract that stands, written down; None when there is none.

    What `directory` remembers is believed while its block is part of the chain. Else the block is
    searched for, unless it is said. Raises Unavailable where the endpoint has no old state.
    """
    if not await stands(chain, creation):
        return None
    known = None
    with suppress(UsageError):
        known = read_deployment(_file(directory, chain.chain_id, creation.contract))
    if (
        known is not None
        and (known.chain_id, known.address) == (chain.chain_id, creation.address)
        and start_block in (None, known.block_number)
    ):
        block = await _block(chain, known.block_number)
        if block is not None and _hex(block["hash"]) == known.block_hash:
            return known
    try:
        number = await _first_block(chain, creation) if start_block is None else start_block
        block = await _block(chain, number)
    except Unavailable as error:
        error.fix = "use an endpoint with old state, or say --start-block N: explorers show it"
        raise
    made = [x for x in (block or {}).get("transactions", ()) if _makes(x, creation)]
    if block is None or (start_block is None and not made):
        raise UsageError(
            f"the block since which {creation.address} stands was not found",
            why=f"block {number} does not hold the transaction that made it",
            fix="say --start-block N: a block explorer shows it",
        )
    found = _deployment(
        chain,
        creation,
        str(made[0]["from"]) if made else "",
        number,
        _hex(block["hash"]),
        _hex(made[0]["hash"]) if made else "",
    )
    _write(found, directory)
    return found


def read_deployment(path: Path) -> Deployment:
    """Read a deployment file; raises UsageError UNREADABLE."""
    try:
        document: Any = json.loads(path.read_text("utf-8"))
        return Deployment(
            chain_id=int(document["chain_id"]),
            contract=str(document["contract"]),
            address=str(document["address"]),
            registry=str(document["registry"]),
            arguments=dict(document["arguments"]),
            deployer=str(document["deployer"]),
            block_number=int(document["block_number"]),
            block_hash=str(document["block_hash"]),
            tx_hash=str(document["tx_hash"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is not a deployment file",
            Code.UNREADABLE,
            why=str(error)[:200],
            fix="`capdex deploy` writes it anew when you have moved it away",
        ) from None


def _deployment(
    chain: Chain, creation: Creation, deployer: str, number: int, block_hash: str, tx_hash: str
) -> Deployment:
    arguments = dict(creation.arguments)
    return Deployment(
        chain_id=chain.chain_id,
        contract=creation.contract,
        address=creation.address,
        registry=str(arguments.get("REGISTRY", creation.address)),
        arguments=arguments,
        deployer=deployer,
        block_number=number,
        block_hash=block_hash,
        tx_hash=tx_hash,
    )


def _file(directory: Path, chain_id: int, contract: str) -> Path:
    return directory / f"{chain_id}{'-votes' if contract == 'CapabilityVotes' else ''}.json"


def _write(deployment: Deployment, directory: Path) -> None:
    path = _file(directory, deployment.chain_id, deployment.contract)
    write_atomically(path, (json.dumps(asdict(deployment), indent=2) + "\n").encode("utf-8"))


# what the chain says ------------------------------------------------------------------------


async def _first_block(chain: Chain, creation: Creation) -> int:
    """The first block at whose end the contract stands, which it does at the newest one."""
    address: Any = creation.address
    with chain.faults():
        low, high = 0, int(await chain.web3.eth.block_number)
        while low < high:
            middle = (low + high) // 2
            if await chain.web3.eth.get_code(address, middle):
                high = middle
            else:
                low = middle + 1
    return low


async def _block(chain: Chain, number: int) -> dict[str, Any] | None:
    with chain.faults():
        try:
            return dict(await chain.web3.eth.get_block(number, full_transactions=True))
        except BlockNotFound:
            return None


def _makes(transaction: Any, creation: Creation) -> bool:
    to = str(transaction.get("to") or "")
    return to.lower() == create2.FACTORY.lower() and _hex(transaction["input"]) == creation.calldata


async def _view(chain: Chain, address: str, name: str) -> int | None:
    """What a view without arguments returns, as a number; None when it returns no single word."""
    to: Any = address
    data: Any = "0x" + keccak(f"{name}()".encode("ascii"))[:4].hex()
    try:
        with chain.faults():
            word = bytes(await chain.web3.eth.call({"to": to, "data": data}))
    except InvalidInput:  # it reverted
        return None
    return int.from_bytes(word, "big") if len(word) == 32 else None


def _hex(value: Any) -> str:
    return value if isinstance(value, str) else "0x" + bytes(value).hex()
