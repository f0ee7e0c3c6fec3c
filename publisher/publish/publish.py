"""Publishing packages: upload them, reserve new names, announce all; safe to repeat at any point.

    bytes ──examine──> Candidate ──make_plan──> Plan ──(a person agrees)──> carry_out ──> Outcome
          verify, name, version     batches, fees         upload, read back, commit, send, served

A dry run ends with the plan. Whatever happened before a crash is found again: releases and
commitments on chain, a transaction that waits for its block in the journal, uploads by their CIDs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from capdex.errors import CapdexError, UsageError
from publisher.commit_reveal import commit as reservation
from publisher.keys.signer import Signer
from publisher.progress import SERVED_WAIT_S, IsServed, OnStep, Outcome, ignore, wait_served
from publisher.publish.announce import Announcing, Result, Results
from publisher.publish.plan import Plan
from publisher.publish.preflight import Candidate
from publisher.publish.upload import Delivery
from publisher.registry.registry import Registry
from publisher.tx.confirm import RECEIPT_WAIT_S


async def carry_out(
    plan: Plan,
    *,
    registry: Registry,
    signer: Signer,
    delivery: Delivery,
    served: IsServed | None = None,
    on_step: OnStep = ignore,
    receipt_timeout_s: float = RECEIPT_WAIT_S,
    served_timeout_s: float = SERVED_WAIT_S,
) -> list[Result]:
    """Carry a plan out: for each of its candidates how it ended, in their order.

    Uploads come first and happen on every run: what is on chain can be fetched, and a lost copy is
    put back. An error of one package is its result and does not stop the others. Raises UsageError
    when the signer is another account than the plan's.
    """
    if signer.address != plan.publisher:
        raise UsageError(
            f"the key is that of {signer.address}",
            why=f"the plan is for {plan.publisher}",
            fix="use the key file of the account that the packages name",
        )
    publishing = Announcing(plan, registry, signer, on_step, receipt_timeout_s)
    await _upload(publishing, plan.candidates, delivery, on_step)
    await _reserve(publishing, plan, on_step, receipt_timeout_s)
    await publishing.announce()
    results = publishing.results
    await _wait_served(results, served, on_step, served_timeout_s)
    return [results[one.announcement.cap_uri] for one in plan.candidates]


async def _upload(
    publishing: Announcing, candidates: Sequence[Candidate], delivery: Delivery, on_step: OnStep
) -> None:
    """Store every package and fetch it back, before anything is paid."""
    ends = await delivery.put_all([x.package.data for x in candidates], on_uploaded=on_step)
    for one, end in zip(candidates, ends, strict=True):
        if isinstance(end, CapdexError):
            publishing.end([one], end)


async def _reserve(publishing: Announcing, plan: Plan, on_step: OnStep, timeout_s: float) -> None:
    """Make the commitments of new names that can still be claimed, and wait for their age."""
    if not plan.reservations:
        return
    names = {one.name for one in (await publishing.look_again()).values() if one.to_send}
    wanted = [one for one in plan.reservations if one.name in names]
    try:
        await reservation.reserve(
            wanted,
            plan.commits,
            registry=publishing.registry,
            signer=publishing.signer,
            on_step=on_step,
            receipt_timeout_s=timeout_s,
        )
    except CapdexError as error:
        reserved = {one.name for one in wanted}
        publishing.end((x for x in plan.candidates if x.name in reserved), error)


async def _wait_served(
    results: Results, served: IsServed | None, on_step: OnStep, timeout_s: float
) -> None:
    async def one(uri: str, outcome: Outcome) -> None:
        after_s = await wait_served(uri, served, on_step, timeout_s=timeout_s)
        results[uri] = replace(outcome, served_after_s=after_s)

    done = [(uri, end) for uri, end in results.items() if isinstance(end, Outcome)]
    await asyncio.gather(*(one(uri, outcome) for uri, outcome in done))
