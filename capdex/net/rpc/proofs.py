"""Make proof documents from an RPC endpoint's answers: `eth_getProof` and a block header.

The endpoint is not trusted: every document is verified before it is returned, so it proves its
claim to anyone who trusts the block hash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from capdex.encoding.contract_abi import encode
from capdex.encoding.hexadecimal import to_hex, unhex
from capdex.encoding.keccak import keccak
from capdex.errors import Code, InvalidInput, Unavailable, VerificationFailure
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import quantity, read_header
from capdex.proof.block_header import encode_header
from capdex.proof.document import LOG_SLOT, MAX_RELEASES, LogProof, Proof, Slot
from capdex.proof.storage_layout import (
    WORD,
    ZERO,
    NameWord,
    ReleaseWord,
    digest_slot,
    long_semver_slots,
    read_long_semver,
    record_slot,
    release_slot,
)
from capdex.proof.verify import Anchor, verify, verify_log
from capdex.registry.logs import BlockRef
from capdex.version import Version

MAX_AT_ONCE: Final = 4  # proofs made concurrently: each may read megabytes from the endpoint
MAX_KEYS: Final = 256  # slots per eth_getProof call; geth answers up to 1 024

_INDEX_OF: Final = keccak(b"indexOf(string,string)")[:4]


class StorageReader:
    """Proven storage slots of a contract at one block; each slot is fetched once."""

    def __init__(self, rpc: Rpc, contract: bytes, block: BlockRef, header: bytes) -> None:
        self._rpc, self._contract = rpc, contract
        self.block, self._header = block, header
        self._account: tuple[bytes, ...] = ()
        self.slots: dict[bytes, Slot] = {}

    @classmethod
    async def open(cls, rpc: Rpc, contract: bytes, block: int | bytes) -> Self:
        """Return a reader at a block by number or hash; raises InvalidInput if there is none."""
        by_hash = isinstance(block, bytes)
        method = "eth_getBlockByHash" if by_hash else "eth_getBlockByNumber"
        which = to_hex(block) if isinstance(block, bytes) else hex(block)
        answer = await rpc.call(method, [which, False], _read_block)
        if answer is None or (answer[0].hash if by_hash else answer[0].number) != block:
            raise _no_block(f"the chain has no block {which}")
        return cls(rpc, contract, *answer)

    def account(self, chain_id: int) -> tuple[int, bytes, int, bytes, bytes, tuple[bytes, ...]]:
        """Return the fields of AccountProof, after words were read."""
        at = self.block
        return chain_id, self._contract, at.number, at.hash, self._header, self._account

    async def words(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the words at these slots."""
        missing = [key for key in keys if key not in self.slots]
        at = {"blockHash": to_hex(self.block.hash)}
        for start in range(0, len(missing), MAX_KEYS):
            requested = missing[start : start + MAX_KEYS]
            params = [to_hex(self._contract), [to_hex(key) for key in requested], at]
            proven = await self._rpc.call("eth_getProof", params, _read_proof)
            self._account, slots = proven
            self.slots |= dict(zip(requested, slots, strict=True))
        return [self.slots[key].value for key in keys]

    async def index_of(self, name: str, semver: str) -> int:
        """Return the index of a release by the contract's view; the proof will confirm it."""
        data = _INDEX_OF + encode([{"type": "string"}] * 2, [name, semver])
        answer = await self._rpc.view(self._contract, data, self.block)
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
        document = proof.to_json()
        anchor = Anchor(self._chain_id, self._contract, proof.block_hash)
        try:  # as a reader of the document will
            await asyncio.to_thread(lambda: verify(Proof.parse(document), anchor))
        except VerificationFailure as error:
            raise _no_valid_proof(error.why) from None
        return document

    async def _gather(self, name: str, version: Version | None, block: int | bytes) -> Proof:
        storage = await StorageReader.open(self._rpc, self._contract, block)
        if version is None:
            semver, index, order = None, None, await _list(storage, name)
        else:
            semver = str(version)
            index, order = await _one(storage, name, semver)
        slots = tuple([storage.slots[key] for key in order])
        return Proof(*storage.account(self._chain_id), name, semver, index, slots)


async def prove_log(rpc: Rpc, *, chain_id: int, contract: bytes, block: int) -> LogProof:
    """Return a verified proof of a contract's log slot at block number `block`.

    Raises InvalidInput for a block that is unknown or whose state the endpoint no longer keeps,
    RpcError or Unavailable when the endpoint does not give what is needed.
    """
    try:
        storage = await StorageReader.open(rpc, contract, block)
        await storage.words([LOG_SLOT])
        proof = LogProof(*storage.account(chain_id), storage.slots[LOG_SLOT])
        verify_log(LogProof.parse(proof.to_json()), Anchor(chain_id, contract, proof.block_hash))
    except RpcError as error:
        raise (_public_error(error) if error.fault is RpcFault.NO_STATE else error) from None
    except (ValueError, VerificationFailure) as error:
        why = error.why if isinstance(error, VerificationFailure) else str(error)
        raise _no_valid_proof(why, rpc.endpoint, Code.RPC_UNAVAILABLE) from None
    return proof


# ------------------------------------------------------------------------- slots of a document


async def _list(storage: StorageReader, name: str) -> list[bytes]:
    """Fetch all slots of a name; return their keys in document order."""
    record = record_slot(name)
    count = NameWord.read((await storage.words([record]))[0]).release_count
    if count > MAX_RELEASES:
        raise InvalidInput(
            f"{name} has {count} releases, and a proof lists {MAX_RELEASES} at most",
            Code.TOO_LARGE,
            fix="ask for a proof of one exact version",
        )
    entries, semvers = await _releases(storage, name, range(count))
    digests = [digest_slot(name, semver) for semver in semvers]
    await storage.words(digests)
    pairs = zip(entries, digests, strict=True)
    return [record, *(word for entry, digest in pairs for word in (*entry, digest))]


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


def _read_proof(answer: object) -> tuple[tuple[bytes, ...], list[Slot]]:
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


def _read_nodes(value: object) -> tuple[bytes, ...]:
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
            why="the chain endpoint no longer keeps it",
            fix="ask for a newer block, or use an endpoint with an archive",
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
        fix="ask again, without proof_block or with a block of the current chain",
    )


def _no_valid_proof(
    why: str, endpoint: str = "the node's chain endpoint", code: Code = Code.STALLED
) -> Unavailable:
    return Unavailable(
        f"the answers of {endpoint} make no valid proof",
        code,
        why=why,
        fix="ask again, or another node or endpoint",
    )
