"""Waiting until a transaction is in a block, and mending what happens to it on the way.

    what is seen                                      what is done
    ──────────────────────────────────────────────    ─────────────────────────────────────────────
    waits, and its fee is too low or it took long     replaced: same nonce, fees an eighth higher
    nobody knows it, its nonce is free  (dropped)     the event is looked for, then it is sent again
    its nonce is used, by none of ours  (replaced)    the event is looked for, then a new nonce
    nobody knows it, its nonce waits  (somebody's)    waited for
    was in a block, and is no longer  (reorganised)   one of the above

Whichever of its hashes is mined, it is done. Without a signer nothing is mended, only told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from capdex.errors import Code, InvalidInput, Refused, Unavailable
from publisher.ethereum.transaction import Mined, Sent, ether
from publisher.keys.signer import Signer
from publisher.tx import submit as sending
from publisher.tx.submit import OnSigned

if TYPE_CHECKING:
    from publisher.ethereum.client import Chain

RECEIPT_WAIT_S: Final = 180.0  # fifteen slots of the slowest common chain
MIN_POLL_S: Final = 0.05
MAX_POLL_S: Final = 2.0

Done = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait before something is mended, in seconds."""

    look_s: float = 4.0  # between two looks at the pool: a third of the slowest common slot
    underpriced_s: float = 15.0  # one block may be full
    stuck_s: float = 45.0  # nearly four slots: a good tip is mined in one or two
    lost_s: float = 15.0  # endpoints behind a balancer learn of a transaction at different times


PATIENCE: Final = Patience()


class _State(Enum):
    WAITS = "waits"
    DROPPED = "dropped"
    REPLACED = "replaced"
    ANOTHER_WAITS = "another waits"


async def wait(
    chain: Chain,
    sent: Sent,
    *,
    timeout_s: float = RECEIPT_WAIT_S,
    signer: Signer | None = None,
    on_signed: OnSigned | None = None,
    done: Done | None = None,
) -> Mined:
    """The block that holds it, `chain.confirmations` deep.

    `done` tells whether the errand is done although this transaction is in no block: it is asked
    before anything is sent again. An endpoint that fails in between is asked again.

    Raises TIMEOUT; InvalidInput ALREADY_DONE when `done` says so; why the contract refused; and,
    where it has to be sent anew, what `Chain.price` and `send` raise.
    """
    journey = _Journey(chain, sent, signer, on_signed, done)
    try:
        async with asyncio.timeout(timeout_s):
            mined, succeeded = await journey.end()
    except TimeoutError:
        raise journey.late(timeout_s) from None
    if not succeeded:
        raise await chain.why_reverted(mined)
    return mined


class _Journey:
    """A transaction on its way: its newest hash, and what was seen of it."""

    def __init__(
        self,
        chain: Chain,
        sent: Sent,
        signer: Signer | None,
        on_signed: OnSigned | None,
        done: Done | None,
    ) -> None:
        self.chain = chain
        self.sent = sent
        self.signer = signer
        self.on_signed = on_signed
        self.done = done
        self.why = "the chain is slow, or the fee is too low for now"
        self.mined: Mined | None = None  # seen in a block that is not deep enough yet
        self._looked_at = sent.signed_at  # what an earlier run sent is looked at at once
        self._lost_since: float | None = None

    async def end(self) -> tuple[Mined, bool]:
        """The mined transaction, and whether it succeeded."""
        pause_s = MIN_POLL_S
        while True:
            try:
                found = await self._receipt()
                self.mined = None if found is None else found[0]
                if found is not None and await self._is_deep(found[0]):
                    return found
                if found is None and time.time() - self._looked_at >= self.chain.patience.look_s:
                    self._looked_at = time.time()
                    await self._mend()
            except Unavailable as error:
                self.why = f"{error.message}: {error.why}"
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, MAX_POLL_S)

    def late(self, timeout_s: float) -> Unavailable:
        """The error for a transaction that took too long."""
        tx_hash = self.sent.tx_hash
        what = (
            f"transaction {tx_hash} was sent, but in {timeout_s:g} s no block was seen to hold it"
        )
        if self.mined is not None:
            tx_hash = self.mined.tx_hash
            what = (
                f"transaction {tx_hash} is in block {self.mined.block_number}, but in "
                f"{timeout_s:g} s it was not seen {self.chain.confirmations} blocks deep"
            )
        return Unavailable(
            what,
            Code.TIMEOUT,
            why=self.why,
            fix="run the same command again: it waits for this transaction, and pays nothing",
            details={"tx_hash": tx_hash},
        )

    async def _receipt(self) -> tuple[Mined, bool] | None:
        for tx_hash in self.sent.hashes:
            found = await self.chain.receipt(tx_hash)
            if found is not None:
                return found
        return None

    async def _is_deep(self, mined: Mined) -> bool:
        wanted = self.chain.confirmations
        if wanted <= 1:
            return True
        if await self.chain.head() < mined.block_number + wanted - 1:
            return False
        # The head may be another branch's: what counts is what holds the transaction now.
        again = await self.chain.receipt(mined.tx_hash)
        return again is not None and again[0].block_hash == mined.block_hash

    async def _state(self, sender: str) -> _State:
        if await self.chain.nonce(sender, "latest") > self.sent.nonce:
            return _State.REPLACED
        for tx_hash in self.sent.hashes:
            if await self.chain.knows(tx_hash):
                return _State.WAITS
        if await self.chain.nonce(sender, "pending") > self.sent.nonce:
            return _State.ANOTHER_WAITS
        return _State.DROPPED

    async def _mend(self) -> None:
        if self.sent.transaction is None:
            return
        sender, nonce = self.sent.transaction.sender, self.sent.nonce
        state = await self._state(sender)
        if state in (_State.DROPPED, _State.REPLACED):
            if await self._receipt() is not None:
                return  # the block that holds it came while we asked
            now = time.monotonic()
            self._lost_since = self._lost_since or now
            self.why = f"the chain does not know it any more: it was {state.value}"
            if now - self._lost_since >= self.chain.patience.lost_s:
                await self._send_again()
            return
        self._lost_since = None
        if state is _State.ANOTHER_WAITS:
            self.why = f"another transaction of {sender} waits under its nonce, {nonce}"
        elif await self.chain.nonce(sender, "latest") < nonce:
            self.why = f"an earlier transaction of {sender} waits before it"
        else:
            await self._replace_if_stuck()

    async def _send_again(self) -> None:
        """What was dropped or replaced, under the account's next nonce, at the price of now."""
        lost = self.sent.transaction
        if self.done is not None and await self.done():
            raise InvalidInput(
                "there was nothing left to do",
                Code.ALREADY_DONE,
                why=f"another transaction did what {self.sent.tx_hash} was for",
            )
        if lost is None or self.signer is None:
            return
        priced = await self.chain.price(
            lost.sender, lost.to, lost.data, fee_cap_wei=lost.fee_cap_wei
        )
        self.sent = await sending.send(
            self.chain, self.signer, priced, on_signed=self.on_signed, earlier=self.sent.hashes
        )
        self._lost_since = None

    async def _replace_if_stuck(self) -> None:
        transaction, patience = self.sent.transaction, self.chain.patience
        if transaction is None or self.signer is None:
            return
        fees = await self.chain.fees()
        underpriced = transaction.max_fee_per_gas < fees.base
        age_s = time.time() - self.sent.signed_at
        if age_s < (patience.underpriced_s if underpriced else patience.stuck_s):
            return
        try:
            again = await sending.replace(
                self.chain, self.signer, self.sent, on_signed=self.on_signed
            )
        except Refused as error:
            # What was sent stays sent: it is waited for, and nobody is asked a second time.
            self.signer = None
            self.why = f"it was not replaced: {error.message}"
            return
        if again is not None:
            self.sent = again
        else:
            cap = ether(transaction.fee_cap_wei)
            self.why = f"its fee is too low for now, and an eighth more is over the cap of {cap}"
