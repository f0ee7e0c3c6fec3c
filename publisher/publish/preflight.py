"""A package on its way: verified, and what the registry says of it before anything is paid."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capdex import package
from capdex.encoding.abi import parse_address
from capdex.errors import CapdexError, InvalidInput, Refused
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import ManifestReading, read
from capdex.package import VerifiedPackage
from capdex.registry.events import Announcement
from capdex.uri import is_reserved, skeleton
from publisher.errors import given_up, name_reserved, name_taken, version_exists
from publisher.ethereum.transaction import Sent
from publisher.registry.registry import NameRecord, Registry
from publisher.tx.pending import Journal

AT_ONCE: Final = 8  # packages looked up at the same time: enough to hide a slow endpoint


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A package that may be published. `claims_name`: the name is free and becomes the account's.

    `already`: these bytes are published. `resumes`: a transaction that publishes them was sent.
    """

    package: VerifiedPackage
    claims_name: bool
    already: bool = False
    resumes: Sent | None = None

    @property
    def announcement(self) -> Announcement:
        """What the chain will say of the release."""
        return self.package.announcement

    @property
    def name(self) -> str:
        """The capability's name."""
        return self.package.manifest.uri.name

    @property
    def fingerprint(self) -> str:
        """What tells a transaction of these bytes from one of others."""
        return self.announcement.sha256.hex()

    @property
    def to_send(self) -> bool:
        """Whether a transaction is still to be made."""
        return not self.already and self.resumes is None


def announce(reading: ManifestReading, *, chain_id: int, publisher: str) -> Announcement:
    """Return what the chain says once the file is published; raise InvalidInput with problems."""
    uri, cid = reading.require().uri, Cid.of(reading.data)
    return Announcement(
        chain_id=chain_id,
        publisher=publisher,
        cap_uri=str(uri),
        semver=str(uri.version),
        cid=str(cid),
        sha256=cid.digest,
    )


async def examine(
    data: bytes, *, registry: Registry, publisher: str, fee_cap_wei: int | None = None
) -> Candidate:
    """Check everything that could refuse a release, the cheapest first.

    Raises InvalidInput (problems; VERSION_EXISTS), VerificationFailure as every node would,
    Refused (NAME_TAKEN, NAME_RESERVED, NOT_OWNER), Unavailable.
    """
    address = parse_address(publisher)
    reading = read(data)
    announcement = announce(reading, chain_id=registry.chain_id, publisher=address)
    verified = package.verify(announcement, reading)
    return await look_up(verified, registry=registry, fee_cap_wei=fee_cap_wei)


async def look_up(
    verified: VerifiedPackage, *, registry: Registry, fee_cap_wei: int | None = None
) -> Candidate:
    """What the registry says of a verified package now; raises like `examine`.

    `fee_cap_wei`: what it may cost from now on to replace a transaction that is stuck.
    """
    announcement, name = verified.announcement, verified.manifest.uri.name
    record = await registry.name_record(name)
    published = await registry.release(name, announcement.semver) if record.claimed else None
    if published is not None and published.sha256 == announcement.sha256:
        return Candidate(verified, claims_name=False, already=True)
    await _check_may_publish(registry, name, record, announcement.publisher)
    if published is not None:  # told last: another version would not help who may not publish
        raise version_exists(name, announcement.semver, published.sha256.hex())
    entry = journal(registry, verified)
    sent = await entry.recall(announcement.sha256.hex(), fee_cap_wei=fee_cap_wei)
    return Candidate(verified, claims_name=not record.claimed, resumes=sent)


async def _check_may_publish(
    registry: Registry, name: str, record: NameRecord, address: str
) -> None:
    """Raise Refused unless the name is the account's, maintained by it, or free."""
    if record.owner == address:
        return
    if record.renounced:
        raise given_up(name)
    if record.owner is None:
        await check_free(registry, name, address)
    elif not await registry.is_maintainer(name, address):
        raise taken(name, name, record.owner, address)


async def check_free(registry: Registry, name: str, address: str) -> None:
    """Raise Refused (NAME_RESERVED, NAME_TAKEN) unless `address` can claim what nobody owns."""
    if is_reserved(name) or await registry.is_reserved(name):
        raise name_reserved(name)
    taken_by = await registry.name_of_skeleton(name)
    if taken_by is not None:
        raise taken(name, taken_by, await registry.owner_of(taken_by) or "", address)


def taken(name: str, taken_by: str, owner: str, address: str) -> Refused:
    """A name of another account, who could let `address` publish there."""
    error = name_taken(name, taken_by, owner)
    error.fix = (
        f"pick another name, or ask the owner to run: capdex maintainer add {taken_by} {address}"
    )
    return error


async def examine_all(
    files: Sequence[bytes],
    *,
    registry: Registry,
    publisher: str,
    fee_cap_wei: int | None = None,
) -> list[Candidate | CapdexError]:
    """Examine several files side by side: for each its candidate, or why it cannot be published."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(data: bytes) -> Candidate | CapdexError:
        async with slots:
            try:
                return await examine(
                    data, registry=registry, publisher=publisher, fee_cap_wei=fee_cap_wei
                )
            except CapdexError as error:
                return error

    return _apart(await asyncio.gather(*map(one, files)))


def journal(registry: Registry, verified: VerifiedPackage) -> Journal:
    """Where the transaction that publishes a package is remembered."""
    uri = verified.manifest.uri
    return Journal(registry, "publish", uri.name, str(uri.version))


def _apart(found: Sequence[Candidate | CapdexError]) -> list[Candidate | CapdexError]:
    """Refuse what cannot be published together: a version twice, or names that look the same."""
    uris: set[str] = set()
    names: dict[str, str] = {}  # by skeleton
    kept: list[Candidate | CapdexError] = []
    for candidate in found:
        if isinstance(candidate, Candidate):
            uri, name = candidate.announcement.cap_uri, candidate.name
            first = names.setdefault(skeleton(name), name)
            if uri in uris:
                candidate = InvalidInput(
                    f"{uri} is given twice",
                    why="a version is published once",
                    fix="name one file for each version",
                )
            elif first != name:
                candidate = name_taken(name, first)
            uris.add(uri)
        kept.append(candidate)
    return kept
