"""Wait until a transaction is mined, and repair what happens to it until then.

    observed                                          action
    ──────────────────────────────────────────────    ─────────────────────────────────────────────
    pending, its fee too low or pending for long      replace it: same nonce, fees an eighth higher
    unknown, its nonce is free            (dropped)   look for the result, then send it again
    its nonce was used by another one    (replaced)   look for the result, then use a new nonce
    unknown, its nonce is pending         (foreign)   wait
    was in a block, now in none       (reorganised)   one of the above

Whichever of its hashes is mined counts. Without a signer nothing is repaired, only reported.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from capdex.errors import Code, InvalidInput, Refused, Unavailable
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.ethereum.transaction import Mined, Reverted, Sent, Shallow, Transaction, ether
from capdex_publisher.keys.signer import Signer
from capdex_publisher.tx.submit import OnSigned, replace, submit

RECEIPT_WAIT_S: Final = 180.0  # fifteen slots of the slowest common chain
MIN_POLL_S: Final = 0.05
MAX_POLL_S: Final = 2.0

IsDone = Callable[[], Awaitable[bool]]
OnMined = Callable[[Shallow | Reverted], None]


async def confirm(
    chain: Chain,
    sent: Sent | str,
    *,
    timeout_s: float = RECEIPT_WAIT_S,
    signer: Signer | None = None,
    on_signed: OnSigned = lambda _: None,
    is_done: IsDone | None = None,
    on_step: OnMined = lambda _: None,
) -> Mined:
    """Return the transaction (or the one of a hash) once `chain.confirmations` blocks hold it.

    Before anything is sent again, `is_done` is called: it returns True if the purpose was achieved
    in another way. `on_step` hears of a transaction that is mined and refused, whose fee was paid,
    and of one that is mined but does not count yet. While the endpoint fails, the wait goes on.

    Raises Unavailable TIMEOUT; InvalidInput ALREADY_DONE when `is_done` returns True; why the
    contract refused; and, where it has to be sent again, what `Chain.price` and `submit` raise.
    """
    if isinstance(sent, str):
        sent = Sent(sent, nonce=-1)
    # What an earlier run sent is looked at at once.
    confirmation = _Confirmation(chain, sent, signer, on_signed, is_done, on_step, sent.signed_at)
    try:
        async with asyncio.timeout(timeout_s):
            mined, succeeded = await confirmation.wait()
    except TimeoutError:
        raise confirmation.timed_out(timeout_s) from None
    if not succeeded:
        on_step(Reverted(mined.tx_hash, mined.fee_wei))
        raise await chain.why_reverted(mined)
    return mined


@dataclass(slots=True)
class _Confirmation:
    """The wait for one transaction: its newest hash, and what was observed of it."""

    chain: Chain
    sent: Sent
    signer: Signer | None
    on_signed: OnSigned
    is_done: IsDone | None
    on_step: OnMined
    looked_at: float  # at the pool, in seconds since the epoch
    lost_since: float | None = None
    mined: Mined | None = None  # seen in a block that is not deep enough yet
    why: str = "the chain is slow, or the fee is too low for now"

    async def wait(self) -> tuple[Mined, bool]:
        """Return the mined transaction, and True if it succeeded."""
        pause_s = MIN_POLL_S
        while True:
            try:
                receipt = await self.chain.receipt(*self.sent.hashes)
                self.mined = None if receipt is None else receipt[0]
                if receipt is not None and await self._is_deep(receipt[0]):
                    return receipt
                if receipt is None and time.time() - self.looked_at >= self.chain.patience.look_s:
                    self.looked_at = time.time()
                    await self._repair()
            except Unavailable as error:
                self.why = f"{error.message}: {error.why}"
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, MAX_POLL_S)

    def timed_out(self, timeout_s: float) -> Unavailable:
        """Return the error for a transaction that took too long."""
        tx_hash = self.sent.tx_hash
        fix = "run the same command again: it goes on with this transaction, and pays nothing twice"
        what = (
            f"transaction {tx_hash} was sent, but in {timeout_s:g} s no block was seen to hold it"
        )
        if self.mined is not None:
            tx_hash = self.mined.tx_hash
            what = (
                f"transaction {tx_hash} is in block {self.mined.block_number}, but in "
                f"{timeout_s:g} s it was not seen {self.chain.confirmations} blocks deep"
            )
            fix += "; where blocks are made for transactions alone, set --confirmations 1"
        return Unavailable(what, Code.TIMEOUT, why=self.why, fix=fix, details={"tx_hash": tx_hash})

    async def _is_deep(self, mined: Mined) -> bool:
        wanted = self.chain.confirmations
        if wanted <= 1:
            return True
        missing = mined.block_number + wanted - 1 - await self.chain.head()
        if missing > 0:
            self.why = f"it needs {missing} more block{'s' * (missing > 1)}"
            self.on_step(Shallow(mined.block_number, missing))
            return False
        # The head may be another branch's: what counts is what holds the transaction now.
        again = await self.chain.receipt(mined.tx_hash)
        return again is not None and again[0].block_hash == mined.block_hash

    async def _repair(self) -> None:
        """Act on what is observed now, as the table above says."""
        transaction = self.sent.transaction
        if transaction is None:
            return
        sender, nonce = transaction.sender, self.sent.nonce
        mined = await self.chain.nonce(sender, "latest")
        if mined <= nonce and await self.chain.knows(*self.sent.hashes):
            self.lost_since = None
            if mined < nonce:
                self.why = f"an earlier transaction of {sender} waits before it"
            else:
                await self._replace_if_stuck(transaction)
        elif mined <= nonce < await self.chain.nonce(sender, "pending"):
            self.lost_since = None
            self.why = f"another transaction of {sender} waits under its nonce, {nonce}"
        elif await self.chain.receipt(*self.sent.hashes) is None:  # else mined between two calls
            now = time.monotonic()
            self.lost_since = self.lost_since or now
            lost = "replaced" if mined > nonce else "dropped"
            self.why = f"the chain does not know it any more: it was {lost}"
            if now - self.lost_since >= self.chain.patience.lost_s:
                await self._send_again(transaction)

    async def _send_again(self, lost: Transaction) -> None:
        """Send it under the account's next nonce, at the current price."""
        if self.is_done is not None and await self.is_done():
            raise InvalidInput(
                "there was nothing left to do",
                Code.ALREADY_DONE,
                why=f"another transaction did what {self.sent.tx_hash} was for",
            )
        if self.signer is None:
            return
        priced = await self.chain.price(
            lost.sender, lost.to, lost.data, fee_cap_wei=lost.fee_cap_wei
        )
        await submit(
            self.chain, self.signer, priced, on_signed=self._signed, earlier=self.sent.hashes
        )
        self.lost_since = None

    def _signed(self, sent: Sent) -> None:
        """Wait for what was signed: it may be sent, though the endpoint's answer is lost."""
        self.sent = sent
        self.on_signed(sent)

    async def _replace_if_stuck(self, transaction: Transaction) -> None:
        if self.signer is None:
            return
        fees, patience = await self.chain.fees(), self.chain.patience
        underpriced = transaction.max_fee_per_gas < fees.base
        age_s = time.time() - self.sent.signed_at
        if age_s < (patience.underpriced_s if underpriced else patience.stuck_s):
            return
        try:
            again = await replace(self.chain, self.signer, self.sent, on_signed=self._signed)
        except Refused as error:
            # What was sent stays sent; the signer is not asked again.
            self.signer = None
            self.why = f"it was not replaced: {error.message}"
            return
        if again is None:
            cap = ether(transaction.fee_cap_wei)
            self.why = f"its fee is too low for now, and an eighth more is over the cap of {cap}"
