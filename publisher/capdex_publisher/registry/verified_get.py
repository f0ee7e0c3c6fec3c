"""Fetch the package of a release, and verify it against the chain."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass

from capdex.errors import Code, InvalidInput, Unavailable, quoted, untrusted_text
from capdex.ipld.cid import Cid
from capdex.net.ipfs.gateway import Gateway
from capdex.net.ipfs.multi_source import MultiSource
from capdex.net.node_client import call_tool
from capdex.package import VerifiedPackage, judge_announcement, verify
from capdex.registry.events import Announcement
from capdex.uri import CapabilityURI
from capdex.version import Version, VersionRange, latest, max_satisfying
from capdex_publisher.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class VerifiedDownload:
    """A package that agrees with the chain; its release may be yanked nevertheless.

    `newer` is the release that a name or range means on chain, if the node answered another one.
    """

    package: VerifiedPackage
    yanked: bool
    newer: CapabilityURI | None = None


async def get_verified(
    uri: CapabilityURI,
    registry: AbstractAsyncContextManager[Registry],
    *,
    gateway_url: str,
    mcp_url: str = "",
) -> VerifiedDownload:
    """Fetch the package of a release from a gateway, and verify it against the chain.

    `registry` opens the registry, such as `Registry.connect(…)`. A node (`mcp_url`) is needed only
    to choose the version for a name or a range. Raises VerificationFailure for other bytes than
    the chain has, InvalidInput NOT_FOUND, Unavailable.
    """
    exact = uri if isinstance(uri.selector, Version) else await _choose(uri, mcp_url)
    async with registry as opened:
        announcement, yanked = await announcement_of(opened, exact)
        newer = None if exact is uri else await _meant(opened, uri)
    if rejected := judge_announcement(announcement):
        raise rejected.failure()
    async with Gateway(gateway_url) as gateway:
        file = await MultiSource([gateway]).file(Cid.parse(announcement.cid))
    package = verify(announcement, file.data)
    return VerifiedDownload(package, yanked, None if newer == exact else newer)


async def _meant(registry: Registry, uri: CapabilityURI) -> CapabilityURI | None:
    """Return the release that a name or range means on chain, served or not (P2)."""
    there = {Version.parse(x.semver) for x in await registry.releases(uri.name) if not x.yanked}
    wanted = uri.selector
    found = max_satisfying(there, wanted) if isinstance(wanted, VersionRange) else latest(there)
    return None if found is None else CapabilityURI(uri.name, found)


async def announcement_of(registry: Registry, uri: CapabilityURI) -> tuple[Announcement, bool]:
    """Return the announcement of an exact release by its event, and True if it is yanked.

    The event, which names the publisher, has to agree with the contract's own record.
    """
    name, semver = uri.name, str(uri.version)
    release = await registry.release(name, semver)
    if release is None:
        raise InvalidInput(f"the registry has no {uri}", Code.NOT_FOUND, fix=f"capdex show {name}")
    event = await registry.find_publication(name, semver)
    if event is None:
        raise Unavailable(
            f"the event that published {uri} was not found",
            Code.RPC_UNAVAILABLE,
            why="the chain endpoint does not search that far back",
            fix="set start-block of the network, or ask another endpoint with --rpc-url",
        )
    announced = event.announcement
    identity = announced.sha256, announced.cid, announced.cap_uri
    if identity != (release.sha256, release.cid, str(uri)):
        raise Unavailable(
            f"the chain endpoint contradicts itself about {uri}",
            Code.RPC_UNAVAILABLE,
            why="the event and the contract's record differ",
            fix="ask another endpoint with --rpc-url",
        )
    return announced, release.yanked


async def _choose(uri: CapabilityURI, mcp_url: str) -> CapabilityURI:
    """Return the exact URI that a node answers; raises Unavailable if it does not fit `uri`."""
    answer = await call_tool(mcp_url, "resolve_capability", {"cap_uri": str(uri)})
    said = untrusted_text(answer.get("cap_uri"))
    with suppress(InvalidInput):
        exact = CapabilityURI.exact(said)
        if uri.admits(exact):
            return exact
    raise Unavailable(
        f"the node answered {quoted(said)} when asked for {uri}",
        Code.NODE_UNAVAILABLE,
        fix="name an exact version, or another node",
    )
