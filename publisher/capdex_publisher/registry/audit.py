"""Audit a name: its state on chain, joined with a node's verdicts on its releases."""

from __future__ import annotations

import hashlib
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.json import Json, object_of
from capdex.net import node_client
from capdex.problems import Verdict
from capdex.registry.state import NameState, ReleaseState
from capdex.uri import PREFIX
from capdex.version import Version, latest
from capdex_publisher.ethereum.contract import Contract
from capdex_publisher.registry.name_history import name_state, name_view
from capdex_publisher.registry.registry import Registry

if TYPE_CHECKING:
    from capdex.manifest.manifest import Manifest

_NOT_ON_CHAIN: Final = "the node has this release, and the chain has not"


@dataclass(frozen=True, slots=True)
class NameOnChain:
    """A name as the chain has it at a block.

    `incomplete` is why the endpoint did not give the name's whole history: what only the history
    has is then missing (maintainers, reasons, messages, publishers).
    """

    name: str
    state: NameState
    votes: tuple[int, int] | None  # up, down
    block_number: int
    incomplete: Unavailable | None = None

    def to_json(self) -> Json:
        """Return the name, its votes, and its releases from the newest to the oldest."""
        unknown = {"maintainers": None, "message": None, "replaced_by": None}
        return {
            **describe(self.name, self.state),
            **(unknown if self.incomplete else {}),
            "votes": self.votes and dict(zip(("up", "down"), self.votes, strict=True)),
            "releases": [_release(self.name, x) for x in reversed(self.state.releases)],
            "complete": self.incomplete is None,
            "source": "chain",
            "block_number": self.block_number,
        }


@dataclass(frozen=True, slots=True)
class NameAudit:
    """A name by the chain and by a node; either may be missing, and `failures` then say why.

    `chain` is JSON of `NameOnChain`, `node` the node's page of the name.
    """

    name: str
    chain: Json | None
    node: Json
    failures: tuple[CapdexError, ...]

    @property
    def releases(self) -> list[Json]:
        """All releases; where the chain is known, its flags and digests count."""
        told = (x for x in self.node.get("releases") or [] if isinstance(x, dict))
        of_node = [x for x in told if isinstance(x.get("semver"), str)]
        if self.chain is None:
            return of_node
        return _join(self.chain, of_node, has_node="as_of" in self.node)


async def audit(
    name: str,
    *,
    registry: AbstractAsyncContextManager[Registry] | None,
    node_url: str = "",
    votes: str = "",
) -> NameAudit:
    """Read a name from the chain and from a node, as far as they are given.

    `registry` opens the registry; `votes` is the address of the votes contract, where nothing need
    stand. Raises NOT_FOUND for a name that is not claimed on chain, whatever the node says of it,
    and the first failure if neither source answers.
    """
    chain: Json | None = None
    node: Json = {}
    failures: list[CapdexError] = []
    if registry is not None:
        try:
            async with registry as opened:
                on_chain = await name_on_chain(opened, name, votes=votes)
            chain = on_chain.to_json()
            failures += [on_chain.incomplete] if on_chain.incomplete else []
        except Unavailable as error:
            failures.append(error)
    if node_url:
        try:
            node = await node_client.releases(node_url, name)
        except CapdexError as error:
            # A name that was claimed and has no release is unknown to every node.
            if chain is None or error.code is not Code.NOT_FOUND or chain["releases"]:
                failures.append(error)
    if chain is None and not node and failures:
        raise failures[0]
    return NameAudit(name, chain, node, tuple(failures))


async def latest_manifest(audited: NameAudit, gateway_url: str) -> Manifest | None:
    """Return the manifest of the latest release, from a gateway; None if there is none to be had.

    The bytes agree with the release's CID and sha256, which are the chain's where it was read.
    """
    latest = next((x for x in audited.releases if x.get("latest") is True), None)
    if latest is None or latest.get("denied"):
        return None
    from capdex.manifest.manifest import read
    from capdex.net.ipfs.gateway import Gateway  # aiohttp, which takes 0.1 s
    from capdex.net.ipfs.multi_source import MultiSource

    try:
        async with Gateway(gateway_url) as gateway:
            file = await MultiSource([gateway]).file(Cid.parse(str(latest.get("ipfs_cid"))))
    except (InvalidInput, Unavailable):
        return None
    if hashlib.sha256(file.data).hexdigest() != latest.get("sha256"):
        return None
    return read(file.data).manifest


async def name_on_chain(
    registry: Registry, name: str, *, votes: str = "", need_history: bool = False
) -> NameOnChain:
    """Read a name from the chain; raises InvalidInput NOT_FOUND if it is not claimed.

    If the endpoint does not give the name's whole history, the contract's views are read instead,
    or with `need_history` Unavailable is raised.
    """
    incomplete: Unavailable | None = None
    try:
        state, block = await name_state(registry, name)
    except Unavailable as error:
        if need_history or error.code is not Code.RPC_UNAVAILABLE:
            raise
        state, block = await name_view(registry, name)
        incomplete = error
    if state is None:
        raise InvalidInput(
            f'the name "{name}" is not claimed',
            Code.NOT_FOUND,
            why=f"the registry {registry.address} does not know it, as of block {block}",
            fix="check how it is written, or find it: capdex search",
        )
    tally = None
    if votes and await registry.chain.code(votes):
        tally = await Contract(registry.chain, votes, "CapabilityVotes").read("tally", name)
    return NameOnChain(name, state, tally, block, incomplete)


def describe(name: str, state: NameState) -> Json:
    """Return the owner, the maintainers and the deprecation of a name as JSON."""
    return {
        "name": name,
        "owner": state.owner,
        "renounced": state.renounced,
        "pending_owner": state.pending_owner,
        "maintainers": sorted(state.maintainers),
        "deprecated": state.deprecated,
        "message": (state.message or None) if state.deprecated else None,
        "replaced_by": (state.replaced_by or None) if state.deprecated else None,
    }


def _release(name: str, release: ReleaseState) -> Json:
    return {
        "cap_uri": f"{PREFIX}{name}@{release.semver}",
        "semver": release.semver,
        "ipfs_cid": release.cid,
        "sha256": release.sha256.hex(),
        "chain": {"publisher": release.publisher or None, "sequence": release.sequence or None},
        "status": {
            "yanked": release.yanked,
            "yank_reason": (release.yank_reason or None) if release.yanked else None,
            "deprecated": release.deprecated,
            "deprecation_message": (release.message or None) if release.deprecated else None,
        },
    }


def _join(chain: Json, of_node: list[Json], *, has_node: bool) -> list[Json]:
    """Return every release on chain, highest version first, with the node's verdict on it.

    What the chain has of a release is the chain's. One that only the node has is listed last, with
    a warning and without a verdict; which is the latest is derived again.
    """
    known = {x.get("semver"): x for x in of_node}
    joined: dict[Version, Json] = {}
    for on_chain in chain["releases"]:
        answer = known.pop(on_chain["semver"], None)
        if answer is None:
            state = "not indexed" if has_node else "on chain"
            release = on_chain | {"availability": state, "warnings": []}
        elif answer.get("sha256") != on_chain["sha256"]:
            warning = "the node has other bytes for this version than the chain"
            release = on_chain | {"availability": "not indexed", "warnings": [warning]}
        else:
            release = answer | on_chain
            for part in ("status", "chain"):
                told = on_chain[part]
                if part == "chain" or not chain["complete"]:  # a node's words are better than none
                    told = {key: x for key, x in told.items() if x is not None}
                release[part] = object_of(answer.get(part)) | told
        joined[Version.parse(on_chain["semver"])] = release
    newest = latest(version for version, x in joined.items() if _is_served(x))
    releases = [joined[x] | {"latest": x == newest} for x in sorted(joined, reverse=True)]
    return releases + [
        {"cap_uri": f"{PREFIX}{chain['name']}@{semver}", "semver": semver, "latest": False}
        | {"availability": "not on chain", "warnings": [_NOT_ON_CHAIN]}
        for semver in known
    ]


def _is_served(release: Json) -> bool:
    """Return True if a node says that it serves a release that is not yanked on chain."""
    verdict = object_of(release.get("verification")).get("verdict")
    served = release.get("latest") is True or verdict == Verdict.VERIFIED
    return served and not release["status"]["yanked"] and not release.get("denied")
