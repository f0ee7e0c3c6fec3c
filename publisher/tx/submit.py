"""Signing and handing over a transaction: each nonce used once, none left out.

A nonce is taken from the chain under a lock that all of a user's processes share, signed, and sent
before the lock is let go. Whoever is killed in between has used none: the next one takes it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import AsyncFileLock, Timeout

from capdex.errors import CapdexError, Code, Unavailable, UsageError
from publisher.ethereum.transaction import Sent, Transaction
from publisher.files import write_atomically
from publisher.keys.keystore import check_account
from publisher.keys.signer import Signer

if TYPE_CHECKING:
    from publisher.ethereum.client import Chain

LOCK_WAIT_S: Final = 60.0  # sending takes a second; whoever holds the lock longer is stuck
TRIES: Final = 4  # endpoints behind a balancer may know an older nonce for a moment

OnSigned = Callable[[Sent], None]


async def send(
    chain: Chain,
    signer: Signer,
    transaction: Transaction,
    *,
    on_signed: OnSigned | None = None,
    earlier: tuple[str, ...] = (),
) -> Sent:
    """Sign and send under the account's next nonce.

    `on_signed` is told the hash before anything leaves, so that a caller killed right after can
    find the transaction again; `earlier` are the hashes of lost attempts at the same errand.
    Raises Refused (EMPTY_ACCOUNT, FEE_OVER_CAP, SIGNER_REFUSED) and Unavailable.
    """
    async with _turn(chain, signer, transaction) as last:
        for attempt in range(TRIES):
            nonce = await last.next_nonce()
            sent, words = await _hand_over(chain, signer, transaction, nonce, earlier, on_signed)
            if not words:
                last.write(sent)
                return sent
            if attempt == TRIES - 1:
                break
            if _is_below_base_fee(words):  # it has risen since the price was made
                priced = transaction.priced(await chain.fees())
                if priced is None:
                    break
                transaction = priced
            elif not (_is_used(words) or _is_underpriced(words)):
                break
            else:
                await asyncio.sleep(0.25 * 2**attempt)
    raise await _not_sent(chain, transaction, words)


async def replace(
    chain: Chain,
    signer: Signer,
    sent: Sent,
    *,
    on_signed: OnSigned | None = None,
) -> Sent | None:
    """Send it again under its nonce, both fees at least an eighth higher; None where that is vain.

    Vain: it has been mined meanwhile, or more would be over the cap or than the account holds.
    Raises what `send` raises.
    """
    transaction = sent.transaction
    if transaction is None:
        return None
    async with _turn(chain, signer, transaction) as last:
        fees, funds = await chain.fees(), await chain.balance(signer.address)
        for _ in range(TRIES):
            raised = transaction.raised(fees, funds_wei=funds)
            if raised is None or await chain.nonce(signer.address, "latest") != sent.nonce:
                return None
            again, words = await _hand_over(
                chain, signer, raised, sent.nonce, sent.hashes, on_signed
            )
            if not words:
                last.update(again)
                return again
            if not _is_underpriced(words):
                break
            transaction = raised  # this endpoint asks for more than an eighth
    if _is_used(words):
        return None
    raise await _not_sent(chain, transaction, words)


async def _hand_over(
    chain: Chain,
    signer: Signer,
    transaction: Transaction,
    nonce: int,
    earlier: tuple[str, ...],
    on_signed: OnSigned | None,
) -> tuple[Sent, str]:
    """Sign, tell, send; the endpoint's words if it refused."""
    signed = await signer.sign_transaction(transaction.fields(nonce))
    sent = Sent(signed.tx_hash, nonce, transaction, time.time(), earlier)
    if on_signed is not None:
        on_signed(sent)
    try:
        return sent, await chain.submit(signed.raw)
    except Unavailable as error:
        error.details = (error.details or {}) | {"tx_hash": sent.tx_hash}
        error.why += f"; transaction {sent.tx_hash} may or may not have been sent"
        raise


@asynccontextmanager
async def _turn(chain: Chain, signer: Signer, transaction: Transaction) -> AsyncIterator[_Last]:
    """Hold the account's lock; raises Unavailable TIMEOUT when another process keeps it."""
    address = signer.address
    check_account(address, chain.chain_id)
    if (address, chain.chain_id) != (transaction.sender, transaction.chain_id):
        raise UsageError(
            f"the key is that of {address}, for chain {chain.chain_id}",
            why=f"the transaction is {transaction.sender}'s, for chain {transaction.chain_id}",
            fix="use the key of the account that the plan names",
        )
    directory = chain.state_dir / "locks"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"{chain.chain_id}-{address.lower()}.lock"
    try:
        async with AsyncFileLock(path, timeout=LOCK_WAIT_S, poll_interval=0.02):
            yield _Last(chain, address, path.with_suffix(".json"))
    except Timeout:
        raise Unavailable(
            f"another process has been sending from {address} for {LOCK_WAIT_S:.0f} s",
            Code.TIMEOUT,
            why=f"it holds {path}",
            fix="let it finish, then run the same command again",
        ) from None


class _Last:
    """What the account sent last, for endpoints whose pending nonce leaves out what waits.

    Without it two errands would take one nonce there, and the dearer one replace the other.
    """

    def __init__(self, chain: Chain, address: str, path: Path) -> None:
        self._chain = chain
        self._address = address
        self._path = path

    async def next_nonce(self) -> int:
        """The nonce after everything that the chain knows of."""
        pending = await self._chain.nonce(self._address, "pending")
        nonce, tx_hash = self._read()
        known = nonce >= pending and await self._chain.knows(tx_hash)
        return nonce + 1 if known else pending

    def write(self, sent: Sent) -> None:
        """Remember what was just sent."""
        entry = {"nonce": sent.nonce, "tx_hash": sent.tx_hash}
        write_atomically(self._path, json.dumps(entry).encode("ascii"))

    def update(self, sent: Sent) -> None:
        """Remember a replacement, if it is of what was sent last."""
        if self._read()[0] == sent.nonce:
            self.write(sent)

    def _read(self) -> tuple[int, str]:
        try:
            entry = json.loads(self._path.read_text("ascii"))
            nonce, tx_hash = int(entry["nonce"]), str(entry["tx_hash"])
            if len(bytes.fromhex(tx_hash.removeprefix("0x"))) != 32:
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError):
            return -1, ""
        return nonce, tx_hash


async def _not_sent(chain: Chain, transaction: Transaction, words: str) -> CapdexError:
    if "insufficient funds" in words:
        try:
            await chain.check_balance(transaction)
        except CapdexError as error:
            return error
    return chain.refusal(words)


def _is_used(words: str) -> bool:
    return "nonce too low" in words


def _is_underpriced(words: str) -> bool:
    return "underpriced" in words


def _is_below_base_fee(words: str) -> bool:
    return "less than block base fee" in words or "base fee exceeds" in words
