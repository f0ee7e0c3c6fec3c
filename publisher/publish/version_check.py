"""Comparing a release with the one it follows: does its version move as far as it owes (P2)?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from capdex.diff.diff import Allowance, Difference, check_step, compare
from capdex.diff.semver_step import predecessor
from capdex.errors import InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.manifest import manifest
from capdex.manifest.manifest import Manifest
from capdex.net.ipfs.open import Source, fetch
from capdex.semver import Version
from publisher.publish.preflight import Candidate
from publisher.registry.registry import Registry, Release


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was compared: `previous` None for a first release; else `difference`, or why not."""

    previous: Version | None = None
    difference: Difference | None = None
    unread: str = ""


async def compare_with_previous(
    candidate: Candidate,
    *,
    registry: Registry,
    sources: Sequence[Source],
    beside: Iterable[Candidate] = (),
    allow: frozenset[Allowance] = frozenset(),
) -> Comparison:
    """Compare with the highest lower release that is not yanked, on chain or to be published too.

    `beside` are the other packages of the same call. Raises InvalidInput (STEP_TOO_SMALL,
    SCHEMA_CHANGED). Old bytes that cannot be had are no refusal: the author could not mend it.
    """
    version = Version.parse(candidate.announcement.semver)
    here = {
        Version.parse(x.announcement.semver): x.package.manifest
        for x in beside
        if x.name == candidate.name
    }
    there: dict[Version, Release] = {}
    if not candidate.claims_name:
        for release in await registry.releases(candidate.name):
            if not release.yanked:
                there[Version.parse(release.semver)] = release
    previous = predecessor({*here, *there}, version)
    if previous is None:
        return Comparison()
    try:
        old = here.get(previous) or await _read(there[previous], sources)
    except (InvalidInput, Unavailable) as error:
        return Comparison(previous, unread=error.why or error.message)
    difference = compare(old, candidate.package.manifest)
    check_step(difference, previous, version, allow=allow)
    return Comparison(previous, difference)


async def _read(release: Release, sources: Sequence[Source]) -> Manifest:
    """The manifest of a release on chain; raises Unavailable, or InvalidInput if it has none."""
    data = await fetch(Cid.parse(release.cid), sources)
    if hashlib.sha256(data).digest() != release.sha256:
        raise Unavailable("the bytes are not those of the release")
    found = manifest.read(data).manifest
    if found is None:
        raise InvalidInput("the package on chain is not valid")
    return found
