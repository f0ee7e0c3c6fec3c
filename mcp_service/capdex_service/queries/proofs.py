"""Answers with a storage proof, by which a client can check a resolution (P13, P15)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson
import structlog
from sqlalchemy import Connection

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.json_schema.arguments import came, one_of
from capdex.uri import CapabilityURI
from capdex.version import Version
from capdex_indexer.query.status import Position, read_revision
from capdex_service.answers.rendered import Answer, Moment, Rendered
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import render_resolution
from capdex_service.queries.resolve import resolve as resolve_unproven

PROOF_KINDS: Final = ("none", "exact", "list")
_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)

log = structlog.get_logger(part="mcp")


def read_request(arguments: Mapping[str, Any]) -> tuple[str, int | bytes | None]:
    """Return the kind of the requested proof and its block (None: the newest indexed block)."""
    kind = one_of("proof", arguments.get("proof", "none"), PROOF_KINDS)
    block = arguments.get("proof_block")
    if kind == "none" and block is not None:
        raise InvalidInput("proof_block makes no sense without a proof", fix="add proof: list")
    if isinstance(block, str) and _HASH.fullmatch(block):
        return kind, bytes.fromhex(block[2:])
    if isinstance(block, str) and _NUMBER.fullmatch(block):
        block = int(block)
    # No contract is deployed in block 0.
    number = isinstance(block, int) and not isinstance(block, bool) and 1 <= block < 2**63
    if block is not None and not number:
        raise InvalidInput(
            "proof_block is neither a block's hash (0x…) nor its number",
            why=came(block),
            fix="give one of them, or leave it out for the newest block",
        )
    return kind, block


async def answer(
    reader: Reader, cap_uri: str, proof: tuple[str, int | bytes | None], include: frozenset[str]
) -> Answer:
    """Resolve with the proof of `read_request` and INCLUDES, if one is asked for, else without."""
    kind, block = proof
    if kind == "none" and "proof" not in include:
        return await resolve_unproven(reader, cap_uri, include)
    kind = "list" if kind == "none" else kind
    return await resolve(reader, CapabilityURI.parse(cap_uri), kind, block, include - {"proof"})


async def resolve(
    reader: Reader,
    uri: CapabilityURI,
    kind: str,
    block: int | bytes | None,
    include: Collection[str] = (),
) -> Answer:
    """Resolve with a `proof` in the answer, or in the details of a NOT_FOUND or YANKED error.

    The proof is not in the text for a model. Raises the errors of `Index.resolve`, and InvalidInput
    if this reader has no endpoint.
    """
    if reader.prover is None:
        raise InvalidInput(
            "this reader cannot prove its answers",
            why="it reads an index, and was given no chain endpoint",
            fix="ask without proof, or another node; its operator can pass --rpc-url",
        )
    position, resolved, refusal = await reader.read(_at_one_block, reader, uri, frozenset(include))
    if refusal is not None:
        denied = "denied" in (refusal.details or {})
        if denied or refusal.code not in (Code.NOT_FOUND, Code.YANKED):
            raise refusal  # because of the package or the operator: the chain cannot prove it
    version = None
    if kind == "exact":
        if resolved is not None:
            version = Version.parse(resolved[0])
        elif isinstance(uri.selector, Version):
            version = uri.selector
        else:
            assert refusal is not None  # noqa: S101 - there is an answer or a refusal
            raise refusal  # only a list proves that a range is empty
    newest = block is None
    if block is None:
        if position.block_hash is None:
            raise Unavailable("the node has indexed no block yet", Code.STALLED, fix="try again")
        block = bytes.fromhex(position.block_hash.removeprefix("0x"))
    try:
        proof = await reader.prover.prove(uri.name, version, block)
    except InvalidInput as error:
        if newest and error.code is Code.INVALID_INPUT:  # a reorg, which the node has not read yet
            raise Unavailable(error.message, Code.STALLED, error.why, "ask again") from None
        raise
    except Unavailable as error:
        log.warning("cannot prove", code=str(error.code), why=str(error.__cause__ or error.why))
        raise
    if refusal is not None:
        raise refusal.with_details(proof=proof)
    assert resolved is not None  # noqa: S101 - there is an answer or a refusal
    answer = reader.tell(resolved[1], Moment.of(0, position))
    return replace(answer, body=answer.body[:-1] + b',"proof":' + orjson.dumps(proof) + b"}")


def _at_one_block(
    connection: Connection, reader: Reader, uri: CapabilityURI, include: frozenset[str]
) -> tuple[Position, tuple[str, Rendered] | None, CapdexError | None]:
    """Return the semver and answer, or the error, and the block that it is of."""
    _, position = read_revision(connection)
    try:
        release = reader.resolve(connection, uri)
        rendered = render_resolution(reader, connection, release, include)
    except CapdexError as error:
        return position, None, error
    return position, (release.semver, rendered), None
