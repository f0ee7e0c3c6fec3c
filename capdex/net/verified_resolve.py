"""Resolve a capability by a node, and verify the answer against a trusted block hash (P15)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from capdex.encoding.hexadecimal import to_hex
from capdex.errors import (
    CapdexError,
    Code,
    InvalidInput,
    Refused,
    Unavailable,
    untrusted_text,
)
from capdex.json import Json, object_of
from capdex.net.http import redact
from capdex.net.node_client import call_tool
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.proof.document import Proof, refused
from capdex.proof.resolution import check_refusal, check_resolution
from capdex.proof.verify import Anchor, Proven
from capdex.registry.events import Published, decode
from capdex.registry.logs import BlockRef, RawLog
from capdex.uri import CapabilityURI
from capdex.version import Version

MAX_BEHIND_S: Final = 600  # an older proof could hide what was published since
MAX_BEHIND_BLOCKS: Final = 3  # on a chain that mines on demand the previous block may be old
WAIT_S: Final = 12.0  # one slot of Ethereum: two endpoints rarely differ by more
POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class BlockTrust:
    """The source of the trusted block hash: an RPC endpoint, or the 32-byte hash itself."""

    rpc_url: str = ""
    block_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class VerifiedResolution:
    """A node's answer to `resolve`, and the proof that the chain agrees with it.

    `answer` is what the node sent, without the proof document; `trusted_by` names the source of
    the block hash.
    """

    uri: CapabilityURI
    answer: Json
    proven: Proven
    trusted_by: str

    @property
    def statement(self) -> str:
        """One sentence: what was proven, at which block, and by which block hash."""
        hash_ = self.proven.block.hash.hex()
        number = f"{self.proven.block.number:,}".replace(",", " ")
        at = f"at block {number} (0x{hash_[:4]}…{hash_[-4:]})"
        return f"{_claim(self.proven, self.uri, self.answer)} {at}, by {self.trusted_by}"

    @property
    def claim(self) -> str:
        """One sentence as `statement`, without the block."""
        return f"{_claim(self.proven, self.uri, self.answer)}, by {self.trusted_by}"

    def to_json(self) -> Json:
        """Return what was proven, and by which block hash."""
        proven = self.proven
        return {
            "statement": self.statement,
            "by": self.trusted_by,
            "kind": str(proven.kind),
            "block_number": proven.block.number,
            "block_hash": to_hex(proven.block.hash),
            "timestamp": proven.block.timestamp,
            "releases": len(proven.releases) if proven.record is not None else None,
        }


async def resolve_verified(
    uri: CapabilityURI, *, mcp_url: str, chain_id: int, registry: bytes, trust: BlockTrust
) -> VerifiedResolution:
    """Resolve `uri` by a node, and verify the answer about the registry (20 bytes).

    Who published it is verified by an endpoint alone: a block hash does not show that. Raises
    VerificationFailure BAD_PROOF if the proof does not hold. NOT_FOUND and YANKED are raised only
    if they are proven, with `proven` in their details.
    """
    exact = isinstance(uri.selector, Version)
    arguments: Json = {"cap_uri": str(uri), "proof": "exact" if exact else "list"}
    if trust.block_hash is not None:
        arguments["proof_block"] = to_hex(trust.block_hash)
    try:
        answer = await call_tool(mcp_url, "resolve_capability", arguments)
    except CapdexError as refusal:
        # A refusal by the node's operator says nothing about the chain.
        details = dict(refusal.details or {})
        if "denied" in details or refusal.code not in (Code.NOT_FOUND, Code.YANKED):
            raise
        document = details.pop("proof", None)
        anchor, by = await _anchor(chain_id, registry, trust, document)
        proven = check_refusal(document, anchor, uri, refusal.code)
        details["proven"] = VerifiedResolution(uri, {}, proven, by).to_json()
        raise replace(refusal, details=details) from None
    document = answer.get("proof")
    anchor, by = await _anchor(chain_id, registry, trust, document)
    proven = check_resolution(document, anchor, uri, answer)
    if trust.rpc_url:
        await _check_publisher(answer, anchor, trust.rpc_url)
    return VerifiedResolution(uri, answer, proven, by)


async def _check_publisher(answer: Json, anchor: Anchor, rpc_url: str) -> None:
    """Check that the trusted endpoint has the event by which the answer's account published it.

    Storage does not hold that account, and a package can name one that did not publish it. Raises
    VerificationFailure BAD_PROOF, RpcError.
    """
    chain = object_of(answer.get("chain"))
    number, publisher = chain.get("block_number"), untrusted_text(chain.get("publisher")).lower()
    logs: list[RawLog] = []
    if isinstance(number, int) and 0 <= number < 1 << 63:
        async with Rpc([rpc_url]) as rpc:
            logs = await rpc.logs(anchor.contract, number, number)
    for log in logs:
        with suppress(InvalidInput):
            event = decode(log, anchor.chain_id)
            said = event.announcement if isinstance(event, Published) else None
            if said and said.publisher.lower() == publisher and said.cap_uri == answer["cap_uri"]:
                return
    raise refused(
        "the answer's publisher and block are not the chain's",
        f"{redact(rpc_url)} has no event in that block by which that account published it",
        "ask another node; if it says the same, trust an endpoint that has the logs of old blocks",
    )


async def _anchor(
    chain_id: int, contract: bytes, trust: BlockTrust, document: object
) -> tuple[Anchor, str]:
    """Return the anchor of the proof, and who gave its block hash."""
    if document is None:
        raise refused("the node sent none")
    if trust.block_hash is not None:
        return Anchor(chain_id, contract, trust.block_hash), "the block hash you gave"
    number, by = Proof.parse(document).block_number, redact(trust.rpc_url)
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


async def trusted_block(rpc: Rpc, *, chain_id: int, number: int) -> tuple[BlockRef, BlockRef]:
    """Return block `number` of the endpoint, and the endpoint's newest block.

    Waits up to WAIT_S while the endpoint has not reached the block.
    Raises Refused (WRONG_CHAIN), RpcError, or Unavailable when the block does not come.
    """
    if (actual := await rpc.chain_id()) != chain_id:
        raise Refused(
            f"the trusted endpoint is of chain {actual}, not {chain_id}",
            Code.WRONG_CHAIN,
            why=f"it is {rpc.endpoint}",
            fix="name an endpoint of this network with --trust-rpc",
        )
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_S
    while (block := await _block(rpc, number)) is None:
        if loop.time() > deadline:
            raise Unavailable(
                f"the trusted endpoint has no block {number} yet",
                Code.RPC_UNAVAILABLE,
                why=f"{rpc.endpoint} is behind the node, or the node is on another chain",
                fix="try again, or trust another endpoint",
            )
        await asyncio.sleep(POLL_S)
    return block, await rpc.block("latest") or block


async def _block(rpc: Rpc, number: int) -> BlockRef | None:
    try:
        block = await rpc.block(number)
    except RpcError as error:
        if error.fault in (RpcFault.BEYOND_HEAD, RpcFault.UNKNOWN_BLOCK):
            return None
        raise
    return block if block is None or block.number == number else None


def _claim(proven: Proven, uri: CapabilityURI, answer: Json) -> str:
    semver = answer.get("semver")
    if isinstance(uri.selector, Version):
        if not semver:
            return f"{uri} does not exist"
        release = next(x for x in proven.releases if str(x.version) == semver)
        flags = [word for word in ("yanked", "deprecated") if getattr(release, word)]
        return ", ".join([f"{uri} exists with this sha256", *flags])
    if proven.record is not None and not proven.record.claimed:
        return f"{uri.name} is not claimed"
    count, yanked = len(proven.releases), sum(x.yanked for x in proven.releases)
    releases = f"{count} release{'s' * (count != 1)}" + (f" ({yanked} yanked)" if yanked else "")
    if semver:
        rank = "the latest" if uri.selector is None else f"the highest in {uri.selector}"
        return f"{CapabilityURI(uri.name)}@{semver} is {rank} of {releases}"
    return f"{uri} means none of {releases}"
