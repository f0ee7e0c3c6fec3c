"""Digests of an index: Merkle trees over its events and over its verdicts (P14).

Trees are hashed as in RFC 6962 (SHA-256) and only append: the tree at a block is a prefix of the
tree at every later block, so only a `Frontier` of a few hashes is stored. Numbers in leaves are
big-endian. One event more, less, moved or counted otherwise gives another root.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha256
from typing import Final

from capdex.registry.logs import RawLog

MAGIC: Final = b"capdex-index-v1"
MAX_TOPICS: Final = 4  # of any log of the EVM

_LEAF, _NODE = b"\x00", b"\x01"  # distinct, so that no leaf can be taken for a node (RFC 6962 §2.1)


class Frontier:
    """An append-only Merkle tree: the roots of its perfect subtrees, largest first.

    `append` hashes two nodes on average; `root` of n leaves hashes at most log2(n).
    """

    __slots__ = ("_peaks", "size")

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._peaks: list[bytes] = []
        self.size = 0
        self.extend(leaves)

    def append(self, leaf: bytes) -> None:
        """Append one leaf."""
        node, pairs = sha256(_LEAF + leaf).digest(), self.size
        while pairs & 1:
            node = sha256(_NODE + self._peaks.pop() + node).digest()
            pairs >>= 1
        self._peaks.append(node)
        self.size += 1

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append leaves in order."""
        for leaf in leaves:
            self.append(leaf)

    def root(self) -> bytes:
        """Return the Merkle tree hash; for an empty tree the SHA-256 of no bytes."""
        if not self._peaks:
            return sha256().digest()
        root, *larger = reversed(self._peaks)
        for peak in larger:
            root = sha256(_NODE + peak + root).digest()
        return root

    def copy(self) -> Frontier:
        """Return an independent copy."""
        other = Frontier()
        other._peaks, other.size = list(self._peaks), self.size
        return other


class Counts(IntEnum):
    """Effect of an event on an index."""

    NOTHING = 0  # not an event, or one without effect
    EVENT = 1
    RELEASE = 2  # the release that counts for its version


def deployment_leaf(chain_id: int, contract: bytes, genesis: bytes, decoder_version: int) -> bytes:
    """Encode the first leaf of an index: the contract of its events, and the decoding rules.

    `contract` has 20 bytes, `genesis` (the hash of the chain's first block) 32.
    """
    return b"".join(
        (MAGIC, chain_id.to_bytes(8, "big"), contract, genesis, decoder_version.to_bytes(4, "big"))
    )


def event_leaf(sequence: int, log: RawLog, counts: Counts) -> bytes:
    """Encode the leaf of one event; `sequence` is the number that the contract gave it."""
    at, topics = log.position, log.topics
    return b"".join(
        (
            sequence.to_bytes(8, "big"),
            at.block_number.to_bytes(8, "big"),
            at.block_hash,
            at.tx_hash,
            at.log_index.to_bytes(4, "big"),
            len(topics).to_bytes(1, "big"),
            *topics,
            counts.to_bytes(1, "big"),
            len(log.data).to_bytes(4, "big"),
            log.data,
        )
    )


def release_leaf(sequence: int, digest: bytes, rules_version: int, verdict: str) -> bytes:
    """Encode the leaf of one verdict: announced sha256, rules version, verdict."""
    return b"".join(
        (
            sequence.to_bytes(8, "big"),
            digest,
            rules_version.to_bytes(4, "big"),
            verdict.encode("ascii"),
        )
    )
