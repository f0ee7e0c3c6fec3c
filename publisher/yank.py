"""Yanking a release and taking it back: plan it, show the plan, carry it out; safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from capdex.errors import Code, InvalidInput, UsageError
from capdex.uri import check_name
from capdex.version import Version
from publisher.chain import RECEIPT_WAIT_S
from publisher.journal import Journal
from publisher.outcome import SERVED_WAIT_S, IsServed, OnStep, Outcome, ignore, wait_served
from publisher.registry import Receipt, Registry, Release, parse_address
from publisher.reverts import not_owner
from publisher.signers import Signer
from publisher.transaction import DEFAULT_FEE_CAP_WEI, Sent, Transaction

MAX_REASON_BYTES: Final = 500  # the contract's own bound: room for a sentence or two


@dataclass(frozen=True, slots=True)
class YankPlan:
    """What would change. Exactly one of `already`, `resumes` and `transaction` is set."""

    name: str
    release: Release
    yank: bool
    sender: str
    already: bool = False
    resumes: Sent | None = None
    transaction: Transaction | None = None


async def plan_yank(
    name: str,
    semver: str,
    reason: str,
    *,
    registry: Registry,
    sender: str,
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
) -> YankPlan:
    """Check and price yanking a release.

    Raises InvalidInput (NOT_FOUND, TOO_LARGE), Refused (NOT_OWNER, EMPTY_ACCOUNT), Unavailable.
    """
    if len(reason.encode("utf-8", "surrogatepass")) > MAX_REASON_BYTES:
        raise InvalidInput(
            f"the reason is longer than {MAX_REASON_BYTES} bytes",
            Code.TOO_LARGE,
            fix="say it in a sentence, and the rest on your homepage",
        )
    plan = await _look(name, semver, registry, sender, yank=True)
    if plan.already or plan.resumes is not None:
        return plan
    index = await registry.index_of(name, semver)
    priced = await registry.price(
        plan.sender, "yank", name, semver, index, reason, fee_cap_wei=fee_cap_wei
    )
    return YankPlan(name, plan.release, True, plan.sender, transaction=priced)


async def plan_unyank(
    name: str,
    semver: str,
    *,
    registry: Registry,
    sender: str,
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
) -> YankPlan:
    """Check and price taking a yank back; raises like `plan_yank`."""
    plan = await _look(name, semver, registry, sender, yank=False)
    if plan.already or plan.resumes is not None:
        return plan
    index = await registry.index_of(name, semver)
    priced = await registry.price(
        plan.sender, "unyank", name, semver, index, fee_cap_wei=fee_cap_wei
    )
    return YankPlan(name, plan.release, False, plan.sender, transaction=priced)


async def carry_out_yank(
    plan: YankPlan,
    *,
    registry: Registry,
    signer: Signer,
    served: IsServed | None = None,
    on_step: OnStep = ignore,
    receipt_timeout_s: float = RECEIPT_WAIT_S,
    served_timeout_s: float = SERVED_WAIT_S,
) -> Outcome:
    """Send the change, wait for its block, then until `served(cap_uri)` says the node has it."""
    if signer.address != plan.sender:
        raise UsageError(f"the key is that of {signer.address}, the plan for {plan.sender}")
    receipt = await _change(plan, registry, signer, on_step, receipt_timeout_s)
    after_s = await wait_served(plan.release.cap_uri, served, on_step, timeout_s=served_timeout_s)
    return Outcome.of(
        plan.release.cap_uri,
        plan.release.cid,
        plan.release.sha256,
        receipt,
        already=receipt is None,
        served_after_s=after_s,
    )


async def _look(name: str, semver: str, registry: Registry, sender: str, *, yank: bool) -> YankPlan:
    check_name(name)
    Version.parse(semver)
    address = parse_address(sender)
    release = await registry.release(name, semver)
    if release is None:
        raise InvalidInput(
            f"{name} has no release {semver}",
            Code.NOT_FOUND,
            fix=f"list its releases: capdex show {name}",
        )
    owner = await registry.owner_of(name)
    if owner != address:
        raise not_owner(name, address, owner or "")
    if release.yanked is yank:
        return YankPlan(name, release, yank, address, already=True)
    resumes = await _journal(registry, name, semver, yank=yank).recall("")
    return YankPlan(name, release, yank, address, resumes=resumes)


async def _change(
    plan: YankPlan, registry: Registry, signer: Signer, on_step: OnStep, timeout_s: float
) -> Receipt | None:
    """The receipt, or None when the release was in the wanted state already."""
    journal = _journal(registry, plan.name, plan.release.semver, yank=plan.yank)
    if plan.already:
        journal.forget()
        return None
    sent = plan.resumes
    if sent is None:
        if plan.transaction is None:
            raise UsageError("the plan has nothing to send", fix="plan again")
        sent = await registry.send(
            signer, plan.transaction, on_signed=lambda signed: journal.remember(signed, "")
        )
    on_step(sent)
    try:
        receipt = await registry.wait(sent.tx_hash, timeout_s=timeout_s)
    except InvalidInput as error:
        journal.forget()
        if error.code is Code.ALREADY_DONE:  # another process of ours was first
            return None
        raise
    journal.forget()
    on_step(receipt)
    return receipt


def _journal(registry: Registry, name: str, semver: str, *, yank: bool) -> Journal:
    return Journal(registry, "yank" if yank else "unyank", name, semver)
