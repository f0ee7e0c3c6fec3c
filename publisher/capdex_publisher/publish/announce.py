"""Announce releases on chain: send what is missing, wait for the blocks, record each result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from capdex.encoding.hexadecimal import to_hex
from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.registry.events import Published
from capdex_publisher.commit_reveal import (
    CommitSecretFile,
    commit,
    makes_blocks_on_demand,
    retry_until_mature,
)
from capdex_publisher.ethereum.contract import Receipt
from capdex_publisher.ethereum.transaction import Sent
from capdex_publisher.keys.signer import Signer
from capdex_publisher.progress import OnStep
from capdex_publisher.publish.plan import Batch, PublishPlan, price_batch
from capdex_publisher.publish.preflight import ReleaseCandidate, look_up, look_up_all, pending
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.pending import remembering
from capdex_publisher.tx.submit import OnSigned, submit


class Announced(NamedTuple):
    """A release is on chain; `already`: another call or process put it there.

    There is no receipt if the transaction is older than the logs that the endpoint searches.
    """

    already: bool
    receipt: Receipt | None


Results = dict[str, Announced | CapdexError]  # by capability URI


@dataclass(slots=True)
class Announcer:
    """Carries out one plan; `results` grows until every candidate has one."""

    plan: PublishPlan
    registry: Registry
    signer: Signer
    on_step: OnStep
    timeout_s: float
    results: Results = field(default_factory=dict)

    def fail(self, candidates: Iterable[ReleaseCandidate], error: CapdexError) -> None:
        """Set the result of those that have none yet."""
        self.results.update({x.uri: error for x in self._open(candidates)})

    async def refresh(self) -> dict[str, ReleaseCandidate]:
        """Read the open candidates again, by URI: minutes may have passed since the plan."""
        candidates = self._open(self.plan.candidates)
        outcomes = await look_up_all(
            [candidate.package for candidate in candidates],
            registry=self.registry,
            fee_cap_wei=self.plan.fee_cap_wei,
        )
        for candidate, now in zip(candidates, outcomes, strict=True):
            if isinstance(now, CapdexError):
                self.fail([candidate], now)
        current = [now for now in outcomes if isinstance(now, ReleaseCandidate)]
        await asyncio.gather(*(self._finish_published(now) for now in current if now.already))
        return {now.uri: now for now in current if not now.already}

    async def commit(self, current: dict[str, ReleaseCandidate]) -> None:
        """Make the commitments of new names that can still be claimed; wait until they count."""
        names = {x.name for x in current.values() if x.to_send}
        wanted = [x for x in self.plan.commitments if x.name in names]
        try:
            await commit(
                wanted,
                self.plan.commits,
                registry=self.registry,
                signer=self.signer,
                on_step=self.on_step,
                receipt_timeout_s=self.timeout_s,
            )
        except CapdexError as error:
            failed = {commitment.name for commitment in wanted}
            self.fail((x for x in self.plan.candidates if x.name in failed), error)

    async def announce(self, current: dict[str, ReleaseCandidate]) -> None:
        """Send what is not on chain, wait for the blocks, and set every result."""
        waiting: dict[str, tuple[Sent, list[ReleaseCandidate]]] = {}  # by transaction hash
        for candidate in self._open(current.values()):
            if candidate.resumes is not None:
                sent = candidate.resumes
                waiting.setdefault(sent.tx_hash, (sent, []))[1].append(candidate)
        for batch in self.plan.batches:
            now = self._open(current[x.uri] for x in batch.candidates if x.uri in current)
            to_send = [x for x in now if x.to_send]
            if to_send:
                waiting |= await self._send(Batch(tuple(to_send), batch.transaction))
        await asyncio.gather(*(self._settle(*each) for each in waiting.values()))
        self.fail(current.values(), _gone())

    async def _send(self, batch: Batch) -> dict[str, tuple[Sent, list[ReleaseCandidate]]]:
        """Send the releases of a batch that the contract takes: one transaction, or none."""
        refused: dict[str, CapdexError] = {}
        price = partial(
            price_batch,  # at the fees of now, within the cap that was agreed to
            batch.candidates,
            self.plan.secrets,
            registry=self.registry,
            sender=self.signer.address,
            fee_cap_wei=batch.transaction.fee_cap_wei,
            refused=refused,
            bounded=makes_blocks_on_demand(self.registry.chain),
        )
        try:
            priced = await retry_until_mature(price, timeout_s=self.timeout_s)
            self.results.update(refused)
            if priced is None:
                return {}
            sent = await submit(
                self.registry.chain,
                self.signer,
                priced.transaction,
                on_signed=self._remember(priced.candidates),
                sent_before=partial(self._sent_before, priced.candidates),
            )
        except CapdexError as error:
            self.fail(batch.candidates, error)
            return {}
        self.on_step(sent)
        return {sent.tx_hash: (sent, list(priced.candidates))}

    async def _sent_before(self, candidates: Sequence[ReleaseCandidate]) -> Sent | None:
        """Return what another process has sent since the plan, if it publishes one of these."""
        for candidate in candidates:
            if (sent := await pending(self.registry, candidate.package).load()) is not None:
                return sent
        return None

    def _remember(self, candidates: Sequence[ReleaseCandidate]) -> OnSigned:
        files = [pending(self.registry, candidate.package) for candidate in candidates]
        return remembering(files, self.on_step)

    async def _settle(self, sent: Sent, candidates: list[ReleaseCandidate]) -> None:
        """Wait for the block of a transaction, and set the result of each of its releases."""
        try:
            mined = await confirm(
                self.registry.chain,
                sent,
                timeout_s=self.timeout_s,
                signer=self.signer,
                on_signed=self._remember(candidates),
                is_done=lambda: self._all_published(candidates),
                on_step=self.on_step,
            )
            receipt = self.registry.receipt(mined)
        except (InvalidInput, Refused) as error:
            why = error if len(candidates) == 1 else _reverted(error)
            for candidate in candidates:
                await self._settle_reverted(candidate, why)
            return
        except CapdexError as error:
            self.fail(candidates, error)
            return
        self.on_step(receipt)
        published = {
            event.announcement.cap_uri for event in receipt.events if isinstance(event, Published)
        }
        for candidate in candidates:
            if candidate.uri in published:
                self._finish(candidate, receipt, already=False)
            else:  # the stored transaction was another one
                await self._settle_reverted(candidate, _gone())

    async def _settle_reverted(self, candidate: ReleaseCandidate, error: CapdexError) -> None:
        """Set the result of a release that was not published by its transaction.

        Another process of the same account may have published it before.
        """
        pending(self.registry, candidate.package).remove()
        try:
            now = await look_up(candidate.package, registry=self.registry)
        except CapdexError as why:
            details = (error.details or {}) | (why.details or {})
            self.fail([candidate], replace(why, details=details))
            return
        if now.already:
            await self._finish_published(now)
        else:
            self.fail([candidate], error)

    async def _all_published(self, candidates: Sequence[ReleaseCandidate]) -> bool:
        current = [await look_up(x.package, registry=self.registry) for x in candidates]
        return all(x.already for x in current)

    async def _finish_published(self, candidate: ReleaseCandidate) -> None:
        """Set the result of a release that is on chain, with its receipt if it can be found."""
        receipt = None
        try:
            event = await self.registry.find_publication(
                candidate.name, candidate.announcement.semver
            )
            if event is not None:
                mined = await confirm(self.registry.chain, to_hex(event.position.tx_hash))
                receipt = self.registry.receipt(mined)
        except CapdexError as error:
            self.fail([candidate], error)
        else:
            self._finish(candidate, receipt, already=True)

    def _finish(
        self, candidate: ReleaseCandidate, receipt: Receipt | None, *, already: bool
    ) -> None:
        pending(self.registry, candidate.package).remove()
        CommitSecretFile(self.registry, self.signer.address, candidate.name).forget()
        self.results[candidate.uri] = Announced(already, receipt)

    def _open(self, candidates: Iterable[ReleaseCandidate]) -> list[ReleaseCandidate]:
        """Return the candidates without a result."""
        return [x for x in candidates if x.uri not in self.results]


def _gone() -> Unavailable:
    return Unavailable(
        "the transaction that was sent for it is gone, or was for other releases",
        Code.RPC_UNAVAILABLE,
        why="nothing was paid for it",
        fix="run the same command again: it makes a new one",
    )


def _reverted(error: CapdexError) -> Unavailable:
    return Unavailable(
        "another release of the same transaction was refused, so none of them was published",
        Code.TIMEOUT,
        why=error.message,
        fix="run the same command again: it publishes the others",
        details=error.details,
    )
