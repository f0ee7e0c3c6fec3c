"""Change what stands on chain by one transaction: plan, confirm, send. Safe to repeat.

    Change ──plan──> ChangePlan ──confirm──> send, wait for the block and the node ──> Changed

The possible changes are in `registry.lifecycle`, `ownership` and `votes`. What happened
before a crash is found again: the change on chain, or a transaction that waits for its block.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from capdex.errors import CapdexError, InvalidInput, Refused
from capdex.uri import check_name
from capdex_publisher.ethereum.contract import Contract, Receipt
from capdex_publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Sent, Transaction
from capdex_publisher.keys.signer import Signer
from capdex_publisher.progress import OnStep, Step, ignore, wait_served
from capdex_publisher.tx.confirm import RECEIPT_WAIT_S, confirm
from capdex_publisher.tx.pending import PendingTransaction, remembering
from capdex_publisher.tx.submit import submit

Stands = Callable[[str], Awaitable[bool]]
Indexed = Callable[[int], Awaitable[bool]]  # True if the node has indexed this block


@dataclass(frozen=True, slots=True)
class RegistryChange:
    """A change that one transaction makes.

    `stands(sender)` reads the chain before any gas is paid: it returns True if nothing has to be
    changed, and raises why `sender` may not change it. `target` distinguishes changes of one
    subject (which recipient, which vote).
    """

    verb: str  # as typed: "yank", "transfer offer"
    subject: str  # the capability URI of a release, or a name
    contract: Contract
    function: str
    stands: Stands
    arguments: Callable[[], Awaitable[tuple[Any, ...]]]
    already: str = ""  # message when nothing has to be changed
    effects: tuple[str, ...] = ()  # shown before the user agrees
    target: str = ""
    typed_back: str = ""  # what the user has to type to agree: the name, where much is given away

    @property
    def summary(self) -> str:
        """The change in a line, as it is typed."""
        return f"{self.verb} {self.subject} {self.target}".rstrip()

    def pending(self, sender: str) -> PendingTransaction:
        """Return the file of its pending transaction; each account has its own."""
        action = self.verb.replace(" ", "-")
        subject = self.subject.rpartition(":")[2].replace("@", "-")
        fingerprint = f"{sender} {self.target}"
        return PendingTransaction(self.contract, action, subject, sender[2:10].lower(), fingerprint)


def name_change(
    contract: Contract, name: str, verb: str, function: str, rest: tuple[Any, ...], stands: Stands,
    **texts: Any,
) -> RegistryChange:  # fmt: skip
    """Return a change by `function(name, *rest)`; `texts` are other fields of `RegistryChange`."""

    async def arguments() -> tuple[Any, ...]:
        return name, *rest

    return RegistryChange(verb, check_name(name), contract, function, stands, arguments, **texts)


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Plan of a change. Exactly one of `already`, `resumes` and `transaction` is set.

    `commit` is sent before a claim, where its name has to be reserved.
    """

    change: RegistryChange
    sender: str
    already: bool = False
    resumes: Sent | None = None
    transaction: Transaction | None = None
    commit: Transaction | None = None

    @property
    def transactions(self) -> tuple[Transaction, ...]:
        """All transactions that would be sent, in their order."""
        return tuple(x for x in (self.commit, self.transaction) if x is not None)


OnChangeStep = Callable[[ChangePlan | Step], None]
Confirm = Callable[[ChangePlan], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Changed:
    """Result of a change. `already`: nothing had to be sent; fees are in wei, hashes 0x hex."""

    already: bool
    tx_hash: str | None = None
    block_number: int | None = None
    gas_used: int | None = None
    fee_wei: int | None = None
    served_after_s: float | None = None


async def make_change(
    change: RegistryChange,
    *,
    signer: Signer,
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    dry_run: bool = False,
    confirm: Confirm | None = None,
    indexed: Indexed | None = None,
    on_step: OnChangeStep = ignore,
) -> Changed:
    """Bring a change about by the account of `signer`; a dry run ends with the plan.

    `on_step` gets the plan first. `confirm` is called with it if there is something to send;
    without it, `fee_cap_wei` alone limits the cost. Raises InvalidInput (NOT_FOUND), Refused
    (NOT_OWNER, EMPTY_ACCOUNT, FEE_OVER_CAP, NO_CONSENT), Unavailable.
    """
    plan = await plan_change(change, sender=signer.address, fee_cap_wei=fee_cap_wei)
    on_step(plan)
    if dry_run or plan.already:
        return Changed(plan.already)
    await agree(plan, confirm)
    return await carry_out_change(plan, signer=signer, indexed=indexed, on_step=on_step)


async def agree(plan: ChangePlan, confirm: Confirm | None) -> None:
    """Raise Refused NO_CONSENT if there is something to send and `confirm` returns False."""
    if plan.transactions and confirm is not None and not await confirm(plan):
        raise Refused("stopped: the plan was not agreed to", fix="nothing was sent")


async def plan_change(
    change: RegistryChange,
    *,
    sender: str,
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    immature_gas: int | None = None,
) -> ChangePlan:
    """Check everything that could refuse a change, the cheapest first, and price it.

    `immature_gas` is that of `Chain.price`. Raises InvalidInput (NOT_FOUND), Refused (NOT_OWNER,
    EMPTY_ACCOUNT, FEE_OVER_CAP), Unavailable.
    """
    pending = change.pending(sender)
    if await change.stands(sender):
        pending.remove()
        return ChangePlan(change, sender, already=True)
    sent = await pending.load(fee_cap_wei=fee_cap_wei)
    if sent is not None:
        if await change.contract.chain.receipt(*sent.hashes) is None:
            return ChangePlan(change, sender, resumes=sent)
        pending.remove()
        if await change.stands(sender):  # mined just now; else it was taken back since
            return ChangePlan(change, sender, already=True)
    priced = await change.contract.price(
        sender,
        change.function,
        *await change.arguments(),
        immature_gas=immature_gas,
        fee_cap_wei=fee_cap_wei,
    )
    return ChangePlan(change, sender, transaction=priced)


async def carry_out_change(
    plan: ChangePlan,
    *,
    signer: Signer,
    indexed: Indexed | None = None,
    on_step: OnStep = ignore,
) -> Changed:
    """Send the change, wait for its block, then until the node has `indexed` that block."""
    sent = await send_change(plan, signer, on_step)
    if sent is None:
        return Changed(already=True)
    receipt = await await_change(plan.change, sent, signer, on_step)
    if receipt is None:
        return Changed(already=True)
    on_step(receipt)
    served = await wait_served(
        None if indexed is None else lambda: indexed(receipt.block_number), on_step
    )
    return Changed(
        already=False,
        tx_hash=receipt.tx_hash,
        block_number=receipt.block_number,
        gas_used=receipt.gas_used,
        fee_wei=receipt.fee_wei,
        served_after_s=served.after_s,
    )


async def send_change(plan: ChangePlan, signer: Signer, on_step: OnStep) -> Sent | None:
    """Return the transaction of a change: that of an earlier run, or a new one.

    None if nothing has to be sent any more: a person may have thought for an hour since the plan.
    """
    change, sent = plan.change, plan.resumes
    if sent is None:
        if plan.transaction is None or await change.stands(plan.sender):
            change.pending(plan.sender).remove()
            return None
        pending = change.pending(plan.sender)
        sent = await submit(
            change.contract.chain,
            signer,
            plan.transaction,
            on_signed=remembering([pending], on_step),
            sent_before=pending.load,
        )
    on_step(sent)
    return sent


async def await_change(
    change: RegistryChange,
    sent: Sent,
    signer: Signer,
    on_step: OnStep,
    timeout_s: float = RECEIPT_WAIT_S,
) -> Receipt | None:
    """Wait for the block of a change; None if another transaction has made the change."""
    pending = change.pending(signer.address)
    try:
        mined = await confirm(
            change.contract.chain,
            sent,
            timeout_s=timeout_s,
            signer=signer,
            on_signed=remembering([pending], on_step),
            is_done=lambda: change.stands(signer.address),
            on_step=on_step,
        )
        receipt = change.contract.receipt(mined)
    except (InvalidInput, Refused) as error:  # reverted
        pending.remove()
        if await _stands_now(change, signer.address, error):  # another process of ours was first
            return None
        raise
    pending.remove()
    return receipt


async def _stands_now(change: RegistryChange, sender: str, reverted: CapdexError) -> bool:
    """Return True if it is so after a revert; raises why `sender` may not do it, as in the plan."""
    try:
        return await change.stands(sender)
    except (InvalidInput, Refused) as error:
        details = (reverted.details or {}) | (error.details or {})
        raise replace(error, details=details) from None
