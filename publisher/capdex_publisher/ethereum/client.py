"""Client of one chain: read its state and price transactions through one RPC endpoint.

Transactions are sent and waited for by `capdex_publisher.tx`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from capdex.encoding.hexadecimal import to_hex, unhex
from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import quantity, read_columns
from capdex_publisher.ethereum import revert_reasons
from capdex_publisher.ethereum.transaction import (
    DEFAULT_FEE_CAP_WEI,
    GAS_MARGIN_PERCENT,
    Fees,
    Mined,
    Transaction,
    ether,
)
from capdex_publisher.keys.public_accounts import DEV_CHAIN_ID, check_account

USUAL_CONFIRMATIONS: Final = 2  # most reorganisations of public chains are one block deep
LEAST_TIP_WEI: Final = 10**9  # where an endpoint suggests none: what most wallets pay

T = TypeVar("T")
Block = int | Literal["latest", "pending"]


@dataclass(frozen=True, slots=True)
class Patience:
    """Waiting times, in seconds, before a sent transaction is sent again."""

    look_s: float = 4.0  # between two looks at the pool: a third of the slowest common slot
    underpriced_s: float = 15.0  # one block may be full
    stuck_s: float = 45.0  # nearly four slots: a good tip is mined in one or two
    lost_s: float = 15.0  # endpoints behind a balancer learn of a transaction at different times


class Chain:
    """Client of one chain at one endpoint. Open it with `Chain.connect`.

    Every method raises Unavailable (RpcError) when the endpoint does not answer as it should.
    `confirmations` is how many blocks have to hold a transaction, its own counted, before it counts
    as mined. `state_dir` holds the locks and the pending transactions of all processes of a user.
    """

    def __init__(self, rpc: Rpc, chain_id: int, state_dir: Path) -> None:
        self.rpc = rpc
        self.chain_id = chain_id
        self.state_dir = state_dir
        self.confirmations = 1 if chain_id == DEV_CHAIN_ID else USUAL_CONFIRMATIONS
        self.patience = Patience()

    @classmethod
    @asynccontextmanager
    async def connect(cls, rpc_url: str, chain_id: int, *, state_dir: Path) -> AsyncIterator[Chain]:
        """Open an endpoint; raises Refused WRONG_CHAIN if it is one of another chain."""
        # One attempt for each call: `capdex_publisher.tx` decides what may be sent again.
        async with Rpc([rpc_url], max_attempts=1) as rpc:
            actual = await rpc.chain_id()
            if actual != chain_id:
                raise Refused(
                    f"{rpc.endpoint} speaks for chain {actual}, not {chain_id}",
                    Code.WRONG_CHAIN,
                    why="a transaction signed for one chain must not be sent to another",
                    fix="correct the chain id or the endpoint of this network",
                )
            yield cls(rpc, chain_id, state_dir)

    # ------------------------------------------------------------------------------------- reads

    async def balance(self, address: str) -> int:
        """Return the account's balance in wei."""
        return await self.rpc.call("eth_getBalance", [address, "latest"], quantity)

    async def code(self, address: str, block: Block = "latest") -> bytes:
        """Return the code at an address; empty when there is no contract."""
        return await self.rpc.call("eth_getCode", [address, _tag(block)], unhex)

    async def head(self) -> int:
        """Return the number of the newest block."""
        return await self.rpc.call("eth_blockNumber", (), quantity)

    async def block(self, block: Block, *, transactions: bool = False) -> dict[str, Any] | None:
        """Return a block as the endpoint gives it, or None if it has none."""
        return await self.rpc.call(
            "eth_getBlockByNumber", [_tag(block), transactions], _object_or_none
        )

    async def block_number_of(self, block: Block, field: str) -> int:
        """Return a number that a block's header has: its `timestamp` or `gasLimit`, for example."""
        parameters = [_tag(block), False]
        return await self.rpc.call(
            "eth_getBlockByNumber", parameters, lambda header: quantity(_get(header, field))
        )

    async def nonce(self, address: str, block: Literal["latest", "pending"]) -> int:
        """Return the account's next nonce: after what is mined, or after what is pending too."""
        return await self.rpc.call("eth_getTransactionCount", [address, block], quantity)

    async def fees(self) -> Fees:
        """Return the base fee of the next block and a usual tip."""
        base, reward = await self.rpc.call("eth_feeHistory", ["0x1", "latest", [50]], _read_fees)
        try:
            tip = await self.rpc.call("eth_maxPriorityFeePerGas", (), quantity)
        except RpcError as error:
            if not error.is_refusal:
                raise
            tip = max(reward, LEAST_TIP_WEI)  # not every endpoint has this method
        with suppress(Unavailable):  # some nodes know better than the formula, others have none
            base = max(base, await self.block_number_of("pending", "baseFeePerGas"))
        return Fees(base, tip)

    async def knows(self, *hashes: str) -> bool:
        """Return True if the chain has one of these transactions, mined or pending."""
        for tx_hash in hashes:
            if await self._transaction(tx_hash) is not None:
                return True
        return False

    async def receipt(self, *hashes: str) -> tuple[Mined, bool] | None:
        """Return the first that is mined and True if it succeeded; None if no block holds one."""
        for tx_hash in hashes:
            try:
                read = partial(_read_receipt, tx_hash)
                receipt = await self.rpc.call("eth_getTransactionReceipt", [tx_hash], read)
            except RpcError as error:
                if "indexing is in progress" not in error.why:
                    raise
                receipt = None
            if receipt is not None:
                return receipt
        return None

    async def call(
        self, to: str, data: str, read: Callable[[bytes], T], block: Block = "latest"
    ) -> T:
        """Return what `read` makes of the reply of a contract.

        Raises the errors of `ethereum.revert_reasons` when the contract refuses the call.
        """
        call = {"to": to, "data": data}
        return await self._simulate(
            "eth_call", [call, _tag(block)], lambda reply: read(unhex(reply))
        )

    async def why_reverted(self, mined: Mined) -> CapdexError:
        """Replay a reverted transaction at its block and return the contract's reason."""
        reason: CapdexError = InvalidInput(
            "the transaction failed, and its call is not refused any more",
            Code.REVERTED,
            why="its gas was estimated too low, or another transaction came between",
            fix="run the same command again",
        )
        try:
            sent = await self._transaction(mined.tx_hash)
            if sent is not None:
                call = {"from": sent.get("from"), "data": sent.get("input"), "to": sent.get("to")}
                await self._simulate("eth_call", [call, hex(mined.block_number)], unhex)
        except CapdexError as error:
            reason = error
        return reason.with_details(tx_hash=mined.tx_hash, fee_wei=mined.fee_wei)

    async def _transaction(self, tx_hash: str) -> dict[str, Any] | None:
        return await self.rpc.call("eth_getTransactionByHash", [tx_hash], _object_or_none)

    async def _simulate(self, method: str, params: Sequence[Any], read: Callable[[Any], T]) -> T:
        try:
            return await self.rpc.call(method, params, read)
        except RpcError as error:
            if error.fault is RpcFault.REVERTED:
                raise revert_reasons.explain(error.data, error.why) from None
            raise

    # ------------------------------------------------------------------------------------- money

    async def price(
        self,
        sender: str,
        to: str,
        data: str,
        *,
        immature_gas: int | None = None,
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> Transaction:
        """Estimate and price a transaction that `sender` can pay within the cap.

        The contract refuses a claim whose commitment is not old enough, so that no endpoint can
        estimate it: it is priced by `immature_gas`, else Unavailable is raised. Raises Refused
        EMPTY_ACCOUNT, FEE_OVER_CAP (even the current fee is over it), and why the contract refuses.
        """
        check_account(sender, self.chain_id)
        call = {"from": sender, "to": to, "data": data, "value": "0x0"}
        try:
            estimate = await self._simulate("eth_estimateGas", [call, "latest"], quantity)
            gas = -(-max(1, estimate) * GAS_MARGIN_PERCENT // 100)
        except (InvalidInput, Unavailable) as error:
            if not revert_reasons.is_immature(error):
                raise
            if immature_gas is None:  # the endpoint may be some blocks behind
                said = error.message, Code.TIMEOUT, error.why, error.fix, error.details
                raise Unavailable(*said) from None
            gas = immature_gas
        unpriced = Transaction(self.chain_id, sender, to, data, gas, fee_cap_wei=fee_cap_wei)
        priced = unpriced.priced(await self.fees())
        await self.check_balance(sender, priced.max_fee_wei)
        return priced

    async def check_balance(self, sender: str, needed_wei: int, what: str = "the fee") -> None:
        """Raise Refused EMPTY_ACCOUNT when the sender has less than `needed_wei`."""
        balance = await self.balance(sender)
        if balance < needed_wei:
            raise Refused(
                f"{sender} cannot pay {what}",
                Code.EMPTY_ACCOUNT,
                why=f"it holds {ether(balance)}, and up to {ether(needed_wei)} is needed "
                f"on chain {self.chain_id}",
                fix=f"send at least {ether(needed_wei - balance)} to {sender}",
                details={
                    "account": sender,
                    "balance_wei": str(balance),
                    "needed_wei": str(needed_wei),
                },
            )

    # ------------------------------------------------------------------------------------ writes

    async def send_raw(self, raw: bytes) -> RpcError | None:
        """Hand a signed transaction to the endpoint; return its refusal, None if it has it.

        Raises Unavailable when the endpoint does not answer: it may have the transaction or not.
        """
        try:
            await self.rpc.call("eth_sendRawTransaction", [to_hex(raw)], unhex)
        except RpcError as error:
            if not error.is_refusal:
                raise
            words = "already ?(known|imported)|known transaction"
            return None if re.search(words, error.why, re.IGNORECASE) else error
        return None


def _tag(block: Block) -> str:
    return hex(block) if isinstance(block, int) else block


def _get(value: object, field: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError("the result is not an object")
    return value.get(field)


def _object_or_none(value: object) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise ValueError("the result is not an object")
    return value


def _read_fees(value: object) -> tuple[int, int]:
    """Read the next base fee and the median tip of the newest block from a fee history."""
    bases, rewards = _get(value, "baseFeePerGas"), _get(value, "reward")
    try:
        return quantity(bases[-1]), quantity(rewards[-1][0]) if rewards else 0
    except (IndexError, KeyError, TypeError):
        raise ValueError("the fee history is incomplete") from None


def _read_receipt(tx_hash: str, value: Any) -> tuple[Mined, bool] | None:
    if value is None or not _get(value, "blockHash"):  # some nodes answer for the pool too
        return None
    gas_used, logs = quantity(value.get("gasUsed")), value.get("logs")
    below = quantity(value.get("l1Fee") or "0x0")  # what an OP Stack rollup takes besides the gas
    if not isinstance(logs, list):
        raise ValueError("a receipt has no logs")
    if to_hex(unhex(value.get("transactionHash"))) != tx_hash:
        raise ValueError("a receipt is of another transaction")
    mined = Mined(
        tx_hash=tx_hash,
        block_number=quantity(value.get("blockNumber")),
        block_hash=to_hex(unhex(value["blockHash"])),
        gas_used=gas_used,
        fee_wei=gas_used * quantity(value.get("effectiveGasPrice")) + below,
        logs=tuple(read_columns(logs)),
    )
    return mined, quantity(value.get("status")) == 1
