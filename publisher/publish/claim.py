"""Claim a name without publishing: commit, wait, claim. Safe to repeat at any point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from capdex.errors import InvalidInput, Unavailable
from publisher.commit_reveal.commit import (
    NameCommitment,
    commit,
    find_commitments,
    forget_secrets,
    price_commits,
)
from publisher.commit_reveal.commitment import NO_SECRET
from publisher.commit_reveal.maturity import (
    IMMATURE_ERRORS,
    makes_blocks_on_demand,
    retry_until_mature,
)
from publisher.errors import renounced
from publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Transaction
from publisher.keys.signer import Signer
from publisher.progress import ignore
from publisher.publish.batch import claim_gas
from publisher.publish.preflight import check_free, taken
from publisher.registry.change import (
    Change,
    Changed,
    ChangePlan,
    Confirm,
    OnChangeStep,
    agree,
    carry_out_change,
    name_change,
    plan_change,
)
from publisher.registry.registry import Registry
from publisher.tx.confirm import RECEIPT_WAIT_S
from publisher.tx.submit import share_cap


@dataclass(frozen=True, slots=True)
class ClaimPlan(ChangePlan):
    """Plan of a claim: the commitments to send first (by name; one or none), then the claim."""

    commitments: tuple[NameCommitment, ...] = ()
    commits: Mapping[str, Transaction] = field(default_factory=dict)

    @property
    def transactions(self) -> tuple[Transaction, ...]:
        """All transactions that would be sent, in their order."""
        return (*self.commits.values(), *(() if self.transaction is None else (self.transaction,)))


async def claim(
    name: str,
    *,
    registry: Registry,
    signer: Signer,
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    dry_run: bool = False,
    confirm: Confirm | None = None,
    on_step: OnChangeStep = ignore,
    receipt_timeout_s: float = RECEIPT_WAIT_S,
) -> Changed:
    """Claim a name for the signer's account, which can then publish under it.

    Where the registry asks for it, the name is reserved first and claimed a minute later, so that
    the claim cannot be copied. `confirm` and `on_step` are as those of `make_change`; the cap is on
    the total. Raises Refused (NAME_TAKEN, NAME_RESERVED, EMPTY_ACCOUNT, FEE_OVER_CAP, NO_CONSENT),
    Unavailable.
    """
    plan = await _plan(name, registry, signer, fee_cap_wei)
    on_step(plan)
    if dry_run or plan.already:
        return Changed(plan.already)
    await agree(plan, confirm)
    planned: ChangePlan = plan
    if plan.transaction is not None:
        await commit(
            plan.commitments,
            plan.commits,
            registry=registry,
            signer=signer,
            on_step=on_step,
            receipt_timeout_s=receipt_timeout_s,
        )
        cap = plan.transaction.fee_cap_wei
        bounded = makes_blocks_on_demand(registry.chain)
        planned = await retry_until_mature(
            lambda: _price(plan.change, signer.address, cap, bounded=bounded),
            timeout_s=receipt_timeout_s,
        )
    done = await carry_out_change(
        planned, signer=signer, on_step=on_step, receipt_timeout_s=receipt_timeout_s
    )
    forget_secrets([name], registry=registry, claimer=signer.address)
    return done


async def _plan(name: str, registry: Registry, signer: Signer, fee_cap_wei: int) -> ClaimPlan:
    """Check that a name is free and price its claim."""
    wanted, sender = claim_of(registry, name), signer.address
    if await wanted.stands(sender):
        return ClaimPlan(wanted, sender, already=True)
    commitments = await find_commitments([name], registry=registry, signer=signer)
    wanted = claim_of(registry, name, commitments)
    planned = await _price(wanted, sender, fee_cap_wei, bounded=True)
    if planned.transaction is None:
        return ClaimPlan(wanted, sender, planned.already, planned.resumes)
    commits = await price_commits(
        commitments, registry=registry, sender=sender, fee_cap_wei=fee_cap_wei
    )
    *shared, last = await share_cap(
        (*commits.values(), planned.transaction), chain=registry.chain, fee_cap_wei=fee_cap_wei
    )
    commits = dict(zip(commits, shared, strict=True))
    return ClaimPlan(wanted, sender, transaction=last, commitments=commitments, commits=commits)


def claim_of(registry: Registry, name: str, commitments: Sequence[NameCommitment] = ()) -> Change:
    """Return the claim of a name, by the secret of its commitment where there is one."""
    secret = next((one.secret for one in commitments if one.name == name), NO_SECRET)

    async def stands(sender: str) -> bool:
        state = await registry.name_state(name)
        if state is None:
            await check_free(registry, name, sender)
            return False
        if state.owner is None:
            raise renounced(name)
        if state.owner != sender:
            raise taken(name, name, state.owner, sender)
        return True

    return name_change(
        registry, name, "claim", "claim", (secret,), stands,
        already="the name is yours already",
        effects=("the name becomes yours, and nobody else's unless you give it away",),
    )  # fmt: skip


async def _price(wanted: Change, sender: str, fee_cap_wei: int, *, bounded: bool) -> ChangePlan:
    """Plan the claim; if `bounded`, price one that is not mature by the gas it takes at most."""
    try:
        return await plan_change(wanted, sender=sender, fee_cap_wei=fee_cap_wei)
    except (InvalidInput, Unavailable) as error:
        if not bounded or (error.details or {}).get("error") not in IMMATURE_ERRORS:
            raise
    gas = claim_gas(wanted.subject)
    priced = await wanted.contract.price(
        sender, wanted.function, *await wanted.arguments(), gas=gas, fee_cap_wei=fee_cap_wei
    )
    return ChangePlan(wanted, sender, transaction=priced)
