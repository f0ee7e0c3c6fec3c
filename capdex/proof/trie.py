"""Reading one value of a Merkle-Patricia trie by its proof (yellow paper, appendix D).

`trie` walks; what is added is strictness: the nodes must be exactly those on the way from the root
to the key, in this order, each of the hash that its parent names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import rlp
from rlp.exceptions import RLPException
from trie.exceptions import MissingTrieNode, ValidationError
from trie.hexary import HexaryTrie

from capdex.encoding.keccak import keccak

MAX_NODE_BYTES: Final = 1024  # a branch of a state trie has 532 at most, a leaf under 200
MAX_NODES: Final = 65  # 64 nibbles of a key, and the root

Item = bytes | list[Any]


class _Nodes(dict[bytes, Item]):
    """Decoded nodes by hash, noting which were looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[bytes] = []

    def __getitem__(self, key: bytes) -> Item:
        node = super().__getitem__(key)
        self.read.append(key)
        return node


def read_value(root: bytes, key: bytes, proof: Sequence[bytes]) -> bytes:
    """The value at keccak256(`key`) in the trie with this root hash; b"" if there is none.

    Raises ValueError unless `proof` proves just that: nothing missing, nothing more.
    """
    if len(proof) > MAX_NODES:
        raise ValueError("a proof has too many nodes")
    nodes, hashes = _Nodes(), []
    for raw in proof:
        if len(raw) > MAX_NODE_BYTES:
            raise ValueError("a node is too large")
        hashes.append(keccak(raw))
        node = nodes[hashes[-1]] = decode_rlp(raw)
        if not _is_node(node):
            raise ValueError("a node is neither branch, extension nor leaf")
    try:
        value: bytes = HexaryTrie(nodes, root).get(keccak(key))  # of checked nodes: no node itself
    except MissingTrieNode:
        raise ValueError("a node is missing on the way to a key, or was changed") from None
    except ValidationError:
        raise ValueError("the nodes are those of no trie") from None
    if nodes.read != hashes:
        raise ValueError("a proof holds nodes that are not on the way to its key")
    return value


def decode_rlp(data: bytes) -> Item:
    """Bytes, or lists of such, in their one canonical encoding; raises ValueError."""
    try:
        item: Item = rlp.decode(data)
    except (RLPException, RecursionError):
        raise ValueError("some data is not RLP") from None
    return item


def _is_node(node: Any, depth: int = 0) -> bool:
    """Whether this is a node, with nodes of less than 32 bytes inside it (at most 16 deep)."""
    if not isinstance(node, list) or depth > 16:
        return False
    if len(node) == 2:
        path, child = node
        # The first nibble says leaf or extension, odd or even (hex prefix encoding).
        well_formed = isinstance(path, bytes) and 0 < len(path) <= 33 and path[0] >> 4 <= 3
        if not well_formed or (not path[0] & 0x10 and path[0] & 0x0F):
            return False
        leaf = bool(path[0] & 0x20)
        return isinstance(child, bytes) if leaf else _is_child(child, depth) and child != b""
    if len(node) == 17:
        return isinstance(node[16], bytes) and all(_is_child(x, depth) for x in node[:16])
    return False


def _is_child(child: Any, depth: int) -> bool:
    return len(child) in (0, 32) if isinstance(child, bytes) else _is_node(child, depth + 1)
