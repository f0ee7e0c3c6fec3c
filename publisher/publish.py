"""Publishing one release: plan it, show the plan, carry it out; safe to repeat at any point.

    bytes ──plan──> Plan ──(a person agrees)──> carry_out ──> Outcome
            verify, name, version, fee          upload, read back, send, receipt, served

A dry run is `plan` alone. Whatever happened before a crash is found again: the release on chain,
a transaction that waits for its block in the journal, the upload by its CID.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from capdex import package
from capdex.cid import Cid
from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.events import Announcement
from capdex.net.ipfs import Storage
from capdex.package import VerifiedPackage
from publisher.chain import RECEIPT_WAIT_S
from publisher.journal import Journal
from publisher.outcome import (
    SERVED_WAIT_S,
    IsServed,
    OnStep,
    Outcome,
    Uploaded,
    ignore,
    wait_served,
)
from publisher.registry import Receipt, Registry, parse_address
from publisher.reverts import name_taken, version_exists
from publisher.signers import Signer
from publisher.source import read_manifest
from publisher.transaction import DEFAULT_FEE_CAP_WEI, Sent, Transaction


@dataclass(frozen=True, slots=True)
class Plan:
    """What publishing would do. Exactly one of `already`, `resumes` and `transaction` is set.

    `claims_name`: the name is free and becomes the account's.
    """

    package: VerifiedPackage
    claims_name: bool
    already: bool = False
    resumes: Sent | None = None
    transaction: Transaction | None = None

    @property
    def announcement(self) -> Announcement:
        """What the chain will say of the release."""
        return self.package.announcement

    @property
    def name(self) -> str:
        """The capability's name."""
        return self.package.manifest.uri.name


def announce(data: bytes, *, chain_id: int, publisher: str) -> Announcement:
    """What the chain would say if these bytes were published; raises InvalidInput with problems."""
    uri, cid = read_manifest(data).uri, Cid.of(data)
    return Announcement(
        chain_id=chain_id,
        publisher=publisher,
        cap_uri=str(uri),
        semver=str(uri.version),
        cid=str(cid),
        sha256=cid.digest,
    )


async def plan(
    data: bytes,
    *,
    registry: Registry,
    publisher: str,
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
) -> Plan:
    """Check everything that could refuse a release, the cheapest first, and price it.

    Raises InvalidInput (problems; VERSION_EXISTS), VerificationFailure as every node would,
    Refused (NAME_TAKEN, EMPTY_ACCOUNT, a fee over the cap), Unavailable.
    """
    address = parse_address(publisher)
    announcement = announce(data, chain_id=registry.chain_id, publisher=address)
    verified = package.verify(announcement, data)
    name, semver = verified.manifest.uri.name, announcement.semver
    owner = await registry.owner_of(name)
    if owner is None:
        taken_by = await registry.name_of_skeleton(name)
        if taken_by is not None:
            raise name_taken(name, taken_by, await registry.owner_of(taken_by) or "")
    elif owner != address:  # before the version: raising that would not help
        raise name_taken(name, name, owner)
    elif await _is_published(registry, name, announcement):
        return Plan(verified, claims_name=False, already=True)
    journal = Journal(registry, "publish", name, semver)
    sent = await journal.recall(announcement.sha256.hex())
    if sent is not None:
        return Plan(verified, claims_name=owner is None, resumes=sent)
    priced = await registry.price_publish(
        address, name, semver, announcement.cid, announcement.sha256, fee_cap_wei=fee_cap_wei
    )
    return Plan(verified, claims_name=owner is None, transaction=priced)


async def carry_out(
    plan: Plan,
    *,
    registry: Registry,
    signer: Signer,
    storage: Storage,
    served: IsServed | None = None,
    on_step: OnStep = ignore,
    receipt_timeout_s: float = RECEIPT_WAIT_S,
    served_timeout_s: float = SERVED_WAIT_S,
) -> Outcome:
    """Upload, read back, send, wait for the block, then until `served(cap_uri)` is true.

    The upload comes first and happens on every run: what is on chain can be fetched, and a lost
    copy is put back. Raises Unavailable (run again), Refused, or why the contract refused.
    """
    announcement = plan.announcement
    if signer.address != announcement.publisher:
        raise UsageError(
            f"the key is that of {signer.address}",
            why=f"the plan is for {announcement.publisher}",
            fix="use the key file of the account that the package names",
        )
    await _upload(storage, plan.package.data)
    on_step(Uploaded(announcement.cid, len(plan.package.data)))
    receipt, already = await _announce_on_chain(plan, registry, signer, on_step, receipt_timeout_s)
    after_s = await wait_served(announcement.cap_uri, served, on_step, timeout_s=served_timeout_s)
    return Outcome.of(
        announcement.cap_uri,
        announcement.cid,
        announcement.sha256,
        receipt,
        already=already,
        served_after_s=after_s,
    )


async def _announce_on_chain(
    plan: Plan, registry: Registry, signer: Signer, on_step: OnStep, timeout_s: float
) -> tuple[Receipt | None, bool]:
    """The receipt of the release's publication, and whether it was there before."""
    announcement, name = plan.announcement, plan.name
    journal = Journal(registry, "publish", name, announcement.semver)
    sent = plan.resumes
    # A person may have thought for an hour since the plan was made: look once more.
    if plan.already or (sent is None and await _is_published(registry, name, announcement)):
        return await _published_before(registry, plan), True
    if sent is None:
        if plan.transaction is None:
            raise UsageError("the plan has nothing to send", fix="plan again")
        fingerprint = announcement.sha256.hex()
        sent = await registry.send(
            signer,
            plan.transaction,
            on_signed=lambda signed: journal.remember(signed, fingerprint),
        )
    on_step(sent)
    try:
        receipt = await registry.wait(sent.tx_hash, timeout_s=timeout_s)
    except InvalidInput:
        # Reverted. Another process of ours may have been first with the same bytes.
        journal.forget()
        if await _is_published(registry, name, announcement):
            return await _published_before(registry, plan), True
        raise
    journal.forget()
    on_step(receipt)
    return receipt, False


async def _is_published(registry: Registry, name: str, announcement: Announcement) -> bool:
    """Whether exactly these bytes are published; raises VERSION_EXISTS if others are."""
    release = await registry.release(name, announcement.semver)
    if release is None:
        return False
    if release.sha256 != announcement.sha256:
        raise version_exists(name, announcement.semver, release.sha256.hex())
    return True


async def _published_before(registry: Registry, plan: Plan) -> Receipt | None:
    Journal(registry, "publish", plan.name, plan.announcement.semver).forget()
    event = await registry.find_publication(plan.name, plan.announcement.semver)
    return None if event is None else await registry.wait("0x" + event.position.tx_hash.hex())


async def _upload(storage: Storage, data: bytes) -> None:
    expected = Cid.of(data)
    stored = await storage.put(data)
    if stored != expected or hashlib.sha256(await storage.get(stored)).digest() != expected.digest:
        raise Unavailable(
            "the storage did not keep the package as it was given",
            Code.IPFS_UNAVAILABLE,
            why=f"it answers {stored} where {expected} was put",
            fix="check the IPFS endpoint (--ipfs); nothing was sent to the chain",
        )
