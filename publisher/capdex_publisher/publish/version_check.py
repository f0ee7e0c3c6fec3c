"""Compare a release with its predecessor: the version moves as far as changes require (P2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capdex.diff.diff import Allowance, Difference, check_step, compare
from capdex.diff.semver_step import predecessor
from capdex.errors import InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import Manifest, read
from capdex.registry.state import ReleaseState
from capdex.version import Version
from capdex_publisher.publish.preflight import ReleaseCandidate
from capdex_publisher.registry.registry import Registry

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
        Version.parse(x.announcement.semver): x.package.manifest
        for x in beside
        if x.name == candidate.name
    }
    on_chain: dict[Version, ReleaseState] = {}
    if not candidate.claims_name:
        for release in await registry.releases(candidate.name):
            if not release.yanked:
                on_chain[Version.parse(release.semver)] = release
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
    check_step(difference, previous, version, allow=allow)
    return VersionComparison(candidate.uri, previous, difference, latest=latest)


async def _fetch_manifest(release: ReleaseState, sources: Sequence[BlockSource]) -> Manifest:
    """Return the manifest of a release on chain; raise Unavailable, or InvalidInput without one."""
    from capdex.net.ipfs.multi_source import MultiSource

    data = await MultiSource(sources).get(Cid.parse(release.cid))
    if hashlib.sha256(data).digest() != release.sha256:
        raise Unavailable("the bytes are not those of the release")
    return read(data).require()
