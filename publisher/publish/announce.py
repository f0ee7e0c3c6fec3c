"""Putting releases on chain: what is not there is sent, what was sent is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.registry.events import Published
from publisher.commit_reveal import commit as reservation
from publisher.commit_reveal.maturity import makes_blocks_on_demand, when_ripe
from publisher.ethereum.contract import Receipt
from publisher.ethereum.transaction import Sent, Transaction
from publisher.keys.signer import Signer
from publisher.progress import OnStep, Outcome
from publisher.publish.plan import Batch, Plan, price_batch
from publisher.publish.preflight import AT_ONCE, Candidate, journal, look_up
from publisher.registry.registry import Registry

Result = Outcome | CapdexError
Results = dict[str, Result]  # by capability URI


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A transaction that was sent, and the releases it publishes."""

    sent: Sent
    candidates: list[Candidate]


class Announcing:
    """One run of a plan; `results` grows until every candidate has one."""

    def __init__(
        self, plan: Plan, registry: Registry, signer: Signer, on_step: OnStep, timeout_s: float
    ) -> None:
        self.registry = registry
        self.signer = signer
        self.results: Results = {}
        self._plan = plan
        self._on_step = on_step
        self._timeout_s = timeout_s

    async def announce(self) -> None:
        """Send what is not on chain, and wait for the blocks."""
        found = await self.look_again()
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
        self.end(found.values(), _gone())

    async def look_again(self) -> dict[str, Candidate]:
        """What the registry says now: a person may have thought for an hour about the plan."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def look(one: Candidate) -> Candidate | None:
            async with slots:
                try:
                    return await self._now(one)
                except CapdexError as error:
                    self.end([one], error)
                    return None

        found = await asyncio.gather(*map(look, self._left(self._plan.candidates)))
        return {one.announcement.cap_uri: one for one in found if one is not None}

    async def _now(self, one: Candidate) -> Candidate | None:
        """The candidate as it stands now; None when it is published, which ends it."""
        now = await look_up(one.package, registry=self.registry, fee_cap_wei=self._plan.fee_cap_wei)
        if not now.already:
            return now
        self._done(now, await self._receipt_of(now), already=True)
        return None

    async def _send(self, batch: Batch) -> list[_Waiting]:
        """Send what the contract takes of a batch: one transaction, or none."""
        refused: dict[str, CapdexError] = {}
        try:
            kept, priced = await when_ripe(
                lambda: self._price(batch, refused), timeout_s=self._timeout_s
            )
            self.results.update(refused)
            if priced is None:
                return []
            sent = await self.registry.send(self.signer, priced, on_signed=self._remember(kept))
        except CapdexError as error:
            self.end(batch.candidates, error)
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
            registry=self.registry,
            sender=self._plan.publisher,
            fee_cap_wei=batch.transaction.fee_cap_wei,
            refused=refused,
            bounded=makes_blocks_on_demand(self.registry.chain),
        )

    def _remember(self, candidates: Sequence[Candidate]) -> Callable[[Sent], None]:
        """Writes down for each release by which transaction it goes, before that leaves."""

        def remember(signed: Sent) -> None:
            for one in candidates:
                journal(self.registry, one.package).remember(signed, one.fingerprint)
            if signed.earlier:  # it is sent again while it is waited for
                self._on_step(signed)

        return remember

    async def _settle(self, waiting: _Waiting) -> None:
        """Wait for the block of a transaction, and say of each release how it ended."""
        candidates = waiting.candidates
        try:
            receipt = await self.registry.wait(
                waiting.sent,
                timeout_s=self._timeout_s,
                signer=self.signer,
                on_signed=self._remember(candidates),
                done=lambda: self._all_published(candidates),
            )
        except (InvalidInput, Refused) as error:
            for one in candidates:
                await self._settle_refused(one, error if len(candidates) == 1 else _refused(error))
            return
        except CapdexError as error:
            self.end(candidates, error)
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
        journal(self.registry, one.package).forget()
        try:
            if await self._now(one) is not None:
                self.end([one], error)
        except CapdexError as why:
            self.end([one], why)

    async def _all_published(self, candidates: Sequence[Candidate]) -> bool:
        found = [await look_up(one.package, registry=self.registry) for one in candidates]
        return all(one.already for one in found)

    async def _receipt_of(self, one: Candidate) -> Receipt | None:
        """The receipt of a release that is on chain, if it is not too far back."""
        event = await self.registry.find_publication(one.name, one.announcement.semver)
        if event is None:
            return None
        return await self.registry.wait("0x" + event.position.tx_hash.hex())

    def _done(self, one: Candidate, receipt: Receipt | None, *, already: bool) -> None:
        said = one.announcement
        journal(self.registry, one.package).forget()
        reservation.forget([one.name], registry=self.registry, claimer=self._plan.publisher)
        self.results[said.cap_uri] = Outcome.of(
            said.cap_uri, said.cid, said.sha256, receipt, already=already
        )

    def end(self, candidates: Iterable[Candidate], error: CapdexError) -> None:
        """How it ends for those that have not ended yet."""
        self.results.update({one.announcement.cap_uri: error for one in self._left(candidates)})

    def _left(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return [one for one in candidates if one.announcement.cap_uri not in self.results]


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
