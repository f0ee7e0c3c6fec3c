"""Nodes asked what a URI means, and their answers compared.

A node's answer is a claim. With a trusted endpoint it has to be proven from the contract's storage;
nodes that differ are judged by such a proof, or refused. The bytes are verified later, in any case.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from capdex.encoding.abi import parse_address
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import (
    CapdexError,
    Code,
    InvalidInput,
    Unavailable,
    UsageError,
    VerificationFailure,
    untrusted_text,
)
from capdex.json import Json, list_of, object_of, objects_in
from capdex.net.http import redact
from capdex.net.node_client import call_tool
from capdex.package import judge_announcement
from capdex.registry.events import Announcement
from capdex.uri import PREFIX, CapabilityURI, check_name
from capdex_router.home.config import Config, NodeAddress
from capdex_router.policy.quoting import quoted

MAX_HITS: Final = 20
SEARCH_S: Final = 8.0  # of one node: what is installed is found without it
MAX_FIELD_CHARS: Final = 32
MAX_KEPT_PROOF_BYTES: Final = 64 * 1024
TOLD: Final = ("versions", "did_you_mean")  # details of a node's error that a model is told
MAX_TOLD: Final = 20
_WORD: Final = re.compile(r"[A-Za-z0-9:@.+-]{1,128}")  # such as a URI, a name or a version

AuditWriter = Callable[..., None]  # appends a line to the audit log


@dataclass(frozen=True, slots=True)
class Release:
    """The release that a URI means: its announcement, unproven unless `proven` says so.

    `chain` is its position as the lock file keeps it, with block hash and storage proof if it is
    proven. `proven` is one sentence, the same at every block, empty if all is the word of the nodes
    at the hosts `asked`. `warnings` are for people.
    """

    announcement: Announcement
    chain: Json
    proven: str = ""
    warnings: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


class NodeHit(NamedTuple):
    """A release that a node found for a wish, by the words of these fields; all is its word."""

    uri: str
    title: str
    summary: str
    matched: tuple[str, ...] = ()
    deprecated: bool = False
    like: str = ""  # the older name of another owner that its name is like

    @property
    def capability_id(self) -> str:
        """The URI without its version."""
        return self.uri.partition("@")[0]

    @property
    def name(self) -> str:
        """The name alone."""
        return self.capability_id.removeprefix(PREFIX)


async def resolve(uri: CapabilityURI, config: Config) -> Release:
    """Ask all nodes; return the release that they agree on, or that the chain proves.

    Raises InvalidInput NOT_FOUND or YANKED if they agree on that, Unavailable if none answers,
    VerificationFailure if they differ and nothing decides, or the proof of none holds.
    """
    need_nodes(config)
    answers = await asyncio.gather(*(_ask(node, uri, config) for node in config.nodes))
    silent = [node for node, answer in zip(config.nodes, answers, strict=True) if _down(answer)]
    said = [(n, a) for n, a in zip(config.nodes, answers, strict=True) if not _down(a)]
    if not said:
        raise next(answer for answer in answers if isinstance(answer, CapdexError))
    warnings = tuple(f"the node at {redact(node.mcp_url)} gave no answer to use" for node in silent)
    agreed = len({_key(answer) for _, answer in said}) == 1
    if config.trust_rpc_url or not agreed:
        release = await _proven(uri, said, config)
    else:
        answer = said[0][1]
        if isinstance(answer, CapdexError):
            raise answer
        # They agree about the bytes: that it is yanked or deprecated may be the word of one.
        told = (x for _, other in said if isinstance(other, Release) for x in other.warnings)
        release = replace(answer, warnings=tuple(dict.fromkeys(told)))
    hosts = tuple(urlsplit(node.mcp_url).netloc.rpartition("@")[2] for node, _ in said)
    return replace(release, warnings=(*release.warnings, *warnings), asked=hosts)


def need_nodes(config: Config) -> None:
    """Raise UsageError CONFIG if there is nobody to ask, or who gives packages."""
    if not any(node.gateway_url for node in config.nodes):
        fix = "run `capdex up` here, choose a network, or set CAPDEX_NODE_URL"
        raise UsageError("no node is configured to ask for packages", Code.CONFIG, fix=fix)


async def search(
    want: str, limit: int, config: Config, audit: AuditWriter | None = None
) -> list[NodeHit]:
    """Return what the first node that answers finds for a wish; raises Unavailable if none does.

    `audit` writes a line before the words go to a node: their length and sha256, since a log is no
    place for a secret. Whether some words left is checked by `printf %s WORDS | sha256sum`.
    """
    failed: CapdexError | None = None
    arguments = {"query_string": want, "limit": min(limit, MAX_HITS)}
    said = want.encode("utf-8", "surrogatepass")
    about = {"want_sha256": hashlib.sha256(said).hexdigest(), "want_bytes": len(said)}
    for address in config.nodes:
        if audit is not None:
            audit("find", node=redact(address.mcp_url), **about)
        try:
            answer = await call_tool(address.mcp_url, "search_capabilities", arguments, SEARCH_S)
        except CapdexError as error:
            if not isinstance(error, Unavailable):
                raise _told(error) from None
            failed = failed or _told(error)
            continue
        node_hits = map(_hit, objects_in(list_of(answer.get("list_of_results"))[:MAX_HITS]))
        return [hit for hit in node_hits if hit is not None][:limit]
    if failed is not None:
        raise failed
    return []


async def _ask(address: NodeAddress, uri: CapabilityURI, config: Config) -> Release | CapdexError:
    try:
        answer = await call_tool(address.mcp_url, "resolve_capability", {"cap_uri": str(uri)})
        return _release(answer, uri, config, address)
    except CapdexError as error:
        return _told(error)


def _told(error: CapdexError) -> CapdexError:
    """Return a node's error with those of its details that a model is told: words, no sentences."""
    details = error.details or {}
    told: Json = {x: details[x] for x in ("proven",) if x in details}  # which no node says
    for key in TOLD:
        words = [x for x in list_of(details.get(key)) if isinstance(x, str) and _WORD.fullmatch(x)]
        if words:
            told[key] = words[:MAX_TOLD]
    return replace(error, details=told)


def _down(answer: Release | CapdexError) -> bool:
    return isinstance(answer, CapdexError) and answer.kind.retryable


def _key(answer: Release | CapdexError) -> tuple[str, ...]:
    if isinstance(answer, CapdexError):
        return (str(answer.code),)
    claim = answer.announcement
    return claim.cap_uri, claim.cid, claim.sha256.hex(), claim.publisher


async def _proven(
    uri: CapabilityURI, said: Sequence[tuple[NodeAddress, Release | CapdexError]], config: Config
) -> Release:
    """Return the answer of the first node whose proof holds, or raise its proven refusal."""
    # Imported where it is used: it takes a tenth of a router's start.
    from capdex.net.verified_resolve import BlockTrust, resolve_verified

    rpc_url = config.trust_rpc_url or config.rpc_url
    if not rpc_url or config.chain_id is None or config.registry is None:
        raise _differ(uri, said)
    refuted: list[str] = []
    failed: CapdexError | None = None
    for address, _ in said:
        try:
            verified = await resolve_verified(
                uri,
                mcp_url=address.mcp_url,
                chain_id=config.chain_id,
                registry=config.registry,
                trust=BlockTrust(rpc_url=rpc_url),
            )
        except CapdexError as error:
            if "proven" in (error.details or {}):
                raise _told(error) from None
            refuted.append(f"the node at {redact(address.mcp_url)} did not prove its answer")
            failed = failed or _told(error)
            continue
        release = _release(verified.answer, uri, config, address)
        position = release.chain | {"block_hash": to_hex(verified.proven.block.hash)}
        # A proof of all releases of a name may have megabytes: the lock file keeps a small one.
        document = verified.answer.get("proof")
        if len(orjson.dumps(document)) <= MAX_KEPT_PROOF_BYTES:
            position["proof"] = document
        others = [
            f"the node at {redact(other.mcp_url)} answered otherwise"
            for other, answer in said
            if other != address and _key(answer) != _key(release)
        ]
        warnings = tuple(dict.fromkeys((*release.warnings, *refuted, *others)))
        return replace(release, chain=position, proven=verified.claim, warnings=warnings)
    raise failed or _differ(uri, said)


def _release(answer: Json, uri: CapabilityURI, config: Config, address: NodeAddress) -> Release:
    """Return the release in a node's answer; raises Unavailable for one that is not an answer."""
    chain = answer.get("chain")
    if not isinstance(chain, dict):
        raise _odd(address, "it has no chain")
    try:
        exact = CapabilityURI.exact(untrusted_text(answer.get("cap_uri")))
        digest = bytes.fromhex(untrusted_text(answer.get("sha256")))
        publisher = parse_address(untrusted_text(chain.get("publisher")))
        named = untrusted_text(chain.get("contract"))
        contract = parse_address(named) if named else ""
        like = _like(answer)
    except (CapdexError, ValueError):
        raise _odd(address, "a URI, sha256, address or name in it is malformed") from None
    chain_id = chain.get("chain_id")
    if not isinstance(chain_id, int) or isinstance(chain_id, bool):
        raise _odd(address, "it names no chain")
    if not uri.admits(exact):
        raise _odd(address, f"it is {exact} when asked for {uri}")
    elsewhere = config.registry is not None and contract.lower() != to_hex(config.registry)
    if config.chain_id not in (None, chain_id) or elsewhere:
        raise _odd(address, "it is of another chain or registry")
    semver, cid = str(exact.version), untrusted_text(answer.get("ipfs_cid"))
    announcement = Announcement(chain_id, publisher, str(exact), semver, cid, digest)
    if rejected := judge_announcement(announcement):
        raise _odd(address, rejected.failure().message)
    position: Json = {"chain_id": chain_id, "publisher": publisher}
    if contract:
        position["contract"] = contract
    for key in ("block_number", "sequence"):
        value = chain.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
            position[key] = value
    return Release(announcement, position, warnings=_warnings(answer, exact, like))


def _warnings(answer: Json, uri: CapabilityURI, like: str) -> tuple[str, ...]:
    status = object_of(answer.get("status"))
    named = untrusted_text(status.get("replaced_by"))
    instead = f", and its owner names {quoted(named[:64])} in its place" if named else ""
    texts = {
        "yanked": ("yank_reason", f"{uri} is yanked"),
        "deprecated": ("deprecation_message", f"{uri} is deprecated"),
        "name_deprecated": ("name_message", f"the name {uri.name} is deprecated{instead}"),
    }
    warnings = []
    if like:
        warnings.append(f"a node says its name is like the older name {like} of another owner")
    for flag, (reason, words) in texts.items():
        if status.get(flag) is True:
            said = untrusted_text(status.get(reason))[:200]
            warnings.append(f"{words}: {quoted(said)}" if said else words)
    return tuple(warnings)


def _like(answer: Json) -> str:
    return check_name(untrusted_text(answer["like"])) if answer.get("like") else ""


def _hit(hit: Json) -> NodeHit | None:
    texts = object_of(hit.get("acp_metadata"))
    try:
        uri = CapabilityURI.exact(untrusted_text(hit.get("cap_uri")))
        like = _like(hit)
    except InvalidInput:
        return None
    summary = untrusted_text(texts.get("summary")) or untrusted_text(texts.get("description"))
    # Names of fields stand in lines of ours: a node's sentence does not.
    words = map(untrusted_text, list_of(hit.get("matched")))
    matched = tuple(x for x in words if x.isidentifier() and len(x) <= MAX_FIELD_CHARS)
    flags = object_of(hit.get("status"))
    deprecated = True in (flags.get("deprecated"), flags.get("name_deprecated"))
    return NodeHit(str(uri), untrusted_text(texts.get("name")), summary, matched, deprecated, like)


def _odd(address: NodeAddress, how: str) -> Unavailable:
    message = f"the answer of the node at {redact(address.mcp_url)} cannot be used"
    return Unavailable(message, Code.NODE_UNAVAILABLE, why=how, fix="name another node")


def _differ(
    uri: CapabilityURI, said: Sequence[tuple[NodeAddress, Release | CapdexError]]
) -> VerificationFailure:
    words = []
    for address, answer in said:
        node = redact(address.mcp_url)
        if isinstance(answer, CapdexError):
            words.append(f"{node} says {answer.code}")
        else:
            claim = answer.announcement
            digest = claim.sha256.hex()[:16]
            words.append(f"{node} says {claim.semver} with sha256 {digest} by {claim.publisher}")
    return VerificationFailure(
        f"the nodes differ about {uri}",
        why="; ".join(words),
        fix="let the chain decide: set CAPDEX_TRUST_RPC_URL (or CAPDEX_RPC_URL), "
        "and chain-id and registry of the network",
    )
