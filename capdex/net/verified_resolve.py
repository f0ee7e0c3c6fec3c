"""`resolve --proof`: an answer of a node, checked against a block hash that somebody else gave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from capdex.errors import CapdexError, Code, UsageError
from capdex.semver import Version
from capdex.uri import CapabilityURI
from cli.config.settings import Network
from cli.terminal.app import App
from cli.terminal.text import short

if TYPE_CHECKING:
    from capdex.proof.verify import Anchor, Proven

MAX_BEHIND_S: Final = 600  # an older proof could hide what was published since
MAX_BEHIND_BLOCKS: Final = 3  # on a chain that mines on demand the block before may be old
_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{40}")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose word for a block's hash is taken: an endpoint's, or the caller's own."""

    rpc_url: str = ""
    block_hash: bytes | None = None

    @classmethod
    def choose(cls, app: App, rpc_url: str | None, block_hash: str | None) -> Trust:
        """By the options, else by the setting; raises UsageError where nobody is named."""
        if rpc_url and block_hash:
            raise UsageError(
                "--trust-rpc and --trust-block exclude each other", fix="leave one of them out"
            )
        if block_hash is not None:
            if not _HASH.fullmatch(block_hash):
                raise UsageError(
                    f"{block_hash[:80]!r} is not a block's hash",
                    fix="write 0x and 64 hexadecimal digits",
                )
            return cls(block_hash=bytes.fromhex(block_hash[2:]))
        network = app.settings.need_network()
        url = rpc_url or network.trust_rpc_url
        if not url:
            raise UsageError(
                "nobody is named to give the block hash that the proof is checked against",
                Code.CONFIG,
                why="a proof counts only by a hash from somebody else than the node that answers",
                fix="name another endpoint with --trust-rpc URL (or trust-rpc-url in your "
                "config.toml), or a block you know with --trust-block HASH",
            )
        if url.rstrip("/") == network.rpc_url.rstrip("/"):
            app.output.warn(
                "the endpoint you trust is the one that this network uses: if the node uses it "
                "too, the proof only shows that they agree"
            )
        return cls(rpc_url=url)


async def resolve_proven(app: App, uri: CapabilityURI, trust: Trust) -> Json:
    """The node's answer with `proven`, once the proof with it held.

    Raises VerificationFailure BAD_PROOF where it does not; a NOT_FOUND or YANKED only when that is
    proven, with `proven` in its details.
    """
    from capdex.net.node_client import NodeClient
    from capdex.proof.resolution import check_refusal, check_resolution

    network = app.settings.need_network("mcp_url", "registry", "chain_id")
    kind = "exact" if isinstance(uri.selector, Version) else "list"
    arguments: Json = {"cap_uri": str(uri), "proof": kind}
    if trust.block_hash is not None:
        arguments["proof_block"] = f"0x{trust.block_hash.hex()}"
    answer: Json = {}
    refusal: CapdexError | None = None
    try:
        async with NodeClient(network.mcp_url) as node:
            answer = await node.call("resolve_capability", arguments)
        document = answer.get("proof")
    except CapdexError as error:
        # A node that refuses by its operator's will says nothing of the chain.
        denied = "denied" in (error.details or {})
        if denied or error.code not in (Code.NOT_FOUND, Code.YANKED):
            raise
        refusal, document = error, (error.details or {}).pop("proof", None)
    anchor, by = await _anchor(network, trust, document)
    if refusal is None:
        proven = check_resolution(document, anchor, uri, answer)
        return answer | {"proven": _told(proven, uri, by, semver=answer["semver"])}
    proven = check_refusal(document, anchor, uri, refusal.code)
    told = _told(proven, uri, by)
    refusal.details = {**(refusal.details or {}), "proven": told}
    app.output.step("ok", "proven", told["statement"])
    raise refusal


async def _anchor(network: Network, trust: Trust, document: Any) -> tuple[Anchor, str]:
    """What the proof has to lead to, and who says so."""
    from capdex.net.rpc.client import Rpc, redact
    from capdex.net.trusted_block import trusted_block
    from capdex.proof.document import Proof, refused
    from capdex.proof.verify import Anchor

    if document is None:
        raise refused("the node sent none")
    contract, chain_id = registry_bytes(network), network.chain
    if trust.block_hash is not None:
        return Anchor(chain_id, contract, trust.block_hash), "the block hash you gave"
    number = Proof.parse(document).block_number
    by = redact(trust.rpc_url)
    async with Rpc([trust.rpc_url]) as rpc:
        block, head = await trusted_block(rpc, chain_id=chain_id, number=number)
    behind_blocks = head.number - block.number
    if head.timestamp - block.timestamp > MAX_BEHIND_S and behind_blocks > MAX_BEHIND_BLOCKS:
        raise refused(
            f"it is of block {number}, {behind_blocks} blocks behind the head of {by}",
            "what was published since would stay hidden",
            "ask again when the node has caught up, or name a block with --trust-block",
        )
    return Anchor(chain_id, contract, block.hash), f"the block hash that {by} gave"


def registry_bytes(network: Network) -> bytes:
    """The address of the network's registry; raises UsageError CONFIG where it is none."""
    return address_bytes(network.registry, "registry")


def address_bytes(text: str, what: str) -> bytes:
    """An address out of the configuration; raises UsageError CONFIG where it is none."""
    digits = text.removeprefix("0x")
    if not _ADDRESS.fullmatch(digits):
        raise UsageError(
            f"the {what} {text[:80]!r} is not an address",
            Code.CONFIG,
            fix="write it as 0x and 40 hexadecimal digits",
        )
    return bytes.fromhex(digits)


def _told(proven: Proven, uri: CapabilityURI, by: str, semver: str = "") -> Json:
    """What was proven and by whom, in values and in one line."""
    block_hash = f"0x{proven.block.hash.hex()}"
    at = f"at block {proven.block.number:,}".replace(",", " ") + f" ({short(block_hash, 6)})"
    return {
        "statement": f"{_claim(proven, uri, semver)} {at}, by {by}",
        "by": by,
        "kind": str(proven.kind),
        "block_number": proven.block.number,
        "block_hash": block_hash,
        "timestamp": proven.block.timestamp,
        "releases": len(proven.releases) if proven.record is not None else None,
    }


def _claim(proven: Proven, uri: CapabilityURI, semver: str) -> str:
    if isinstance(uri.selector, Version):
        if not semver:
            return f"{uri} does not exist"
        release = next(x for x in proven.releases if str(x.version) == semver)
        flags = [word for word in ("yanked", "deprecated") if getattr(release, word)]
        return ", ".join([f"{uri} exists with this sha256", *flags])
    if proven.record is not None and not proven.record.claimed:
        return f"nobody has claimed {uri.name}"
    count, yanked = len(proven.releases), sum(x.yanked for x in proven.releases)
    releases = f"{count} release{'s' * (count != 1)}" + (f" ({yanked} yanked)" if yanked else "")
    if semver:
        rank = "the latest" if uri.selector is None else f"the highest in {uri.selector}"
        return f"{CapabilityURI(uri.name)}@{semver} is {rank} of {releases}"
    return f"{uri} means none of {releases}"
