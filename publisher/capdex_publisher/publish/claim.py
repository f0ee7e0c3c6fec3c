"""Claim a name without publishing: commit, wait, claim. Safe to repeat at any point."""

from __future__ import annotations

from collections.abc import Sequence

from capdex_publisher.commit_reveal import (
    NO_SECRET,
    CommitSecretFile,
    NameCommitment,
    carry_out_commits,
    find_commitments,
    plan_commits,
)
from capdex_publisher.errors import name_taken, renounced
from capdex_publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI
from capdex_publisher.keys.signer import Signer
from capdex_publisher.progress import ignore
from capdex_publisher.publish.plan import claim_gas
from capdex_publisher.publish.preflight import check_free
from capdex_publisher.registry.change import (
    Changed,
    Confirm,
    OnChangeStep,
    RegistryChange,
    agree,
    carry_out_change,
    name_change,
    plan_change,
)
from capdex_publisher.registry.registry import Registry


async def claim(
    name: str,
    *,
    registry: Registry,
    signer: Signer,
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    dry_run: bool = False,
    confirm: Confirm | None = None,
    on_step: OnChangeStep = ignore,
) -> Changed:
    """Claim a name for the signer's account, which can then publish under it.

    Where the registry asks for it, the name is reserved first and claimed a minute later, so that
    the claim cannot be copied. `confirm` and `on_step` are as those of `make_change`; the cap is on
    the total. Raises Refused (NAME_TAKEN, NAME_RESERVED, EMPTY_ACCOUNT, FEE_OVER_CAP, NO_CONSENT),
    Unavailable.
    """
    sender = signer.address
    commitments: tuple[NameCommitment, ...] = ()
    change = claim_of(registry, name)
    if not await change.stands(sender):
        commitments = await find_commitments([name], registry=registry, signer=signer)
        change = claim_of(registry, name, commitments)
    gas_bound = claim_gas(name)
    plan = await plan_change(change, sender=sender, fee_cap_wei=fee_cap_wei, immature_gas=gas_bound)
    plan = await plan_commits(plan, commitments, registry)
    on_step(plan)
    if dry_run or plan.already:
        return Changed(plan.already)
    await agree(plan, confirm)
    plan = await carry_out_commits(
        plan, commitments, gas_bound, registry=registry, signer=signer, on_step=on_step
    )
    done = await carry_out_change(plan, signer=signer, on_step=on_step)
    CommitSecretFile(registry, sender, name).forget()
    return done


def claim_of(
    registry: Registry, name: str, commitments: Sequence[NameCommitment] = ()
) -> RegistryChange:
    """Return the claim of a name, by the secret of its commitment where there is one."""
    secret = next((x.secret for x in commitments if x.name == name), NO_SECRET)

    async def stands(sender: str) -> bool:
        state = await registry.name_state(name)
        if state is None:
            await check_free(registry, name, sender)
            return False
        if state.owner is None:
            raise renounced(name)
        if state.owner != sender:
            raise name_taken(name, name, state.owner, sender)
        return True

    return name_change(
        registry, name, "claim", "claim", (secret,), stands,
        already="the name is yours already",
        effects=("the name becomes yours, and nobody else's unless you give it away",),
    )  # fmt: skip
