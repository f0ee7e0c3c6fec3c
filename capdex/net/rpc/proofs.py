"""Make proof documents from an RPC endpoint's answers: `eth_getProof` and a block header.

The endpoint is not trusted: every document is verified before it is returned, so it proves its
claim to anyone who trusts the block hash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from capdex.encoding.contract_abi import encode
from capdex.encoding.keccak import keccak
from capdex.errors import Code, InvalidInput, Unavailable, VerificationFailure
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import hex_, quantity, read_header, unhex
from capdex.proof.block_header import encode_header
from capdex.proof.document import MAX_RELEASES, Proof, ProofKind, Slot
from capdex.proof.log_head import LOG_SLOT, LogProof, verify_log
from capdex.proof.storage_layout import (
    WORD,
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
from capdex.registry.block import BlockRef
from capdex.version import Version

MAX_AT_ONCE: Final = 4  # proofs made concurrently: each may read megabytes from the endpoint
MAX_KEYS: Final = 256  # slots per eth_getProof call; geth answers up to 1 024

_INDEX_OF: Final = keccak(b"indexOf(string,string)")[:4]


class StorageReader:
    """Proven storage slots of a contract at one block; each slot is fetched once."""

    def __init__(self, rpc: Rpc, contract: bytes, block_hash: bytes) -> None:
        self._rpc, self._contract, self._block_hash = rpc, contract, block_hash
        self.account_proof: tuple[bytes, ...] = ()
        self.slots: dict[bytes, Slot] = {}

    async def words(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the words at these slots."""
        missing = [key for key in keys if key not in self.slots]
        at = {"blockHash": hex_(self._block_hash)}
        for start in range(0, len(missing), MAX_KEYS):
            requested = missing[start : start + MAX_KEYS]
            params = [hex_(self._contract), [hex_(key) for key in requested], at]
            proven = await self._rpc.call("eth_getProof", params, _read_proof)
            self.account_proof, slots = proven
            self.slots |= dict(zip(requested, slots, strict=True))
        return [self.slots[key].value for key in keys]

    async def index_of(self, name: str, semver: str) -> int:
        """Return the index of a release by the contract's view; the proof will confirm it."""
        data = _INDEX_OF + encode([{"type": "string"}] * 2, [name, semver])
        answer = await self._rpc.view(self._contract, data, self._block_hash)
        index = int.from_bytes(answer, "big")
        if len(answer) != WORD or index >= 2**32:
            raise ValueError("the index of a release is not a number below 2^32")
        return index


class Prover:
    """Makes proofs about one registry (a contract of 20 bytes) through one chain's endpoints."""

    def __init__(self, rpc: Rpc, *, chain_id: int, contract: bytes) -> None:
        self._rpc = rpc
        self._chain_id, self._contract = chain_id, contract
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def prove(self, name: str, version: Version | None, block: int | bytes) -> dict[str, Any]:
        """Return a document about `name` at a block: one version, or the list of all releases.

        Raises InvalidInput for a block that is unknown or too old, and (TOO_LARGE) for a list
        of more than MAX_RELEASES; Unavailable when the endpoint does not give what is needed.
        """
        try:
            async with self._slots:
                proof = await self._gather(name, version, block)
        except RpcError as error:
            raise _public_error(error) from error
        except ValueError as error:
            raise _no_valid_proof(str(error)) from None
        anchor = Anchor(self._chain_id, self._contract, proof.block_hash)
        try:
            return await asyncio.to_thread(_verified, proof.to_json(), anchor)
        except VerificationFailure as error:
            raise _no_valid_proof(error.why) from None

    async def _gather(self, name: str, version: Version | None, block: int | bytes) -> Proof:
        at, header = await self._block(block)
        storage = StorageReader(self._rpc, self._contract, at.hash)
        if version is None:
            index, order = None, await _list(storage, name)
        else:
            index, order = await _one(storage, name, str(version))
        return Proof(
            ProofKind.LIST if version is None else ProofKind.EXACT,
            self._chain_id,
            self._contract,
            at.number,
            at.hash,
            name,
            None if version is None else str(version),
            index,
            header,
            storage.account_proof,
            tuple([storage.slots[key] for key in order]),
        )

    async def _block(self, block: int | bytes) -> tuple[BlockRef, bytes]:
        by_hash = isinstance(block, bytes)
        method = "eth_getBlockByHash" if by_hash else "eth_getBlockByNumber"
        which = hex_(block) if isinstance(block, bytes) else hex(block)
        found = await self._rpc.call(method, [which, False], _read_block)
        if found is None or (found[0].hash if by_hash else found[0].number) != block:
            raise _no_block(f"the chain has no block {which}")
        return found


async def prove_log(rpc: Rpc, *, chain_id: int, contract: bytes, block: int) -> LogProof:
    """Return a verified proof of a contract's log slot at block number `block`.

    Raises InvalidInput for a block that is unknown or whose state the endpoint no longer keeps,
    RpcError or Unavailable when the endpoint does not give what is needed.
    """
    try:
        found = await rpc.call("eth_getBlockByNumber", [hex(block), False], _read_block)
        if found is None or found[0].number != block:
            raise InvalidInput(f"{rpc.endpoint} has no block {block}", fix="ask for one it has")
        at, header = found
        storage = StorageReader(rpc, contract, at.hash)
        await storage.words([LOG_SLOT])
    except RpcError as error:
        if error.fault is not RpcFault.NO_STATE:
            raise
        raise InvalidInput(
            f"the state of block {block} is too old to be proven",
            why=f"{rpc.endpoint} no longer keeps it",
            fix="take a newer block, or an endpoint with an archive",
        ) from None
    except ValueError as error:
        raise _no_valid_log_proof(rpc, block, str(error)) from None
    account, slot = storage.account_proof, storage.slots[LOG_SLOT]
    proof = LogProof(chain_id, contract, at.number, at.hash, header, account, slot)
    try:
        verify_log(LogProof.parse(proof.to_json()), Anchor(chain_id, contract, at.hash))
    except VerificationFailure as error:
        raise _no_valid_log_proof(rpc, block, error.why) from None
    return proof


# ------------------------------------------------------------------------- slots of a document


def _verified(document: dict[str, Any], anchor: Anchor) -> dict[str, Any]:
    """Return the document if a reader will be able to parse and verify it."""
    verify(Proof.parse(document), anchor)
    return document


async def _list(storage: StorageReader, name: str) -> list[bytes]:
    """Fetch all slots of a name; return their keys in document order."""
    record = record_slot(name)
    count = NameRecord.read((await storage.words([record]))[0]).release_count
    if count > MAX_RELEASES:
        raise InvalidInput(
            f"{name} has {count} releases, and a proof lists {MAX_RELEASES} at most",
            Code.TOO_LARGE,
            fix="ask for a proof of one exact version",
        )
    entries, semvers = await _releases(storage, name, range(count))
    digests = [digest_slot(name, semver) for semver in semvers]
    await storage.words(digests)
    return [
        record,
        *(x for pair in zip(entries, digests, strict=True) for x in (*pair[0], pair[1])),
    ]


async def _one(storage: StorageReader, name: str, semver: str) -> tuple[int | None, list[bytes]]:
    """Fetch the slots of one version; return its index, if it exists, and the slots' keys."""
    digest = digest_slot(name, semver)
    if await storage.words([digest]) == [ZERO]:
        return None, [digest]
    index = await storage.index_of(name, semver)
    (slots,), _ = await _releases(storage, name, [index])
    return index, [digest, *slots]


async def _releases(
    storage: StorageReader, name: str, indices: Sequence[int]
) -> tuple[list[list[bytes]], list[str]]:
    """Return, for the releases at these indices, the slots of their versions and the versions."""
    firsts = [release_slot(name, index) for index in indices]
    words = [ReleaseWord.read(word) for word in await storage.words(firsts)]
    longs = [
        [] if word.semver is not None else long_semver_slots(name, index, word.length)
        for index, word in zip(indices, words, strict=True)
    ]
    await storage.words([key for keys in longs for key in keys])
    semvers = [
        read_long_semver(await storage.words(keys), word.length)
        if word.semver is None
        else word.semver
        for word, keys in zip(words, longs, strict=True)
    ]
    return [[first, *keys] for first, keys in zip(firsts, longs, strict=True)], semvers


# ----------------------------------------------------------------------------- JSON-RPC values


def _read_block(value: Any) -> tuple[BlockRef, bytes] | None:
    """Read a block of `eth_getBlockBy…` with its header (RLP), which must have the block's hash."""
    block = read_header(value)
    if block is None:
        return None
    header = encode_header(value)
    if keccak(header) != block.hash:
        raise ValueError("the header fields do not match the block hash: one is wrong or unknown")
    return block.ref, header


def _read_proof(answer: Any) -> tuple[tuple[bytes, ...], list[Slot]]:
    """Read the account's nodes and the slots of an EIP-1186 answer, in the order requested."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("storageProof"), list):
        raise ValueError("a proof does not have the form of EIP-1186")
    slots = []
    for slot in answer["storageProof"]:
        if not isinstance(slot, Mapping):
            raise ValueError("a slot's proof does not have the form of EIP-1186")
        key, value = quantity(slot.get("key")), quantity(slot.get("value"))
        words = (key.to_bytes(WORD, "big"), value.to_bytes(WORD, "big"))
        slots.append(Slot(*words, _read_nodes(slot.get("proof"))))
    return _read_nodes(answer.get("accountProof")), slots


def _read_nodes(value: Any) -> tuple[bytes, ...]:
    """Read the trie nodes that have a hash; some clients also list nodes embedded in a parent."""
    if not isinstance(value, list):
        raise ValueError("a proof is not a list of nodes")
    nodes = list(map(unhex, value))
    if nodes[:1] == [b"\x80"]:  # the empty trie, for which some clients send one empty node
        nodes = nodes[1:]
    return tuple(node for i, node in enumerate(nodes) if i == 0 or len(node) >= WORD)


# -------------------------------------------------------------------------------------- errors


def _public_error(error: RpcError) -> InvalidInput | Unavailable:
    """Return an error for the node's users that does not name the node's endpoint."""
    if error.fault in (RpcFault.UNKNOWN_BLOCK, RpcFault.BEYOND_HEAD):
        return _no_block("the chain does not have that block")
    if error.fault is RpcFault.NO_STATE:
        return InvalidInput(
            "the state of that block is too old to be proven here",
            why="the node's chain endpoint no longer keeps it",
            fix="ask for a newer block, or a node with an archive",
        )
    if error.fault is RpcFault.RATE:
        return Unavailable("the node's chain endpoint limits its requests", Code.RATE_LIMITED)
    return Unavailable(
        "the node's chain endpoint gave no proof",
        Code.STALLED,
        why="it is down, or does not know eth_getProof" if error.fault is RpcFault.FATAL else "",
        fix="ask again, or another node",
    )


def _no_block(message: str) -> InvalidInput:
    return InvalidInput(
        message,
        why="it is not mined yet, or a reorg replaced it",
        fix="ask for a block of the current chain, or leave proof_block out",
    )


def _no_valid_proof(why: str) -> Unavailable:
    return Unavailable(
        "the answers of the node's chain endpoint make no valid proof",
        Code.STALLED,
        why=why,
        fix="ask again, or another node",
    )


def _no_valid_log_proof(rpc: Rpc, block: int, why: str) -> Unavailable:
    return Unavailable(
        f"the answers of {rpc.endpoint} for block {block} make no valid proof",
        Code.RPC_UNAVAILABLE,
        why=why,
        fix="ask another endpoint",
    )
