"""Publish packages by one call that is safe to repeat after it was stopped at any point.

    files ──prepare──> VerifiedPackage ──look up──> ReleaseCandidate ──make_plan──> PublishPlan …
          read, sign, judge            name, version          batches, fees
    … ──confirm──> upload ──> read back ──commit──> new names ──announce──> blocks ──> results

A later run finds what happened before a crash: releases and commitments on chain, pending
transactions in their files, uploads by their CIDs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from capdex.diff.diff import Allowance
from capdex.errors import CapdexError, Refused
from capdex.package import RejectedPackage, VerifiedPackage
from capdex.version import Version
from capdex_publisher.authoring.files import read_files
from capdex_publisher.authoring.sign import Author
from capdex_publisher.authoring.validate import PackageFile
from capdex_publisher.ethereum.contract import Receipt
from capdex_publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Transaction
from capdex_publisher.keys.signer import Signer
from capdex_publisher.progress import SERVED_WAIT_S, Step, ignore, wait_served
from capdex_publisher.publish.announce import Announced, Announcer, Results
from capdex_publisher.publish.plan import PublishPlan, make_plan
from capdex_publisher.publish.preflight import (
    ReleaseCandidate,
    VersionComparison,
    compare_with_previous,
    look_up_all,
    refuse_conflicts,
)
from capdex_publisher.publish.prepare import FileRead, FileSigned, OpenAuthor, Preparation
from capdex_publisher.publish.upload import Uploader
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import RECEIPT_WAIT_S


@dataclass(frozen=True, slots=True)
class FileRejected:
    """A file is not published."""

    file: str
    error: CapdexError


PublishStep = FileRead | FileSigned | FileRejected | VersionComparison | PublishPlan | Step
Confirm = Callable[[PublishPlan], Awaitable[bool]]
IsServed = Callable[[str, str], Awaitable[bool]]  # of a capability URI and its sha256 (hex)


@dataclass(slots=True)
class Publication:
    """Result for one file. `error` says why it is not published (in a dry run: cannot be).

    `already`: these bytes were on chain before. `commitment` and `transaction` are what a dry run
    would send. `receipt` is that of the whole transaction, whose events are all its releases; None
    in a dry run, or if the transaction is older than the logs that the endpoint searches.
    `not_served` says why the node did not serve it within the time allowed.
    """

    file: str
    cap_uri: str = ""
    cid: str = ""
    sha256: str = ""  # hex
    already: bool = False
    claims_name: bool = False
    previous: Version | None = None
    commitment: Transaction | None = None
    transaction: Transaction | None = None
    receipt: Receipt | None = None
    served_after_s: float | None = None
    not_served: str = ""
    error: CapdexError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the result of a published file, or of a dry run, as the command line prints it."""
        plain = ("file", "cap_uri", "cid", "sha256", "already", "claims_name")
        mined = ("tx_hash", "block_number", "gas_used", "fee_wei")
        return {
            **{key: getattr(self, key) for key in plain},
            "previous": None if self.previous is None else str(self.previous),
            "commitment": None if self.commitment is None else self.commitment.to_json(),
            "transaction": None if self.transaction is None else self.transaction.to_json(),
            **{key: getattr(self.receipt, key, None) for key in mined},
            "batch": self.receipt and len(self.receipt.events),
            "served_after_s": self.served_after_s,
        }


Prepared = tuple[Publication, VerifiedPackage | RejectedPackage]


async def publish(
    files: Sequence[PackageFile],
    *,
    registry: Registry | AbstractAsyncContextManager[Registry],
    chain_id: int,
    signer: Signer,
    uploader: Uploader,
    author: Author | OpenAuthor | None = None,
    allow: frozenset[Allowance] = frozenset(),
    allow_secret_like: Collection[str] = (),
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    dry_run: bool = False,
    confirm: Confirm | None = None,
    is_served: IsServed | None = None,
    on_step: Callable[[PublishStep], None] = ignore,
    receipt_timeout_s: float = RECEIPT_WAIT_S,
    served_timeout_s: float = SERVED_WAIT_S,
) -> list[Publication]:
    """Publish files by the account of `signer`; return the result of each, in their order.

    Files without a signature are signed by `author` (default: the signer); this needs no chain, and
    a registry that is not open yet (`Registry.connect`) is opened after it. `confirm` is called
    with the plan before anything is uploaded or sent, if there is something to send; without it,
    `fee_cap_wei` alone limits the cost. `is_served` is polled for each release until a node has it.

    An error of one file is its result and does not stop the others. Raises Refused (NO_CONSENT,
    EMPTY_ACCOUNT, FEE_OVER_CAP) and Unavailable where no file can go on.
    """
    call = _Call(files, uploader, on_step)
    prepared = await call.prepare(
        Preparation(
            account=signer.address,
            chain_id=chain_id,
            author=author or signer,
            write=not dry_run,
            on_step=on_step,
            allow_secret_like=allow_secret_like,
        )
    )
    if not prepared:
        return call.results
    async with nullcontext(registry) if isinstance(registry, Registry) else registry as opened:
        candidates = await call.look_up(prepared, opened, fee_cap_wei)
        candidates = await call.compare(candidates, opened, allow)
        plan = await make_plan(candidates, registry=opened, signer=signer, fee_cap_wei=fee_cap_wei)
        call.record_plan(plan, dry_run=dry_run)
        on_step(plan)
        if dry_run or not plan.candidates:
            return call.results
        if plan.transactions and confirm is not None and not await confirm(plan):
            raise Refused("stopped: the plan was not agreed to", fix="nothing was sent")
        announcer = Announcer(plan, opened, signer, on_step, receipt_timeout_s)
        await call.upload(plan, announcer)
        current = await announcer.refresh()
        if plan.commitments:
            await announcer.commit(current)
            current = await announcer.refresh()
        await announcer.announce(current)
        await call.finish(announcer.results, is_served, served_timeout_s)
    return call.results


class _Call:
    """State of one `publish` call: the result of each file so far."""

    def __init__(
        self,
        files: Sequence[PackageFile],
        uploader: Uploader,
        on_step: Callable[[PublishStep], None],
    ) -> None:
        self._files = files
        self._uploader = uploader
        self._on_step = on_step
        self._by_uri: dict[str, Publication] = {}  # of each candidate
        self.results = [Publication(file.name) for file in files]

    async def prepare(self, preparation: Preparation) -> list[Prepared]:
        """Return the package of each file that is ready or not bound."""
        ready = []
        for file, result in zip(self._files, self.results, strict=True):
            try:
                ready.append((result, await preparation.prepare(file)))
            except CapdexError as error:
                self._reject(result, error)
        return ready

    async def look_up(
        self, prepared: list[Prepared], registry: Registry, fee_cap_wei: int
    ) -> list[ReleaseCandidate]:
        """Return the candidates that the registry accepts.

        Packages of another account or chain are rejected here: the endpoint's chain is known now.
        """
        packages = []
        for result, judged in prepared:
            if isinstance(judged, VerifiedPackage):
                packages.append((result, judged))
            else:
                self._reject(result, judged.failure())
        outcomes = refuse_conflicts(
            await look_up_all([x for _, x in packages], registry=registry, fee_cap_wei=fee_cap_wei)
        )
        candidates = []
        for (result, package), outcome in zip(packages, outcomes, strict=True):
            said = package.announcement
            result.cap_uri, result.cid, result.sha256 = said.cap_uri, said.cid, said.sha256.hex()
            if isinstance(outcome, ReleaseCandidate):
                result.already, result.claims_name = outcome.already, outcome.claims_name
                self._by_uri[outcome.uri] = result
                candidates.append(outcome)
            else:
                self._reject(result, outcome)
        return candidates

    async def compare(
        self,
        candidates: Sequence[ReleaseCandidate],
        registry: Registry,
        allow: frozenset[Allowance],
    ) -> list[ReleaseCandidate]:
        """Return the candidates whose version moves as far as their changes require."""
        kept = []
        for candidate in candidates:
            try:
                if candidate.to_send:
                    compared = await compare_with_previous(
                        candidate,
                        registry=registry,
                        sources=self._uploader.sources,
                        beside=candidates,
                        allow=allow,
                    )
                    self._by_uri[candidate.uri].previous = compared.previous
                    self._on_step(compared)
                kept.append(candidate)
            except CapdexError as error:
                self._reject(self._by_uri[candidate.uri], error)
        return kept

    def record_plan(self, plan: PublishPlan, *, dry_run: bool) -> None:
        """Record what the plan refuses and, in a dry run, what would be sent for each file."""
        for uri, error in plan.refused.items():
            self._reject(self._by_uri[uri], error)
        for batch in plan.batches if dry_run else ():
            for candidate in batch.candidates:
                result = self._by_uri[candidate.uri]
                result.commitment = plan.commits.get(candidate.name)
                result.transaction = batch.transaction

    async def upload(self, plan: PublishPlan, announcer: Announcer) -> None:
        """Store every package with its files and fetch them back, before anything is paid.

        Released packages too: what is on chain can be fetched, and a lost copy is put back.
        """
        candidates = []
        for candidate in plan.candidates:
            try:
                await self._upload_files(candidate)
                candidates.append(candidate)
            except CapdexError as error:
                announcer.fail([candidate], error)
        packages = [candidate.package.data for candidate in candidates]
        ends = await self._uploader.upload_all(packages, on_step=self._on_step)
        for candidate, end in zip(candidates, ends, strict=True):
            if isinstance(end, CapdexError):
                announcer.fail([candidate], end)

    async def _upload_files(self, candidate: ReleaseCandidate) -> None:
        """Read the files of a package again, since minutes may have passed, and upload them."""
        resources = candidate.package.manifest.resources
        if not resources:
            return
        result = self._by_uri[candidate.uri]
        file = next(x for x, own in zip(self._files, self.results, strict=True) if own is result)
        data = read_files(resources, file.folder).require(file.name, file.folder)
        self._on_step(await self._uploader.upload_files(candidate.uri, data.values()))

    async def finish(self, results: Results, is_served: IsServed | None, timeout_s: float) -> None:
        """Wait until the node serves what is announced, and record every result."""

        async def wait(uri: str, end: Announced) -> None:
            result = self._by_uri[uri]
            result.already, result.receipt = end.already, end.receipt
            served = await wait_served(
                None if is_served is None else lambda: is_served(uri, result.sha256),
                self._on_step,
                timeout_s=timeout_s,
            )
            result.served_after_s, result.not_served = served.after_s, served.why

        ends = [(uri, end) for uri, end in results.items() if isinstance(end, Announced)]
        await asyncio.gather(*(wait(uri, end) for uri, end in ends))
        for uri, result in self._by_uri.items():
            if isinstance(error := results.get(uri), CapdexError):
                self._reject(result, error)

    def _reject(self, result: Publication, error: CapdexError) -> None:
        result.error = error
        self._on_step(FileRejected(result.file, error))
