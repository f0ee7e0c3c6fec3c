"""What a proof is made of, asked of an endpoint: a header, and slots of a contract at a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from eth_abi.abi import encode

from capdex.encoding.keccak import keccak
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.types import hex_, quantity, unhex
from capdex.proof.block_header import encode_header
from capdex.proof.document import Slot
from capdex.proof.storage_layout import WORD

MAX_KEYS: Final = 256  # slots in one question; geth answers up to 1 024

_INDEX_OF: Final = keccak(b"indexOf(string,string)")[:4]


@dataclass(frozen=True, slots=True)
class Block:
    """The block that is proven: its number, its hash and its header (RLP)."""

    number: int
    hash: bytes
    header: bytes


class Evidence:
    """The slots of a contract at one block, each fetched once."""

    def __init__(self, rpc: Rpc, contract: bytes, block_hash: bytes) -> None:
        self._rpc, self._contract, self._block_hash = rpc, contract, block_hash
        self.account_proof: tuple[bytes, ...] = ()
        self.slots: dict[bytes, Slot] = {}

    async def words(self, keys: Sequence[bytes]) -> list[bytes]:
        """The words at these slots."""
        missing = [key for key in keys if key not in self.slots]
        at = {"blockHash": hex_(self._block_hash)}
        for start in range(0, len(missing), MAX_KEYS):
            asked = missing[start : start + MAX_KEYS]
            params = [hex_(self._contract), [hex_(key) for key in asked], at]
            proven = await self._rpc.call("eth_getProof", params, _read_proof)
            self.account_proof, slots = proven
            self.slots |= dict(zip(asked, slots, strict=True))
        return [self.slots[key].value for key in keys]

    async def index_of(self, name: str, semver: str) -> int:
        """What the contract says is the index of a release; the proof will tell if it is."""
        data = _INDEX_OF + encode(["string", "string"], [name, semver])
        answer = await self._rpc.view(self._contract, data, self._block_hash)
        index = int.from_bytes(answer, "big")
        if len(answer) != WORD or index >= 2**32:
            raise ValueError("the index of a release is none")
        return index


def read_block(found: Any) -> Block | None:
    """A block as `eth_getBlockBy…` gives it, its header rebuilt and of the hash it says."""
    if found is None:
        return None
    if not isinstance(found, Mapping):
        raise ValueError("a block is not an object")
    header, hash_ = encode_header(found), unhex(found.get("hash"))
    if keccak(header) != hash_:
        raise ValueError("the fields of a header do not make its hash: one is wrong or unknown")
    return Block(quantity(found.get("number")), hash_, header)


def _read_proof(answer: Any) -> tuple[tuple[bytes, ...], list[Slot]]:
    """The account's nodes and the slots of an EIP-1186 answer, in the order asked."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("storageProof"), list):
        raise ValueError("a proof is not as EIP-1186 has it")
    slots = []
    for slot in answer["storageProof"]:
        if not isinstance(slot, Mapping):
            raise ValueError("a slot's proof is not as EIP-1186 has it")
        key, value = quantity(slot.get("key")), quantity(slot.get("value"))
        words = (key.to_bytes(WORD, "big"), value.to_bytes(WORD, "big"))
        slots.append(Slot(*words, _read_nodes(slot.get("proof"))))
    return _read_nodes(answer.get("accountProof")), slots


def _read_nodes(value: Any) -> tuple[bytes, ...]:
    """The nodes that have a hash. Some clients also list what stands inside its parent."""
    if not isinstance(value, list):
        raise ValueError("a proof is no list of nodes")
    nodes = list(map(unhex, value))
    if nodes[:1] == [b"\x80"]:  # the empty trie, of which some clients send the one empty node
        nodes = nodes[1:]
    return tuple(node for i, node in enumerate(nodes) if i == 0 or len(node) >= WORD)
