"""Check against the registry that a verified package can be published, before anything is paid.

Its version moves as far from the predecessor's as the changes require (P2).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from capdex.diff.diff import Allowance, Difference, check_step, compare
from capdex.diff.semver_step import predecessor
from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import Manifest, read
from capdex.package import VerifiedPackage
from capdex.registry.events import Announcement
from capdex.registry.state import NameState, ReleaseState
from capdex.uri import is_reserved, skeleton
from capdex.version import Version
from capdex_publisher.errors import given_up, name_reserved, name_taken, version_exists
from capdex_publisher.ethereum.transaction import Sent
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.pending import PendingTransaction

MAX_CONCURRENT_LOOKUPS: Final = 8  # enough to hide a slow endpoint


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseCandidate:
    """A package that may be published. `claims_name`: the name is free and becomes the account's.

    `already`: these bytes are published. `resumes`: a transaction that publishes them was sent.
    """

    package: VerifiedPackage
    claims_name: bool
    already: bool = False
    resumes: Sent | None = None

    @property
    def announcement(self) -> Announcement:
        """Content of the release's event."""
        return self.package.announcement

    @property
    def uri(self) -> str:
        """The capability URI of the release."""
        return self.announcement.cap_uri

    @property
    def name(self) -> str:
        """The capability's name."""
        return self.package.manifest.uri.name

    @property
    def to_send(self) -> bool:
        """True if a transaction is still to be made."""
        return not self.already and self.resumes is None


async def look_up(
    package: VerifiedPackage, *, registry: Registry, fee_cap_wei: int | None = None
) -> ReleaseCandidate:
    """Read what the registry says of a package now.

    `fee_cap_wei`: what it may cost from now on to replace a transaction that is stuck. Raises
    InvalidInput VERSION_EXISTS, Refused (WRONG_CHAIN, NAME_TAKEN, NAME_RESERVED, NOT_OWNER),
    Unavailable.
    """
    announcement, name = package.announcement, package.manifest.uri.name
    if announcement.chain_id != registry.chain_id:
        raise Refused(
            f"the package is for chain {announcement.chain_id}, and not for {registry.chain_id}",
            Code.WRONG_CHAIN,
            why="the signed file names the chain, and no node serves it from another",
            fix="sign it for the chain of the registry",
        )
    state = await registry.name_state(name)
    published = await registry.release(name, announcement.semver) if state else None
    if published is not None and published.sha256 == announcement.sha256:
        return ReleaseCandidate(package, claims_name=False, already=True)
    await _check_may_publish(registry, name, state, announcement.publisher)
    if published is not None:  # last: another version does not help an account without permission
        raise version_exists(name, announcement.semver, published.sha256.hex())
    sent = await pending(registry, package).load(fee_cap_wei=fee_cap_wei)
    return ReleaseCandidate(package, claims_name=state is None, resumes=sent)


async def look_up_all(
    packages: Sequence[VerifiedPackage], *, registry: Registry, fee_cap_wei: int | None = None
) -> list[ReleaseCandidate | CapdexError]:
    """Look up packages side by side; for each return its candidate, or why it is refused."""
    slots = asyncio.Semaphore(MAX_CONCURRENT_LOOKUPS)

    async def attempt(package: VerifiedPackage) -> ReleaseCandidate | CapdexError:
        async with slots:
            try:
                return await look_up(package, registry=registry, fee_cap_wei=fee_cap_wei)
            except CapdexError as error:
                return error

    return await asyncio.gather(*map(attempt, packages))


def refuse_conflicts(
    outcomes: Sequence[ReleaseCandidate | CapdexError],
) -> list[ReleaseCandidate | CapdexError]:
    """Refuse all but the first of one version, and all but the first of names that look alike."""
    uris: set[str] = set()
    names: dict[str, str] = {}  # by skeleton
    kept: list[ReleaseCandidate | CapdexError] = []
    for candidate in outcomes:
        if isinstance(candidate, ReleaseCandidate):
            uri, name = candidate.uri, candidate.name
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


async def check_free(registry: Registry, name: str, address: str) -> None:
    """Raise Refused (NAME_RESERVED, NAME_TAKEN) unless `address` can claim an unowned name."""
    if is_reserved(name):
        raise name_reserved(name)
    taken_by = await registry.name_of_skeleton(name)
    if taken_by is not None:
        raise name_taken(name, taken_by, await registry.owner_of(taken_by) or "", address)


def pending(registry: Registry, package: VerifiedPackage) -> PendingTransaction:
    """Return the file of the pending transaction that publishes a package."""
    name, announced = package.manifest.uri.name, package.announcement
    fingerprint = announced.sha256.hex()
    return PendingTransaction(registry, "publish", name, announced.semver, fingerprint)


async def _check_may_publish(
    registry: Registry, name: str, state: NameState | None, address: str
) -> None:
    """Raise Refused unless the name is the account's, maintained by it, or free."""
    if state is None:
        await check_free(registry, name, address)
        return
    if state.owner is None:
        raise given_up(name)
    if state.owner != address and not await registry.is_maintainer(name, address):
        raise name_taken(name, name, state.owner, address)


if TYPE_CHECKING:
    from capdex.net.ipfs.source import BlockSource


@dataclass(frozen=True, slots=True)
class VersionComparison:
    """Comparison of a release with its predecessor; `previous` is None for a first release.

    `difference` is None where the predecessor could not be read; `unread` then says why.
    `latest` is the highest stable release on chain if it is above this one: the name alone, or a
    range, will then not mean the new release.
    """

    cap_uri: str
    previous: Version | None = None
    difference: Difference | None = None
    unread: str = ""
    latest: Version | None = None


async def compare_with_previous(
    candidate: ReleaseCandidate,
    *,
    registry: Registry,
    sources: Sequence[BlockSource],
    beside: Iterable[ReleaseCandidate] = (),
    allow: frozenset[Allowance] = frozenset(),
) -> VersionComparison:
    """Compare with the highest lower release that is not yanked, on chain or in `beside`.

    `beside` are the other packages of the same call. Raises InvalidInput (STEP_TOO_SMALL,
    SCHEMA_CHANGED). Bytes of the predecessor that are gone do not refuse a release: the author
    could not bring them back.
    """
    version = Version.parse(candidate.announcement.semver)
    in_call = {
        Version.parse(other.announcement.semver): other.package.manifest
        for other in beside
        if other.name == candidate.name
    }
    releases = [] if candidate.claims_name else await registry.releases(candidate.name)
    every = {Version.parse(release.semver): release for release in releases}
    on_chain = {one: release for one, release in every.items() if not release.yanked}
    above = [x for x in on_chain if x > version and not x.prerelease]
    latest = max(above, default=None)
    previous = predecessor({*in_call, *on_chain}, version)
    if previous is None:
        return VersionComparison(candidate.uri, latest=latest)
    try:
        old = in_call.get(previous) or await _fetch_manifest(on_chain[previous], sources)
    except (InvalidInput, Unavailable) as error:
        return VersionComparison(
            candidate.uri, previous, unread=error.why or error.message, latest=latest
        )
    difference = compare(old, candidate.package.manifest)
    check_step(difference, previous, version, allow=allow, released={*in_call, *every})
    return VersionComparison(candidate.uri, previous, difference, latest=latest)


async def _fetch_manifest(release: ReleaseState, sources: Sequence[BlockSource]) -> Manifest:
    """Return the manifest of a release on chain; raise Unavailable, or InvalidInput without one."""
    from capdex.net.ipfs.multi_source import MultiSource

    data = await MultiSource(sources).get(Cid.parse(release.cid))
    if hashlib.sha256(data).digest() != release.sha256:
        raise Unavailable("the bytes are not those of the release")
    return read(data).require()
