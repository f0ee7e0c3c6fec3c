"""Publish for other accounts, once each, within an allow list and a budget (P12).

    request ──parse──> SponsorRequest ──verify──> VerifiedPackage ──> upload ──> set aside ──> …
             size, allow list, chain    package, signature, name       Kubo        budget
    … ──> commit, if the name is new ──> publishWithSignature ──> SponsoredRelease

A request that is sent again joins the one that runs, or finds its release on chain: nothing is paid
twice. What was sent before a crash is in the file of its pending transaction.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from capdex.encoding.hexadecimal import to_hex
from capdex.errors import Code, InvalidInput, Refused, Unavailable
from capdex.package import VerifiedPackage
from capdex.uri import CapabilityURI
from capdex_publisher.commit_reveal import (
    NO_SECRET,
    block_time,
    carry_out_commits,
    find_commitment,
    plan_commits,
)
from capdex_publisher.errors import not_signed
from capdex_publisher.ethereum.contract import Receipt
from capdex_publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Reverted, Sent
from capdex_publisher.keys.signer import Signer
from capdex_publisher.progress import Reserved, Step
from capdex_publisher.publish.plan import gas_bound
from capdex_publisher.publish.preflight import ReleaseCandidate, look_up
from capdex_publisher.publish.upload import Uploader
from capdex_publisher.registry.change import (
    ChangePlan,
    RegistryChange,
    carry_out_change,
    plan_change,
)
from capdex_publisher.registry.registry import Registry
from capdex_publisher.sponsor.budget import Budget
from capdex_publisher.sponsor.request import SponsorRequest

SIGNATURE_GAS: Final = 45_000  # of a signature and its number, above those of a publication
MAX_OPEN: Final = 32  # publications at once: each holds a package and some connections


@dataclass(frozen=True, slots=True)
class SponsoredRelease:
    """A release on chain. `already`: nothing was sent for this request; the fee is in wei."""

    cap_uri: str
    cid: str
    sha256: str
    already: bool
    tx_hash: str | None = None
    block_number: int | None = None
    fee_wei: int | None = None


class Sponsor:
    """Pays for publications of the accounts in `allowed` (EIP-55) by the account of `signer`."""

    def __init__(
        self,
        registry: Registry,
        signer: Signer,
        uploader: Uploader,
        budget: Budget,
        *,
        allowed: Collection[str],
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> None:
        self._registry, self._signer, self._uploader = registry, signer, uploader
        self.budget = budget
        self._allowed = frozenset(allowed)
        self._fee_cap_wei = fee_cap_wei
        self._open: dict[str, asyncio.Task[SponsoredRelease]] = {}
        # An account's signatures are used in the order of their numbers.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def to_json(self) -> dict[str, Any]:
        """Return what a client may know of the sponsor; amounts are in wei."""
        return {
            "chain_id": self._registry.chain_id,
            "registry": self._registry.address,
            "account": self._signer.address,
            "publishers": len(self._allowed),
            "spent_wei": str(self.budget.spent_wei),
            "left_wei": str(self.budget.left_wei),
        }

    async def publish(self, body: bytes) -> SponsoredRelease:
        """Publish what a request (JSON) asks for, and wait for its block.

        A caller that stops waiting leaves it running; `close` ends it. Raises InvalidInput,
        VerificationFailure, Refused (PERMISSION_DENIED, WRONG_CHAIN, FEE_OVER_CAP, NAME_TAKEN, …),
        Unavailable (RATE_LIMITED with too many open).
        """
        request = SponsorRequest.parse(body)
        self._check_addressed(request)
        said = await asyncio.to_thread(request.announcement)
        key = f"{request.publisher}-{said.sha256.hex()}"
        if (running := self._open.get(key)) is None:
            by_key, chain = request.is_signed_by_key(said), self._registry.chain
            if not by_key and not await chain.code(request.publisher):  # code has ERC-1271
                raise not_signed(request.publisher)
            package = await asyncio.to_thread(request.verify)  # a stranger's may take seconds
            # Another request may have started it while this one waited.
            running = self._open.get(key) or self._start(key, request, package)
        return await asyncio.shield(running)

    async def close(self) -> None:
        """Cancel what is open; the same requests go on from there later."""
        for task in (tasks := tuple(self._open.values())):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(
        self, key: str, request: SponsorRequest, package: VerifiedPackage
    ) -> asyncio.Task[SponsoredRelease]:
        if len(self._open) >= MAX_OPEN:
            raise Unavailable("too many publications are open", Code.RATE_LIMITED)
        task = asyncio.create_task(self._publish(key, request, package))
        self._open[key] = task

        def forget(done: asyncio.Task[SponsoredRelease]) -> None:
            del self._open[key]
            if not done.cancelled():
                done.exception()  # a caller that hung up does not ask for it

        task.add_done_callback(forget)
        return task

    def _check_addressed(self, request: SponsorRequest) -> None:
        """Refuse other accounts, chains and registries, before a package is parsed."""
        if request.publisher not in self._allowed:
            raise Refused(
                f"this sponsor does not pay for {request.publisher}",
                Code.PERMISSION_DENIED,
                why="it pays for the accounts on its allow list",
                fix="ask the sponsor to add it (capdex sponsor serve --allow), or pay yourself",
            )
        ours = (self._registry.chain_id, self._registry.address)
        if (request.chain_id, request.registry) != ours:
            raise Refused(
                f"the publication is signed for {request.registry} on chain {request.chain_id}",
                Code.WRONG_CHAIN,
                why=f"this sponsor pays for {ours[1]} on chain {ours[0]}",
                fix="sign for that registry (--network), or use another sponsor",
            )

    async def _publish(
        self, key: str, request: SponsorRequest, package: VerifiedPackage
    ) -> SponsoredRelease:
        async with self._turns[request.publisher]:
            change = publication_of(self._registry, request, package)
            said = package.announcement
            release = SponsoredRelease(said.cap_uri, said.cid, said.sha256.hex(), already=True)
            candidate = await look_up(package, registry=self._registry)
            bound = gas_bound([candidate]) + SIGNATURE_GAS
            await self._settle(key, change)
            cap = min(self._fee_cap_wei, self.budget.available(key))
            plan = await self._plan(cap, change, bound)
            if plan.already:
                self.budget.forfeit(key)
                return await self._find(candidate, release)
            self.budget.check_account(key)
            await self._uploader.upload(package.data)
            if plan.resumes is None:
                await self._check_unused(request)
            self.budget.reserve(key, cap)  # refused if others have taken it since the plan
            return await self._send(key, plan, bound, request, release)

    async def _settle(self, key: str, change: RegistryChange) -> None:
        """Count the fee of what was sent before a crash, if it is mined by now."""
        if not self.budget.has(key):
            return
        sent = await change.pending(self._signer.address).load()
        receipt = None if sent is None else await self._registry.chain.receipt(*sent.hashes)
        if receipt is not None:
            self.budget.charge(key, receipt[0].fee_wei)
            self.budget.reserve(key, 0)  # it goes on

    async def _check_unused(self, request: SponsorRequest) -> None:
        """Refuse to send a signature that somebody else has sent: the second one would revert."""
        if await self._registry.signature_number(request.publisher, "pending") != request.nonce:
            raise Unavailable(
                "the signature is in a transaction that waits for its block",
                Code.RATE_LIMITED,
                why="somebody else has sent it",
                fix="try again: the release is found when that block is there",
            )

    async def _find(
        self, candidate: ReleaseCandidate, release: SponsoredRelease
    ) -> SponsoredRelease:
        """Return a release that is on chain with its transaction, if the endpoint finds it."""
        event = await self._registry.find_publication(candidate.name, candidate.announcement.semver)
        if event is None:
            return release
        place = event.position
        return replace(release, tx_hash=to_hex(place.tx_hash), block_number=place.block_number)

    async def _plan(self, cap: int, change: RegistryChange, bound: int) -> ChangePlan:
        """Price the publication within the cap: of one publication, or what the budget has left."""
        try:
            return await plan_change(
                change, sender=self._signer.address, fee_cap_wei=cap, immature_gas=bound
            )
        except Refused as error:
            if error.code is Code.FEE_OVER_CAP and cap < self._fee_cap_wei:
                raise self.budget.spent_up() from None
            raise

    async def _send(
        self,
        key: str,
        plan: ChangePlan,
        bound: int,
        request: SponsorRequest,
        release: SponsoredRelease,
    ) -> SponsoredRelease:
        """Send what is set aside for, and count what it has cost."""
        fees, waiting = 0, list[Sent]()

        def on_step(step: Step) -> None:
            nonlocal fees, waiting
            mined = step.receipt if isinstance(step, Reserved) else step
            if isinstance(mined, Receipt | Reverted):
                fees += mined.fee_wei
                waiting = [sent for sent in waiting if mined.tx_hash not in sent.hashes]
                self.budget.charge(key, mined.fee_wei)
            elif isinstance(step, Sent):  # it may replace an earlier one
                waiting = [sent for sent in waiting if sent.tx_hash not in step.hashes] + [step]

        try:
            if plan.transaction is not None:
                plan = await self._commit(plan, bound, request, on_step)
            done = await carry_out_change(plan, signer=self._signer, on_step=on_step)
        except (InvalidInput, Refused):
            self._close(key, waiting)
            raise
        self._close(key, waiting)
        if done.already:
            return release
        tx_hash, block = done.tx_hash, done.block_number
        return replace(release, already=False, tx_hash=tx_hash, block_number=block, fee_wei=fees)

    def _close(self, key: str, waiting: list[Sent]) -> None:
        """Give back what is left; it counts whole while a transaction was not seen in a block."""
        (self.budget.forfeit if waiting else self.budget.release)(key)

    async def _commit(
        self, plan: ChangePlan, bound: int, request: SponsorRequest, on_step: Any
    ) -> ChangePlan:
        """Make the commitment of a new name, where one is needed, and wait until it counts."""
        least, most = await self._registry.commitment_ages()
        name = CapabilityURI.exact(plan.change.subject).name
        needed = least > 0 and request.secret != NO_SECRET
        if not needed or await self._registry.name_state(name) is not None:
            return plan
        oldest = await block_time(self._registry.chain) - most
        commitments = [
            await find_commitment(self._registry, name, request.publisher, request.secret, oldest)
        ]
        return await carry_out_commits(
            await plan_commits(plan, commitments, self._registry),
            commitments,
            bound,
            registry=self._registry,
            signer=self._signer,
            on_step=on_step,
        )


def publication_of(
    registry: Registry, request: SponsorRequest, package: VerifiedPackage
) -> RegistryChange:
    """Return the publication of a signed package as a change that any account can send."""
    uri = package.announcement.cap_uri

    async def stands(_sender: str) -> bool:
        if (await look_up(package, registry=registry)).already:
            return True
        number = await registry.signature_number(request.publisher)
        if number != request.nonce:
            raise Refused(
                f"the signature has number {request.nonce}, and the next one is {number}",
                Code.PERMISSION_DENIED,
                why="a signature is used once, and in order",
                fix="sign again: capdex sponsor sign",
            )
        if await block_time(registry.chain) > request.deadline:
            raise Refused(
                "the signature is no longer valid",
                Code.PERMISSION_DENIED,
                why=f"its deadline was {request.deadline}, in seconds of block time",
                fix="sign again: capdex sponsor sign",
            )
        return False

    async def arguments() -> tuple[Any, ...]:
        return request.arguments(package)

    function, target = "publishWithSignature", request.publisher
    return RegistryChange("sponsor", uri, registry, function, stands, arguments, target=target)
