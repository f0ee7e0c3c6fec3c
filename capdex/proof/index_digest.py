"""Digests of an index: Merkle trees over its events, and over its verdicts (P14).

A tree is hashed as RFC 6962 says (SHA-256), and only ever grows at its end: the tree at a block is
a prefix of the tree at any later one. So a `Frontier` of a few hashes is all that has to be kept.
Leaves are bytes with big-endian numbers; an index that holds one event more, less or elsewhere, or
lets another one count, has another root.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha256
from typing import Final

from capdex.registry.logs import RawLog

MAGIC: Final = b"capdex-index-v1"
MAX_TOPICS: Final = 4  # of any log of the EVM

_LEAF, _NODE = b"\x00", b"\x01"  # so that no leaf can pass for a node (RFC 6962 §2.1)


class Frontier:
    """A tree that grows: the roots of its perfect subtrees, from the largest to the smallest.

    Appending hashes two nodes a leaf on average; the root of n leaves takes log2(n) at most.
    """

    __slots__ = ("_peaks", "size")

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._peaks: list[bytes] = []
        self.size = 0
        self.extend(leaves)

    def append(self, leaf: bytes) -> None:
        """Add a leaf behind all others."""
        node, pairs = sha256(_LEAF + leaf).digest(), self.size
        while pairs & 1:
            node = sha256(_NODE + self._peaks.pop() + node).digest()
            pairs >>= 1
        self._peaks.append(node)
        self.size += 1

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaves in their order."""
        for leaf in leaves:
            self.append(leaf)

    def root(self) -> bytes:
        """The Merkle tree hash; of no leaves that of no bytes."""
        if not self._peaks:
            return sha256().digest()
        root, *larger = reversed(self._peaks)
        for peak in larger:
            root = sha256(_NODE + peak + root).digest()
        return root

    def copy(self) -> Frontier:
        """The same tree, to grow by itself."""
        twin = Frontier()
        twin._peaks, twin.size = list(self._peaks), self.size
        return twin


class Counts(IntEnum):
    """What an event does in an index."""

    NOTHING = 0  # it is no event, or concerns nothing
    EVENT = 1
    RELEASE = 2  # it is a release, and the one that stands for its version


def deployment_leaf(chain_id: int, contract: bytes, genesis: bytes, decoder_version: int) -> bytes:
    """The first leaf of an index: whose events follow, and by which rules they count.

    `contract` has 20 bytes, `genesis` (the hash of the chain's first block) 32.
    """
    return b"".join(
        (MAGIC, chain_id.to_bytes(8, "big"), contract, genesis, decoder_version.to_bytes(4, "big"))
    )


def event_leaf(sequence: int, log: RawLog, counts: Counts) -> bytes:
    """The leaf of one event; `sequence` is the contract's own."""
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
    """The leaf of one judged release: the sha256 announced, and the verdict by which rules."""
    return b"".join(
        (
            sequence.to_bytes(8, "big"),
            digest,
            rules_version.to_bytes(4, "big"),
            verdict.encode("ascii"),
        )
    )
