"""One chain through one endpoint: what a transaction costs, sending it once, waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

from eth_abi.exceptions import DecodingError
from filelock import AsyncFileLock, Timeout
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
from publisher import reverts
from publisher.endpoint import Endpoint
from publisher.keys import check_account
from publisher.signers import Signer
from publisher.transaction import DEFAULT_FEE_CAP_WEI, Mined, Sent, Transaction, ether

GAS_MARGIN_PERCENT: Final = 120  # an estimate is of one state; the next block may have another
LOCK_WAIT_S: Final = 60.0  # sending takes a second; whoever holds the lock longer is stuck
SEND_TRIES: Final = 4  # endpoints behind a balancer may know an older nonce for a moment
RECEIPT_WAIT_S: Final = 180.0  # fifteen slots of the slowest common chain
MAX_POLL_S: Final = 2.0


class Chain:
    """One chain through one endpoint. Open it with `Chain.connect`.

    Every method raises Unavailable when the endpoint does not answer as it should, and the errors
    of `publisher.reverts` when the contract refuses.
    """

    def __init__(self, endpoint: Endpoint, chain_id: int, state_dir: Path) -> None:
        self.endpoint = endpoint
        self.chain_id = chain_id
        self.state_dir = state_dir
        self.web3: AsyncWeb3[Endpoint] = AsyncWeb3(endpoint, middleware=[])

    @classmethod
    @asynccontextmanager
    async def connect(cls, rpc_url: str, chain_id: int, *, state_dir: Path) -> AsyncIterator[Chain]:
        """Open an endpoint; raises Refused WRONG_CHAIN if it speaks for another chain.

        `state_dir` holds the nonce locks that all of a user's processes share.
        """
        endpoint = Endpoint(rpc_url)
        try:
            chain = cls(endpoint, chain_id, state_dir)
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
            raise self._refusal(_rpc_words(error)) from None
        except (
            *(Web3Exception, DecodingError, ArithmeticError),
            *(AttributeError, LookupError, TypeError, ValueError),
        ) as error:
            # The reply was JSON-RPC, but not what Ethereum's API says it should be.
            raise self._refusal(f"its reply makes no sense ({type(error).__name__})") from None

    async def balance(self, address: str) -> int:
        """The account's balance in wei."""
        with self.faults():
            return int(await self.web3.eth.get_balance(_address(address)))

    async def code(self, address: str) -> bytes:
        """The code at an address; empty when there is no contract."""
        with self.faults():
            return bytes(await self.web3.eth.get_code(_address(address)))

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

        `gas` is what it may take, where that cannot be estimated yet. Raises Refused
        EMPTY_ACCOUNT, or FEE_OVER_CAP when even the fee of now is over the cap.
        """
        check_account(sender, self.chain_id)
        call: TxParams = {"from": _address(sender), "data": cast("Any", data), "value": _wei(0)}
        if to is not None:
            call["to"] = _address(to)
        with self.faults():
            estimate = gas or max(1, int(await self.web3.eth.estimate_gas(call)))
            history = await self.web3.eth.fee_history(1, "latest", [50.0])
            base = int(history["baseFeePerGas"][-1])  # that of the block to come
            tip = int(await self.web3.eth.max_priority_fee)
        gas = gas or -(-estimate * GAS_MARGIN_PERCENT // 100)
        now = base + tip
        if gas * now > fee_cap_wei:
            raise Refused(
                f"the fee would be {ether(gas * now)}, over the cap of {ether(fee_cap_wei)}",
                Code.FEE_OVER_CAP,
                why=f"{gas} gas at {now / 10**9:.3g} gwei",
                fix="wait for a quieter hour, or raise the cap with --fee-cap",
            )
        # Room for the base fee to double before the transaction is mined, but never past the cap.
        fee_per_gas = min(2 * base + tip, fee_cap_wei // gas)
        priced = Transaction(
            chain_id=self.chain_id,
            sender=sender,
            to=to,
            data=data,
            gas=gas,
            max_fee_per_gas=fee_per_gas,
            max_priority_fee_per_gas=tip,
            expected_fee_wei=estimate * now,
            fee_cap_wei=fee_cap_wei,
        )
        await self._check_balance(priced)
        return priced

    async def send(
        self,
        signer: Signer,
        transaction: Transaction,
        *,
        on_signed: Callable[[Sent], None] | None = None,
    ) -> Sent:
        """Sign and send, one process at a time for each account, so that no nonce is used twice.

        `on_signed` is told the hash before anything leaves, so that a caller killed right after
        can find the transaction again.
        """
        check_account(signer.address, self.chain_id)
        async with self._nonce_lock(signer.address):
            for attempt in range(SEND_TRIES):
                with self.faults():
                    nonce = int(
                        await self.web3.eth.get_transaction_count(
                            _address(signer.address), "pending"
                        )
                    )
                signed = await signer.sign_transaction(transaction.fields(nonce))
                sent = Sent(signed.tx_hash, nonce)
                if on_signed is not None:
                    on_signed(sent)
                try:
                    await self.web3.eth.send_raw_transaction(signed.raw)
                except Web3RPCError as error:
                    words = _rpc_words(error)
                    if "already known" in words or "already imported" in words:
                        return sent
                    if not _is_stale_nonce(words) or attempt == SEND_TRIES - 1:
                        raise await self._not_sent(transaction, words) from None
                    await asyncio.sleep(0.25 * 2**attempt)
                except Unavailable as error:
                    error.details = {"tx_hash": sent.tx_hash}
                    error.why += f"; transaction {sent.tx_hash} may or may not have been sent"
                    raise
                else:
                    return sent
        raise AssertionError("the last attempt returns or raises")

    async def knows(self, tx_hash: str) -> bool:
        """Whether the chain has this transaction, mined or waiting."""
        with self.faults():
            try:
                return bool(await self.web3.eth.get_transaction(HexBytes(tx_hash)))
            except TransactionNotFound:
                return False

    async def wait(
        self,
        sent: Sent | str,
        *,
        timeout_s: float = RECEIPT_WAIT_S,
        signer: Signer | None = None,
        on_signed: Callable[[Sent], None] | None = None,
        done: Callable[[], Awaitable[bool]] | None = None,
    ) -> Mined:
        """Wait until a transaction is in a block; raises TIMEOUT, or why the contract refused.

        An endpoint that fails in between is asked again: what was sent stays sent.
        """
        tx_hash = sent.tx_hash if isinstance(sent, Sent) else sent
        why = ["the chain is slow, or the fee is too low for now"]
        try:
            async with asyncio.timeout(timeout_s):
                mined, succeeded = await self._receipt(tx_hash, why)
        except TimeoutError:
            raise Unavailable(
                f"transaction {tx_hash} was sent, but in {timeout_s:g} s no block was seen to "
                "hold it",
                Code.TIMEOUT,
                why=why[-1],
                fix="run the same command again: it waits for this transaction, and pays nothing",
                details={"tx_hash": tx_hash},
            ) from None
        if not succeeded:
            raise await self._why_reverted(mined)
        return mined

    async def _receipt(self, tx_hash: str, why: list[str]) -> tuple[Mined, bool]:
        """The mined transaction and whether it succeeded; what goes wrong meanwhile to `why`."""
        pause_s = 0.05
        while True:
            try:
                with self.faults(), suppress(TransactionNotFound, TransactionIndexingInProgress):
                    receipt = await self.web3.eth.get_transaction_receipt(HexBytes(tx_hash))
                    if receipt["blockHash"] is not None:
                        return _mined(receipt), receipt["status"] == 1
            except Unavailable as error:
                why.append(f"{error.message}: {error.why}")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, MAX_POLL_S)

    async def _why_reverted(self, mined: Mined) -> CapdexError:
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

    async def _check_balance(self, transaction: Transaction) -> None:
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

    async def _not_sent(self, transaction: Transaction, words: str) -> CapdexError:
        if "insufficient funds" in words:
            try:
                await self._check_balance(transaction)
            except CapdexError as error:
                return error
        return self._refusal(words)

    @asynccontextmanager
    async def _nonce_lock(self, address: str) -> AsyncIterator[None]:
        directory = self.state_dir / "locks"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / f"{self.chain_id}-{address.lower()}.lock"
        try:
            async with AsyncFileLock(path, timeout=LOCK_WAIT_S, poll_interval=0.02):
                yield
        except Timeout:
            raise Unavailable(
                f"another process has been sending from {address} for {LOCK_WAIT_S:.0f} s",
                Code.TIMEOUT,
                why=f"it holds {path}",
                fix="let it finish, then run the same command again",
            ) from None

    def _refusal(self, words: str) -> Unavailable:
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


def _is_stale_nonce(words: str) -> bool:
    return "nonce too low" in words or "underpriced" in words


def _rpc_words(error: Web3RPCError) -> str:
    reply: Any = error.rpc_response or {}
    said = reply.get("error", {}) if isinstance(reply, dict) else {}
    return _printable(said.get("message") if isinstance(said, dict) else None)


def _printable(words: object) -> str:
    # An endpoint's own words end up on a terminal.
    return "".join(c if c.isprintable() else " " for c in str(words or "")[:300])


def _hex(value: bytes) -> str:
    return "0x" + bytes(value).hex()


def _address(text: str) -> Any:
    return text


def _wei(amount: int) -> Any:
    return amount
