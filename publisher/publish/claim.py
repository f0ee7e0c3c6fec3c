"""Claiming a name without publishing: reserve it, wait, claim; safe to repeat at any point."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from capdex.errors import InvalidInput, Unavailable
from publisher.commit_reveal import commit as reservation
from publisher.commit_reveal.commit import Reservation
from publisher.commit_reveal.commitment import NO_SECRET
from publisher.commit_reveal.maturity import UNRIPE, makes_blocks_on_demand, when_ripe
from publisher.errors import renounced
from publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Transaction
from publisher.keys.signer import Signer
from publisher.progress import OnStep, ignore
from publisher.publish.batch import claim_gas
from publisher.publish.preflight import check_free, taken
from publisher.registry.change import (
    Change,
    Changed,
    ChangePlan,
    carry_out_change,
    name_change,
    plan_change,
)
from publisher.registry.registry import Registry
from publisher.tx.confirm import RECEIPT_WAIT_S
from publisher.tx.fee_cap import share_cap


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """What would be sent: the commitments (by name; one or none), then the claim."""

    claim: ChangePlan
    reservations: tuple[Reservation, ...] = ()
    commits: Mapping[str, Transaction] = field(default_factory=dict)

    @property
    def transactions(self) -> tuple[Transaction, ...]:
        """All that would be sent."""
        claim = self.claim.transaction
        return (*self.commits.values(), *(() if claim is None else (claim,)))


def claim(registry: Registry, name: str, reservations: Sequence[Reservation] = ()) -> Change:
    """The claim of a name, by the secret of its reservation where there is one."""
    secret = next((one.secret for one in reservations if one.name == name), NO_SECRET)

    async def stands(sender: str) -> bool:
        record = await registry.name_record(name)
        if record.owner == sender:
            return True
        if record.renounced:
            raise renounced(name)
        if record.owner is not None:
            raise taken(name, name, record.owner, sender)
        await check_free(registry, name, sender)
        return False

    return name_change(
        registry, name, "claim", "claim", (secret,), stands,
        already="the name is yours already",
        effects=("the name becomes yours, and nobody else's unless you give it away",),
    )  # fmt: skip


async def plan_claim(
    name: str,
    *,
    registry: Registry,
    sender: str,
    open_signer: Callable[[], Awaitable[Signer]],
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
) -> ClaimPlan:
    """Check that a name is free and price its claim; the cap is on the total.

    Raises Refused (NAME_TAKEN, NAME_RESERVED, EMPTY_ACCOUNT, FEE_OVER_CAP), Unavailable. The
    signer is opened only where the registry wants a commitment.
    """
    wanted = claim(registry, name)
    if await wanted.stands(sender):
        return ClaimPlan(ChangePlan(wanted, sender, already=True))
    reservations = await reservation.look([name], registry=registry, open_signer=open_signer)
    wanted = claim(registry, name, reservations)
    planned = await _price(wanted, registry, sender, fee_cap_wei, bounded=True)
    if planned.transaction is None:
        return ClaimPlan(planned)
    commits = await reservation.price(
        reservations, registry=registry, sender=sender, fee_cap_wei=fee_cap_wei
    )
    *shared, last = await share_cap(
        (*commits.values(), planned.transaction), chain=registry.chain, fee_cap_wei=fee_cap_wei
    )
    return ClaimPlan(
        replace(planned, transaction=last), reservations, dict(zip(commits, shared, strict=True))
    )


async def carry_out_claim(
    plan: ClaimPlan,
    *,
    registry: Registry,
    signer: Signer,
    on_step: OnStep = ignore,
    receipt_timeout_s: float = RECEIPT_WAIT_S,
) -> Changed:
    """Reserve the name if it must be, wait for that, and claim it; raises like `plan_claim`."""
    planned = plan.claim
    if planned.transaction is not None:
        await reservation.reserve(
            plan.reservations,
            plan.commits,
            registry=registry,
            signer=signer,
            on_step=on_step,
            receipt_timeout_s=receipt_timeout_s,
        )
        cap = planned.transaction.fee_cap_wei
        planned = await when_ripe(
            lambda: _price(
                plan.claim.change,
                registry,
                signer.address,
                cap,
                bounded=makes_blocks_on_demand(registry.chain),
            ),
            timeout_s=receipt_timeout_s,
        )
    done = await carry_out_change(
        planned, signer=signer, on_step=on_step, receipt_timeout_s=receipt_timeout_s
    )
    reservation.forget([plan.claim.change.subject], registry=registry, claimer=signer.address)
    return done


async def _price(
    wanted: Change, registry: Registry, sender: str, fee_cap_wei: int, *, bounded: bool
) -> ChangePlan:
    """As `plan_change`; if `bounded`, a claim that is not ripe by what it takes at most."""
    try:
        return await plan_change(wanted, sender=sender, fee_cap_wei=fee_cap_wei)
    except (InvalidInput, Unavailable) as error:
        if not bounded or (error.details or {}).get("error") not in UNRIPE:
            raise
    arguments, gas = await wanted.arguments(), claim_gas(wanted.subject)
    priced = await registry.price(sender, "claim", *arguments, gas=gas, fee_cap_wei=fee_cap_wei)
    return ChangePlan(wanted, sender, transaction=priced)
