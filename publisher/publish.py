"""Publishing packages: upload them, reserve new names, announce all; safe to repeat at any point.

    bytes ──examine──> Candidate ──make_plan──> Plan ──(a person agrees)──> carry_out ──> Outcome
          verify, name, version     batches, fees         upload, read back, commit, send, served

A dry run ends with the plan. Whatever happened before a crash is found again: releases and
commitments on chain, a transaction that waits for its block in the journal, uploads by their CIDs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable, UsageError
from capdex.events import Published
from publisher import reservation
from publisher.candidate import AT_ONCE, Candidate, journal, look_up
from publisher.contract import Receipt
from publisher.delivery import Delivery
from publisher.outcome import SERVED_WAIT_S, IsServed, OnStep, Outcome, ignore, wait_served
from publisher.plan import Batch, Plan, price_batch
from publisher.registry import Registry
from publisher.signers import Signer
from publisher.transaction import Sent, Transaction
from publisher.waiting import RECEIPT_WAIT_S

Result = Outcome | CapdexError
Results = dict[str, Result]  # by capability URI


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
    publishing = _Publishing(plan, registry, signer, on_step, receipt_timeout_s)
    await publishing.upload(delivery)
    await publishing.reserve()
    await publishing.announce()
    results = publishing.results
    await _wait_served(results, served, on_step, served_timeout_s)
    return [results[one.announcement.cap_uri] for one in plan.candidates]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A transaction that was sent, and the releases it publishes."""

    sent: Sent
    candidates: list[Candidate]


class _Publishing:
    """One run of a plan; `results` grows until every candidate has one."""

    def __init__(
        self, plan: Plan, registry: Registry, signer: Signer, on_step: OnStep, timeout_s: float
    ) -> None:
        self.results: Results = {}
        self._plan = plan
        self._registry = registry
        self._signer = signer
        self._on_step = on_step
        self._timeout_s = timeout_s

    async def upload(self, delivery: Delivery) -> None:
        """Store every package and fetch it back, before anything is paid."""
        ends = await delivery.put_all(
            [one.package.data for one in self._plan.candidates], on_uploaded=self._on_step
        )
        for one, end in zip(self._plan.candidates, ends, strict=True):
            if isinstance(end, CapdexError):
                self.results[one.announcement.cap_uri] = end

    async def reserve(self) -> None:
        """Make the commitments of new names that are still wanted, and wait for their age."""
        names = {one.name for one in self._left(self._plan.candidates) if one.to_send}
        wanted = [one for one in self._plan.reservations if one.name in names]
        try:
            await reservation.reserve(
                wanted,
                self._plan.commits,
                registry=self._registry,
                signer=self._signer,
                on_step=self._on_step,
                receipt_timeout_s=self._timeout_s,
            )
        except CapdexError as error:
            reserved = {one.name for one in wanted}
            self._end((x for x in self._left(self._plan.candidates) if x.name in reserved), error)

    async def announce(self) -> None:
        """Send what is not on chain, and wait for the blocks."""
        found = await self._look_again()
        waiting: dict[str, _Waiting] = {}
        for one in found.values():
            if one.resumes is not None:
                sent = one.resumes
                waiting.setdefault(sent.tx_hash, _Waiting(sent, [])).candidates.append(one)
        for batch in self._plan.batches:
            fresh = [found.get(one.announcement.cap_uri) for one in batch.candidates]
            to_send = [one for one in fresh if one is not None and one.to_send]
            if to_send:
                new = await self._send(Batch(tuple(to_send), batch.transaction))
                waiting |= {one.sent.tx_hash: one for one in new}
        await asyncio.gather(*map(self._settle, waiting.values()))
        self._end(self._left(found.values()), _gone())

    async def _look_again(self) -> dict[str, Candidate]:
        """What the registry says now: a person may have thought for an hour about the plan."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def look(one: Candidate) -> Candidate | None:
            async with slots:
                try:
                    return await self._now(one)
                except CapdexError as error:
                    self._end([one], error)
                    return None

        found = await asyncio.gather(*map(look, self._left(self._plan.candidates)))
        return {one.announcement.cap_uri: one for one in found if one is not None}

    async def _now(self, one: Candidate) -> Candidate | None:
        """The candidate as it stands now; None when it is published, which ends it."""
        now = await look_up(
            one.package, registry=self._registry, fee_cap_wei=self._plan.fee_cap_wei
        )
        if not now.already:
            return now
        self._done(now, await self._receipt_of(now), already=True)
        return None

    async def _send(self, batch: Batch) -> list[_Waiting]:
        """Send what the contract takes of a batch: one transaction, or none."""
        refused: dict[str, CapdexError] = {}
        try:
            kept, priced = await reservation.when_ripe(
                lambda: self._price(batch, refused), timeout_s=self._timeout_s
            )
            self.results.update(refused)
            if priced is None:
                return []
            sent = await self._registry.send(self._signer, priced, on_signed=self._remember(kept))
        except CapdexError as error:
            self._end(self._left(batch.candidates), error)
            return []
        self._on_step(sent)
        return [_Waiting(sent, list(kept))]

    async def _price(
        self, batch: Batch, refused: dict[str, CapdexError]
    ) -> tuple[tuple[Candidate, ...], Transaction | None]:
        """The transaction as it costs now, within what was agreed to."""
        return await price_batch(
            batch.candidates,
            self._plan.secrets,
            registry=self._registry,
            sender=self._plan.publisher,
            fee_cap_wei=batch.transaction.fee_cap_wei,
            refused=refused,
            bounded=False,
        )

    def _remember(self, candidates: Sequence[Candidate]) -> Callable[[Sent], None]:
        """Writes down for each release by which transaction it goes, before that leaves."""

        def remember(signed: Sent) -> None:
            for one in candidates:
                journal(self._registry, one.package).remember(signed, one.fingerprint)
            if signed.earlier:  # it is sent again while it is waited for
                self._on_step(signed)

        return remember

    async def _settle(self, waiting: _Waiting) -> None:
        """Wait for the block of a transaction, and say of each release how it ended."""
        candidates = waiting.candidates
        try:
            receipt = await self._registry.wait(
                waiting.sent,
                timeout_s=self._timeout_s,
                signer=self._signer,
                on_signed=self._remember(candidates),
                done=lambda: self._all_published(candidates),
            )
        except (InvalidInput, Refused) as error:
            for one in candidates:
                await self._settle_refused(one, error if len(candidates) == 1 else _refused(error))
            return
        except CapdexError as error:
            self._end(candidates, error)
            return
        self._on_step(receipt)
        published = {
            event.announcement.cap_uri for event in receipt.events if isinstance(event, Published)
        }
        for one in candidates:
            if one.announcement.cap_uri in published:
                self._done(one, receipt, already=False)
            else:  # the journal named a transaction of something else
                await self._settle_refused(one, _gone())

    async def _settle_refused(self, one: Candidate, error: CapdexError) -> None:
        """A release whose transaction was reverted: another process of ours may have been first."""
        journal(self._registry, one.package).forget()
        try:
            if await self._now(one) is not None:
                self._end([one], error)
        except CapdexError as why:
            self._end([one], why)

    async def _all_published(self, candidates: Sequence[Candidate]) -> bool:
        found = [await look_up(one.package, registry=self._registry) for one in candidates]
        return all(one.already for one in found)

    async def _receipt_of(self, one: Candidate) -> Receipt | None:
        """The receipt of a release that is on chain, if it is not too far back."""
        event = await self._registry.find_publication(one.name, one.announcement.semver)
        if event is None:
            return None
        return await self._registry.wait("0x" + event.position.tx_hash.hex())

    def _done(self, one: Candidate, receipt: Receipt | None, *, already: bool) -> None:
        said = one.announcement
        journal(self._registry, one.package).forget()
        reservation.forget([one.name], registry=self._registry, claimer=self._plan.publisher)
        self.results[said.cap_uri] = Outcome.of(
            said.cap_uri, said.cid, said.sha256, receipt, already=already
        )

    def _end(self, candidates: Iterable[Candidate], error: CapdexError) -> None:
        self.results.update({one.announcement.cap_uri: error for one in candidates})

    def _left(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return [one for one in candidates if one.announcement.cap_uri not in self.results]


async def _wait_served(
    results: Results, served: IsServed | None, on_step: OnStep, timeout_s: float
) -> None:
    async def one(uri: str, outcome: Outcome) -> None:
        after_s = await wait_served(uri, served, on_step, timeout_s=timeout_s)
        results[uri] = replace(outcome, served_after_s=after_s)

    done = [(uri, end) for uri, end in results.items() if isinstance(end, Outcome)]
    await asyncio.gather(*(one(uri, outcome) for uri, outcome in done))


def _gone() -> Unavailable:
    return Unavailable(
        "the transaction that was sent for it is gone",
        Code.RPC_UNAVAILABLE,
        why="the chain no longer knows it; nothing was paid for it",
        fix="run the same command again: it makes a new one",
    )


def _refused(error: CapdexError) -> Unavailable:
    return Unavailable(
        "another release of the same transaction was refused, so none of them was published",
        Code.TIMEOUT,
        why=error.message,
        fix="run the same command again: it publishes the others",
    )
