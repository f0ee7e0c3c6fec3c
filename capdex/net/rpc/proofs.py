"""Making proof documents out of what an RPC endpoint says: `eth_getProof` and a header.

The endpoint is not believed either: a document is verified before it is given out, so that what
leaves here proves what it says to whoever trusts the block's hash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from capdex.errors import Code, InvalidInput, Unavailable, VerificationFailure
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import Fault, RpcError
from capdex.net.rpc.evidence import Block, Evidence, read_block
from capdex.net.rpc.types import hex_
from capdex.proof.document import MAX_RELEASES, Kind, Proof
from capdex.proof.storage_layout import (
    ZERO,
    NameRecord,
    ReleaseWord,
    digest_slot,
    long_semver_slots,
    read_long_semver,
    record_slot,
    release_slot,
)
from capdex.proof.verify import Anchor, verify
from capdex.semver import Version

MAX_AT_ONCE: Final = 4  # proofs made side by side: each may ask the endpoint for megabytes


class Prover:
    """Makes proofs about one registry (a contract of 20 bytes) through one chain's endpoints."""

    def __init__(self, rpc: Rpc, *, chain_id: int, contract: bytes) -> None:
        self._rpc = rpc
        self._chain_id, self._contract = chain_id, contract
        self._room = asyncio.Semaphore(MAX_AT_ONCE)

    async def prove(self, name: str, version: Version | None, block: int | bytes) -> dict[str, Any]:
        """A document about `name` at a block: of one version, or the list of all its releases.

        Raises InvalidInput for a block that is not there or too old, and (TOO_LARGE) for a list
        of more than MAX_RELEASES; Unavailable when the endpoint does not give what is needed.
        """
        try:
            async with self._room:
                proof = await self._gather(name, version, block)
        except RpcError as error:
            raise _explained(error) from error
        except ValueError as error:
            raise _broken(str(error)) from None
        anchor = Anchor(self._chain_id, self._contract, proof.block_hash)
        try:
            return await asyncio.to_thread(_checked, proof.to_json(), anchor)
        except VerificationFailure as error:
            raise _broken(error.why) from None

    async def _gather(self, name: str, version: Version | None, block: int | bytes) -> Proof:
        at = await self._block(block)
        evidence = Evidence(self._rpc, self._contract, at.hash)
        if version is None:
            index, order = None, await _list(evidence, name)
        else:
            index, order = await _one(evidence, name, str(version))
        return Proof(
            Kind.LIST if version is None else Kind.EXACT,
            self._chain_id,
            self._contract,
            at.number,
            at.hash,
            name,
            None if version is None else str(version),
            index,
            at.header,
            evidence.account_proof,
            tuple([evidence.slots[key] for key in order]),
        )

    async def _block(self, block: int | bytes) -> Block:
        by_hash = isinstance(block, bytes)
        method = "eth_getBlockByHash" if by_hash else "eth_getBlockByNumber"
        which = hex_(block) if isinstance(block, bytes) else hex(block)
        found = await self._rpc.call(method, [which, False], read_block)
        if found is None or (found.hash if by_hash else found.number) != block:
            raise _no_block(f"the chain has no block {which}")
        return found


def _checked(document: dict[str, Any], anchor: Anchor) -> dict[str, Any]:
    """The document, when others will be able to read it and find that it holds."""
    verify(Proof.parse(document), anchor)
    return document


async def _list(evidence: Evidence, name: str) -> list[bytes]:
    """Fetch all of a name's slots; their order in a document."""
    record = record_slot(name)
    count = NameRecord.read((await evidence.words([record]))[0]).release_count
    if count > MAX_RELEASES:
        raise InvalidInput(
            f"{name} has {count} releases, and a proof lists {MAX_RELEASES} at most",
            Code.TOO_LARGE,
            fix="ask for a proof of one exact version",
        )
    entries, semvers = await _releases(evidence, name, range(count))
    digests = [digest_slot(name, semver) for semver in semvers]
    await evidence.words(digests)
    return [
        record,
        *(x for pair in zip(entries, digests, strict=True) for x in (*pair[0], pair[1])),
    ]


async def _one(evidence: Evidence, name: str, semver: str) -> tuple[int | None, list[bytes]]:
    """Fetch the slots of one version; its index if there is one, and their order."""
    digest = digest_slot(name, semver)
    if await evidence.words([digest]) == [ZERO]:
        return None, [digest]
    index = await evidence.index_of(name, semver)
    (slots,), _ = await _releases(evidence, name, [index])
    return index, [digest, *slots]


async def _releases(
    evidence: Evidence, name: str, indices: Sequence[int]
) -> tuple[list[list[bytes]], list[str]]:
    """For the releases at these indices: the slots that hold their versions, and the versions."""
    firsts = [release_slot(name, index) for index in indices]
    words = [ReleaseWord.read(word) for word in await evidence.words(firsts)]
    longs = [
        [] if word.semver is not None else long_semver_slots(name, index, word.length)
        for index, word in zip(indices, words, strict=True)
    ]
    await evidence.words([key for keys in longs for key in keys])
    semvers = [
        read_long_semver(await evidence.words(keys), word.length)
        if word.semver is None
        else word.semver
        for word, keys in zip(words, longs, strict=True)
    ]
    return [[first, *keys] for first, keys in zip(firsts, longs, strict=True)], semvers


def _explained(error: RpcError) -> InvalidInput | Unavailable:
    """An endpoint's refusal in words for strangers, who do not learn which endpoint it is."""
    if error.fault in (Fault.UNKNOWN_BLOCK, Fault.BEYOND_HEAD):
        return _no_block("the chain does not have that block")
    if error.fault is Fault.NO_STATE:
        return InvalidInput(
            "the state of that block is too old to be proven here",
            why="the node's chain endpoint no longer keeps it",
            fix="ask for a newer block, or a node with an archive",
        )
    if error.fault is Fault.RATE:
        return Unavailable("the node's chain endpoint takes no more questions", Code.RATE_LIMITED)
    return Unavailable(
        "the node's chain endpoint gave no proof",
        Code.STALLED,
        why="it is down, or does not know eth_getProof" if error.fault is Fault.FATAL else "",
        fix="ask again, or another node",
    )


def _no_block(what: str) -> InvalidInput:
    return InvalidInput(
        what,
        why="it is not mined yet, or another one has taken its place",
        fix="ask for a block that is there, or leave proof_block out",
    )


def _broken(why: str) -> Unavailable:
    return Unavailable(
        "what the node's chain endpoint says proves nothing",
        Code.STALLED,
        why=why,
        fix="ask again, or another node",
    )
