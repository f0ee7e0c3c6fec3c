"""One chain through one endpoint: what it says, and what a transaction costs there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, cast

from eth_abi.exceptions import DecodingError
from hexbytes import HexBytes
from web3 import AsyncWeb3
from web3.exceptions import (
    ContractLogicError,
    TransactionIndexingInProgress,
    TransactionNotFound,
    Web3Exception,
    Web3RPCError,
)
from web3.types import TxParams, TxReceipt

from capdex.errors import CapdexError, Code, Refused, Unavailable
from publisher.ethereum import revert_reasons as reverts
from publisher.ethereum.provider import Endpoint
from publisher.ethereum.transaction import (
    DEFAULT_FEE_CAP_WEI,
    GAS_MARGIN_PERCENT,
    Fees,
    Mined,
    Sent,
    Transaction,
    ether,
)
from publisher.keys.keystore import DEV_CHAIN_ID, check_account
from publisher.keys.signer import Signer
from publisher.tx import confirm as waiting
from publisher.tx import submit as sending
from publisher.tx.confirm import PATIENCE, RECEIPT_WAIT_S, Patience

USUAL_CONFIRMATIONS: Final = 2  # most reorganisations of public chains are one block deep


class Chain:
    """One chain through one endpoint. Open it with `Chain.connect`.

    Every method raises Unavailable when the endpoint does not answer as it should, and the errors
    of `publisher.ethereum.revert_reasons` when the contract refuses. `confirmations` is how many
    blocks have to
    hold a transaction, its own counted, before it is believed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        chain_id: int,
        state_dir: Path,
        *,
        confirmations: int | None = None,
        patience: Patience = PATIENCE,
    ) -> None:
        self.endpoint = endpoint
        self.chain_id = chain_id
        self.state_dir = state_dir
        usual = 1 if chain_id == DEV_CHAIN_ID else USUAL_CONFIRMATIONS
        self.confirmations = confirmations or usual
        self.patience = patience
        self.web3: AsyncWeb3[Endpoint] = AsyncWeb3(endpoint, middleware=[])

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        rpc_url: str,
        chain_id: int,
        *,
        state_dir: Path,
        confirmations: int | None = None,
        patience: Patience = PATIENCE,
    ) -> AsyncIterator[Chain]:
        """Open an endpoint; raises Refused WRONG_CHAIN if it speaks for another chain.

        `state_dir` holds the nonce locks that all of a user's processes share.
        """
        endpoint = Endpoint(rpc_url)
        try:
            chain = cls(
                endpoint, chain_id, state_dir, confirmations=confirmations, patience=patience
            )
            with chain.faults():
                found = int(await chain.web3.eth.chain_id)
            if found != chain_id:
                raise Refused(
                    f"{endpoint.shown} speaks for chain {found}, not {chain_id}",
                    Code.WRONG_CHAIN,
                    why="a transaction signed for one chain must not be sent to another",
                    fix="correct the chain id or the endpoint of this network",
                )
            yield chain
        finally:
            await endpoint.disconnect()

    @contextmanager
    def faults(self) -> Any:
        """Turn whatever web3 raises inside into errors of ours."""
        try:
            yield
        except CapdexError:
            raise
        except ContractLogicError as error:
            raise reverts.explain(error.data, _printable(error.message)) from None
        except Web3RPCError as error:
            raise self.refusal(_rpc_words(error)) from None
        except (
            *(Web3Exception, DecodingError, ArithmeticError),
            *(AttributeError, LookupError, TypeError, ValueError),
        ) as error:
            # The reply was JSON-RPC, but not what Ethereum's API says it should be.
            raise self.refusal(f"its reply makes no sense ({type(error).__name__})") from None

    # ------------------------------------------------------------------------------------- reads

    async def balance(self, address: str) -> int:
        """The account's balance in wei."""
        with self.faults():
            return int(await self.web3.eth.get_balance(_any(address)))

    async def code(self, address: str) -> bytes:
        """The code at an address; empty when there is no contract."""
        with self.faults():
            return bytes(await self.web3.eth.get_code(_any(address)))

    async def head(self) -> int:
        """The number of the newest block."""
        with self.faults():
            return int(await self.web3.eth.block_number)

    async def nonce(self, address: str, block: Literal["latest", "pending"]) -> int:
        """The account's next nonce: after what is mined, or after what waits in the pool too."""
        with self.faults():
            return int(await self.web3.eth.get_transaction_count(_any(address), block))

    async def fees(self) -> Fees:
        """What gas costs in the block to come."""
        with self.faults():
            history = await self.web3.eth.fee_history(1, "latest", [50.0])
            base = int(history["baseFeePerGas"][-1])
            tip = int(await self.web3.eth.max_priority_fee)
        try:
            # Some nodes know better than the formula what the next block asks for.
            with self.faults():
                pending = await self.web3.eth.get_block("pending")
                base = max(base, int(pending["baseFeePerGas"]))
        except Unavailable:
            pass
        return Fees(base, tip)

    async def knows(self, tx_hash: str) -> bool:
        """Whether the chain has this transaction, mined or waiting."""
        with self.faults():
            try:
                return bool(await self.web3.eth.get_transaction(HexBytes(tx_hash)))
            except TransactionNotFound:
                return False

    async def receipt(self, tx_hash: str) -> tuple[Mined, bool] | None:
        """A mined transaction and whether it succeeded; None while no block holds it."""
        with self.faults():
            try:
                receipt = await self.web3.eth.get_transaction_receipt(HexBytes(tx_hash))
            except (TransactionNotFound, TransactionIndexingInProgress):
                return None
            if not receipt["blockHash"]:  # some nodes answer for the pool too
                return None
            return _mined(receipt), receipt["status"] == 1

    async def why_reverted(self, mined: Mined) -> CapdexError:
        """Replay a reverted transaction at its block, to learn the contract's reason."""
        try:
            with self.faults():
                tx = await self.web3.eth.get_transaction(HexBytes(mined.tx_hash))
                call: TxParams = {"from": tx["from"], "data": tx["input"]}
                if tx.get("to") is not None:
                    call["to"] = tx["to"]
                await self.web3.eth.call(call, mined.block_number)
        except CapdexError as error:
            error.details = (error.details or {}) | {"tx_hash": mined.tx_hash}
            return error
        return reverts.explain(None)

    # ------------------------------------------------------------------------------------- money

    async def price(
        self,
        sender: str,
        to: str | None,
        data: str,
        *,
        gas: int | None = None,
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> Transaction:
        """Estimate and price a transaction that `sender` can pay within the cap.

        `gas`: what to allow where an estimate cannot be made. Raises Refused EMPTY_ACCOUNT, or
        FEE_OVER_CAP when even the fee of now is over the cap.
        """
        check_account(sender, self.chain_id)
        if gas is None:
            call: TxParams = {"from": _any(sender), "data": cast("Any", data), "value": _any(0)}
            if to is not None:
                call["to"] = _any(to)
            with self.faults():
                estimate = max(1, int(await self.web3.eth.estimate_gas(call)))
            gas = -(-estimate * GAS_MARGIN_PERCENT // 100)
        fees = await self.fees()
        unpriced = Transaction(
            chain_id=self.chain_id,
            sender=sender,
            to=to,
            data=data,
            gas=gas,
            max_fee_per_gas=0,
            max_priority_fee_per_gas=0,
            expected_fee_wei=0,
            fee_cap_wei=fee_cap_wei,
        )
        priced = unpriced.priced(fees)
        if priced is None:
            now = sum(fees)
            raise Refused(
                f"the fee would be {ether(gas * now)}, over the cap of {ether(fee_cap_wei)}",
                Code.FEE_OVER_CAP,
                why=f"{gas} gas at {now / 10**9:.3g} gwei",
                fix="wait for a quieter hour, or raise the cap with --fee-cap",
            )
        await self.check_balance(priced)
        return priced

    async def check_balance(self, transaction: Transaction) -> None:
        """Raise Refused EMPTY_ACCOUNT when the sender cannot pay what it may cost at most."""
        balance = await self.balance(transaction.sender)
        if balance < transaction.max_fee_wei:
            raise Refused(
                f"{transaction.sender} cannot pay the fee",
                Code.EMPTY_ACCOUNT,
                why=f"it holds {ether(balance)}, and up to {ether(transaction.max_fee_wei)} "
                f"is needed on chain {self.chain_id}",
                fix=f"send at least {ether(transaction.max_fee_wei - balance)} to "
                f"{transaction.sender}",
                details={
                    "account": transaction.sender,
                    "balance_wei": str(balance),
                    "needed_wei": str(transaction.max_fee_wei),
                },
            )

    # ------------------------------------------------------------------------------------ writes

    async def submit(self, raw: bytes) -> str:
        """Hand over a signed transaction; "" when the endpoint has it, else its words of refusal.

        Raises Unavailable when it does not answer: then it may have it, or not.
        """
        with self.faults():
            try:
                await self.web3.eth.send_raw_transaction(raw)
            except Web3RPCError as error:
                words = _rpc_words(error)
                known = "already known" in words or "already imported" in words
                return "" if known else words or "no reason given"
        return ""

    async def send(
        self,
        signer: Signer,
        transaction: Transaction,
        *,
        on_signed: Callable[[Sent], None] | None = None,
    ) -> Sent:
        """Sign and send; see `publisher.tx.submit`."""
        return await sending.send(self, signer, transaction, on_signed=on_signed)

    async def wait(
        self,
        sent: Sent | str,
        *,
        timeout_s: float = RECEIPT_WAIT_S,
        signer: Signer | None = None,
        on_signed: Callable[[Sent], None] | None = None,
        done: Callable[[], Awaitable[bool]] | None = None,
    ) -> Mined:
        """Wait until a transaction is in a block, mending what goes wrong:
        `publisher.tx.confirm`.
        """
        if isinstance(sent, str):
            sent = Sent(sent, nonce=-1)
        return await waiting.wait(
            self, sent, timeout_s=timeout_s, signer=signer, on_signed=on_signed, done=done
        )

    def refusal(self, words: str) -> Unavailable:
        """The error for an endpoint that answers, but not with what was asked for."""
        return Unavailable(
            f"the RPC endpoint {self.endpoint.shown} refused a call",
            Code.RPC_UNAVAILABLE,
            why=words,
            fix="run the same command again, or use another endpoint (--rpc-url)",
        )


def _mined(receipt: TxReceipt) -> Mined:
    return Mined(
        tx_hash=_hex(receipt["transactionHash"]),
        block_number=int(receipt["blockNumber"]),
        block_hash=_hex(receipt["blockHash"]),
        gas_used=int(receipt["gasUsed"]),
        fee_wei=int(receipt["gasUsed"]) * int(receipt["effectiveGasPrice"]),
        contract_address=receipt.get("contractAddress"),
        logs=tuple(receipt["logs"]),
    )


def _rpc_words(error: Web3RPCError) -> str:
    reply: Any = error.rpc_response or {}
    said = reply.get("error", {}) if isinstance(reply, dict) else {}
    return _printable(said.get("message") if isinstance(said, dict) else None)


def _printable(words: object) -> str:
    # An endpoint's own words end up on a terminal.
    return "".join(c if c.isprintable() else " " for c in str(words or "")[:300])


def _hex(value: bytes) -> str:
    return "0x" + bytes(value).hex()


def _any(value: object) -> Any:
    """web3 has types of its own for addresses and amounts, which are text and integers."""
    return value
