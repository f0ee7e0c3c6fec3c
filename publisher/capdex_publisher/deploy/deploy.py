"""Deploy the contracts, and keep a file that says where they are and since which block.

They are deployed through the CREATE2 factory, so that their addresses are known before and do not
depend on the deploying account: see `capdex_publisher.deploy.create2`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from capdex.encoding.abi import parse_address
from capdex.encoding.hexadecimal import to_hex
from capdex.encoding.keccak import keccak
from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.net.files import write_atomically
from capdex.net.rpc.abilities import runs_cancun
from capdex.net.rpc.errors import RpcError
from capdex_publisher.deploy import create2
from capdex_publisher.deploy.create2 import Creation
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.ethereum.contract import Contract
from capdex_publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Transaction
from capdex_publisher.keys.signer import Signer
from capdex_publisher.progress import OnStep, ignore
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.pending import PendingTransaction
from capdex_publisher.tx.submit import submit

DEPLOYING_FEE_CAP_WEI = 10 * DEFAULT_FEE_CAP_WEI  # a contract costs some fifty publications


@dataclass(frozen=True, slots=True)
class DeployedContract:
    """A contract's address and the block of its deployment; hashes are 0x hex, addresses EIP-55.

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
    fee_cap_wei: int = DEPLOYING_FEE_CAP_WEI,
    on_step: OnStep = ignore,
) -> tuple[DeployedContract, bool]:
    """Deploy a contract (the chain's registry) and write its deployment file.

    Returns the deployment and whether it is new: what stands already is looked up, not made again,
    and the transaction of an earlier call that is not mined yet is waited for.
    Raises what `price`, `find`, `submit` and `confirm` raise.
    """
    creation = creation or create2.registry(chain.chain_id)
    factory = Contract(chain, create2.FACTORY, creation.contract)
    pending = PendingTransaction(factory, "deploy", creation.address, signer.address, "")
    if deployed := await find(chain, creation, directory):
        pending.remove()
        return deployed, False
    try:
        sent = await pending.load(fee_cap_wei=fee_cap_wei)
        if sent is None:
            transaction = await price(chain, signer.address, creation, fee_cap_wei=fee_cap_wei)
            sent = await submit(chain, signer, transaction, on_signed=pending.save)
        mined = await confirm(
            chain,
            sent,
            signer=signer,
            on_signed=pending.save,
            is_done=lambda: stands(chain, creation),
            on_step=on_step,
        )
    except InvalidInput:
        # The factory refuses what exists already: another process may have deployed it.
        pending.remove()
        if deployed := await find(chain, creation, directory):
            return deployed, False
        raise
    pending.remove()
    made = await find(chain, creation, directory, start_block=mined.block_number)
    if made is None:
        raise Unavailable(
            f"transaction {mined.tx_hash} left no contract at {creation.address}",
            Code.RPC_UNAVAILABLE,
            why="its receipt does not fit what was sent",
            fix="ask another endpoint (--rpc-url)",
        )
    return made, True


async def price(
    chain: Chain, sender: str, creation: Creation, *, fee_cap_wei: int = DEPLOYING_FEE_CAP_WEI
) -> Transaction:
    """Return the priced transaction that deploys a contract.

    Raises InvalidInput REVERTED when the constructor refuses, and what `require_evm` and
    `Chain.price` raise.
    """
    await require_evm(chain)
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


async def require_evm(chain: Chain) -> None:
    """Raise UsageError NO_CONTRACT for a chain without the factory or Cancun's instructions."""
    if not await _may_run(chain):
        raise UsageError(
            f"chain {chain.chain_id} lacks instructions of Cancun, which the contracts need",
            Code.NO_CONTRACT,
            why="it refused a call that does nothing but MCOPY (EIP-5656)",
            fix="use another chain, or this one after its upgrade; a development chain of your own "
            "may have an option for it (anvil --hardfork cancun)",
        )
    if await chain.code(create2.FACTORY) != create2.FACTORY_CODE:
        raise UsageError(
            f"chain {chain.chain_id} has no CREATE2 factory at {create2.FACTORY}",
            Code.NO_CONTRACT,
            why="contracts are deployed through it, so that they have one address on every chain",
            fix=f"send 0.01 ether to {create2.FACTORY_MAKER}, then broadcast the signed "
            "transaction that docs/networks.md gives",
        )


async def _may_run(chain: Chain) -> bool:
    """Return False if the chain lacks instructions of Cancun."""
    try:
        return await runs_cancun(chain.rpc.call)
    except RpcError as error:
        if not error.is_refusal:
            raise
        return True  # it refuses each such call


async def stands(chain: Chain, creation: Creation) -> bool:
    """Return True if the contract is deployed on the chain.

    Code at a CREATE2 address is that contract by construction; its views are read too, since not
    every chain with Ethereum's API has Ethereum's virtual machine. Raises UsageError NO_CONTRACT.
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
    chain: Chain,
    creation: Creation,
    directory: Path,
    *,
    start_block: int | None = None,
    dry_run: bool = False,
) -> DeployedContract | None:
    """Return the deployment of a contract and write its file; None if it is not deployed.

    A dry run writes none. The file in `directory` is used while its block is part of the chain.
    Otherwise the block is searched for, unless `start_block` names it. Raises Unavailable where
    there is no old state.
    """
    if not await stands(chain, creation):
        return None
    kind = "-votes" if creation.contract == "CapabilityVotes" else ""
    path, known = directory / f"{chain.chain_id}{kind}.json", None
    with suppress(UsageError):
        known = read_deployment(path)
    if (
        known is not None
        and (known.chain_id, known.address) == (chain.chain_id, creation.address)
        and start_block in (None, known.block_number)
    ):
        block = await chain.block(known.block_number)
        if block is not None and block.get("hash") == known.block_hash:
            return known
    try:
        number = await _first_block(chain, creation) if start_block is None else start_block
        block = await chain.block(number, transactions=True)
    except Unavailable as error:
        fix = "use an endpoint with old state, or say --start-block N: explorers show it"
        raise replace(error, fix=fix) from None
    made = [x for x in (block or {}).get("transactions", ()) if _is_creation(x, creation)]
    if block is None or (start_block is None and not made):
        raise UsageError(
            f"the block since which {creation.address} stands was not found",
            why=f"block {number} does not hold the transaction that made it",
            fix="say --start-block N: a block explorer shows it",
        )
    arguments = dict(creation.arguments)
    deployed = DeployedContract(
        chain_id=chain.chain_id,
        contract=creation.contract,
        address=creation.address,
        registry=str(arguments.get("REGISTRY", creation.address)),
        arguments=arguments,
        deployer=parse_address(str(made[0].get("from"))) if made else "",
        block_number=number,
        block_hash=str(block.get("hash")),
        tx_hash=str(made[0].get("hash")) if made else "",
    )
    if not dry_run:
        document = json.dumps(asdict(deployed), indent=2) + "\n"
        write_atomically(path, document.encode("utf-8"))
    return deployed


def read_deployment(path: Path) -> DeployedContract:
    """Read a deployment file; raises UsageError UNREADABLE."""
    import msgspec  # 12 ms that only deployments pay

    try:
        return msgspec.json.decode(path.read_bytes(), type=DeployedContract)
    except (OSError, UnicodeDecodeError, RecursionError, msgspec.DecodeError) as error:
        raise UsageError(
            f"{path} is not a deployment file",
            Code.UNREADABLE,
            why=str(error)[:200],
            fix="`capdex deploy` writes it anew when you have moved it away",
        ) from None


async def _first_block(chain: Chain, creation: Creation) -> int:
    """Return the first block that has the contract, which the newest block has."""
    low, high = 0, await chain.head()
    while low < high:
        middle = (low + high) // 2
        if await chain.code(creation.address, middle):
            high = middle
        else:
            low = middle + 1
    return low


def _is_creation(transaction: Any, creation: Creation) -> bool:
    to = str(transaction.get("to") or "")
    return to.lower() == create2.FACTORY.lower() and transaction.get("input") == creation.calldata


async def _view(chain: Chain, address: str, name: str) -> int | None:
    """Return the number that a view without arguments gives; None if it gives no single word."""
    try:
        word = await chain.call(address, to_hex(keccak(f"{name}()".encode())[:4]), bytes)
    except InvalidInput:  # it reverted
        return None
    return int.from_bytes(word, "big") if len(word) == 32 else None
