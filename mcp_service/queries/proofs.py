"""Answers with a storage proof, by which a client can check a resolution (P13, P15)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import structlog

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.problems import Verdict
from capdex.uri import CapabilityURI
from capdex.version import Version
from indexer.query import Index, Position
from mcp_service.answers import release as answers
from mcp_service.answers.release import Json

PROOF_KINDS: Final = ("none", "exact", "list")
REREADS: Final = 5  # if the index advances during each read
_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")

log = structlog.get_logger(part="mcp")


class Prover(Protocol):
    """Makes proofs of the registry's storage; `capdex.net.rpc.proofs` does so by an endpoint."""

    async def prove(self, name: str, version: Version | None, block: int | bytes) -> Json:
        """Return the proof of one version, or of all releases, of a name at a block."""
        ...


def read_request(arguments: Mapping[str, Any]) -> tuple[str, int | bytes | None]:
    """Return the kind of the requested proof and its block (None: the newest indexed block)."""
    kind, block = arguments.get("proof", "none"), arguments.get("proof_block")
    if kind not in PROOF_KINDS:
        raise InvalidInput(f"proof is one of {', '.join(PROOF_KINDS)}")
    if kind == "none" and block is not None:
        raise InvalidInput("proof_block makes no sense without a proof", fix="add proof: list")
    if isinstance(block, str) and _HASH.fullmatch(block):
        return kind, bytes.fromhex(block[2:])
    number = isinstance(block, int) and not isinstance(block, bool) and 0 <= block < 2**63
    if block is not None and not number:
        raise InvalidInput("proof_block is neither a block's hash (0x…) nor its number")
    return kind, block


async def resolve(
    index: Index,
    serve: frozenset[Verdict],
    prover: Prover | None,
    uri: CapabilityURI,
    kind: str,
    block: int | bytes | None,
) -> Json:
    """Resolve with a `proof` in the answer, or in the details of a NOT_FOUND or YANKED error.

    Raises the errors of `Index.resolve`, and InvalidInput if this reader has no endpoint.
    """
    if prover is None:
        raise InvalidInput(
            "this reader cannot prove its answers",
            why="it reads an index, and was given no chain endpoint",
            fix="ask without proof, or another node; its operator can pass --rpc-url",
        )
    position, answer, refusal = await asyncio.to_thread(_resolve_at_one_block, index, serve, uri)
    if refusal is not None:
        denied = "denied" in (refusal.details or {})
        if denied or refusal.code not in (Code.NOT_FOUND, Code.YANKED):
            raise refusal  # because of the package or the operator: the chain cannot prove it
    version = None
    if kind == "exact":
        if refusal is None:
            version = Version.parse(answer["semver"])
        elif isinstance(uri.selector, Version):
            version = uri.selector
        else:
            raise refusal  # only a list proves that a range is empty
    if block is None:
        if position.block_hash is None:
            raise Unavailable("the node has indexed no block yet", Code.STALLED, fix="try again")
        block = bytes.fromhex(position.block_hash.removeprefix("0x"))
    try:
        proof = await prover.prove(uri.name, version, block)
    except Unavailable as error:
        log.warning("cannot prove", code=str(error.code), why=str(error.__cause__ or error.why))
        raise
    if refusal is not None:
        refusal.details = {**(refusal.details or {}), "proof": proof}
        raise refusal
    return answer | {"proof": proof}


def _resolve_at_one_block(
    index: Index, serve: frozenset[Verdict], uri: CapabilityURI
) -> tuple[Position, Json, CapdexError | None]:
    """Return the answer or the error, and the block that it is of."""
    for _ in range(REREADS):
        position, refusal = index.position(), None
        try:
            answer = answers.resolution(index.resolve(uri, serve=serve), position)
        except CapdexError as error:
            answer, refusal = {}, error
        if index.position().block_hash == position.block_hash:
            break
    return position, answer, refusal
