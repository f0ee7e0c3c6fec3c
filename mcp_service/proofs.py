"""Answers with a storage proof: what a client needs to check a resolution for itself (P13, P15)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

import structlog

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.problems import Verdict
from capdex.semver import Version
from capdex.uri import CapabilityURI
from indexer.query import Index, Position
from mcp_service import answers
from mcp_service.answers import Json

PROOF_KINDS: Final = ("none", "exact", "list")
REREADS: Final = 5  # while blocks come faster than the index is read
_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")

log = structlog.get_logger(part="mcp")


class Prover(Protocol):
    """Whoever can prove what the registry keeps; `capdex.net.rpc.proofs` does so by an endpoint."""

    async def prove(self, name: str, version: Version | None, block: int | bytes) -> Json:
        """A document about one version, or about all releases, of a name at a block."""
        ...


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """The proof a caller asks for; `block` None means: at the block the index is at."""

    kind: str
    block: int | bytes | None

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Self | None:
        """What `proof` and `proof_block` say, None where no proof is wanted.

        Raises InvalidInput.
        """
        kind = arguments.get("proof", "none")
        if kind not in PROOF_KINDS:
            raise InvalidInput(f"proof is one of {', '.join(PROOF_KINDS)}")
        block = arguments.get("proof_block")
        if kind == "none":
            if block is not None:
                raise InvalidInput(
                    "proof_block makes no sense without a proof", fix="add proof: list"
                )
            return None
        if isinstance(block, str) and _HASH.fullmatch(block):
            return cls(kind, bytes.fromhex(block[2:]))
        number = isinstance(block, int) and not isinstance(block, bool) and 0 <= block < 2**63
        if block is not None and not number:
            raise InvalidInput("proof_block is neither a block's hash (0x…) nor its number")
        return cls(kind, block)


async def resolve(
    index: Index,
    serve: frozenset[Verdict],
    prover: Prover | None,
    uri: CapabilityURI,
    wanted: ProofRequest,
) -> Json:
    """The answer with `proof`; where the chain is the reason for a refusal, that is proven, too.

    Raises what resolving raises, a NOT_FOUND or YANKED with `proof` in its details, and
    InvalidInput where this reader has no endpoint to prove by.
    """
    if prover is None:
        raise InvalidInput(
            "this reader cannot prove its answers",
            why="it reads an index, and was given no chain endpoint",
            fix="ask without proof, or another node; its operator can pass --rpc-url",
        )
    position, answer, refusal = await asyncio.to_thread(_settle, index, serve, uri)
    if refusal is not None and not _by_the_chain(refusal):
        raise refusal  # the package is the reason, or this node's operator
    version = None
    if wanted.kind == "exact":
        if refusal is None:
            version = Version.parse(answer["semver"])
        elif isinstance(uri.selector, Version):
            version = uri.selector
        else:
            raise refusal  # only a list proves that a range is empty
    try:
        proof = await prover.prove(uri.name, version, _block(wanted, position))
    except Unavailable as error:
        log.warning("cannot prove", code=str(error.code), why=str(error.__cause__ or error.why))
        raise
    if refusal is not None:
        refusal.details = {**(refusal.details or {}), "proof": proof}
        raise refusal
    return answer | {"proof": proof}


def _by_the_chain(refusal: CapdexError) -> bool:
    denied = "denied" in (refusal.details or {})
    return refusal.code in (Code.NOT_FOUND, Code.YANKED) and not denied


def _settle(
    index: Index, serve: frozenset[Verdict], uri: CapabilityURI
) -> tuple[Position, Json, CapdexError | None]:
    """The answer or the refusal, and the very block that it is of."""
    for _ in range(REREADS):
        position, refusal = index.position(), None
        try:
            answer = answers.resolution(index.resolve(uri, serve=serve), position)
        except CapdexError as error:
            answer, refusal = {}, error
        if index.position().block_hash == position.block_hash:
            break
    return position, answer, refusal


def _block(wanted: ProofRequest, position: Position) -> int | bytes:
    if wanted.block is not None:
        return wanted.block
    if position.block_hash is None:
        raise Unavailable("the node has indexed no block yet", Code.STALLED, fix="try again")
    return bytes.fromhex(position.block_hash.removeprefix("0x"))
