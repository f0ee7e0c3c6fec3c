"""Read one value of a Merkle-Patricia trie from its proof (yellow paper, appendix D).

The library `trie` walks the nodes. This module adds strictness: the nodes must be exactly those on
the path from the root to the key, in this order, each with the hash that its parent contains.
The libraries are imported when a proof is read: they are slow, and most programs that know what a
proof is read none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from capdex.encoding.keccak import keccak

MAX_NODE_BYTES: Final = 1024  # a branch of a state trie has 532 at most, a leaf under 200
MAX_NODES: Final = 65  # 64 nibbles of a key, and the root

Item = bytes | list[Any]


class _Nodes(dict[bytes, Item]):
    """Decoded nodes by hash, with the list of hashes that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[bytes] = []

    def __getitem__(self, key: bytes) -> Item:
        node = super().__getitem__(key)
        self.read.append(key)
        return node


def read_value(root: bytes, key: bytes, proof: Sequence[bytes]) -> bytes:
    """Return the value at keccak256(`key`) in the trie with this root hash; b"" if absent.

    Raises ValueError unless `proof` consists of exactly the nodes on the path.
    """
    from trie.exceptions import MissingTrieNode, ValidationError
    from trie.hexary import HexaryTrie

    nodes, hashes = _Nodes(), []
    for raw in proof:
        hashes.append(keccak(raw))
        node = nodes[hashes[-1]] = decode_rlp(raw)
        if not _is_node(node):
            raise ValueError("a node is neither branch, extension nor leaf")
    try:
        value: bytes = HexaryTrie(nodes, root).get(keccak(key))  # all nodes are checked
    except MissingTrieNode:
        raise ValueError("a node on the path to a key is missing or changed") from None
    except ValidationError:
        raise ValueError("the nodes do not form a trie") from None
    if nodes.read != hashes:
        raise ValueError("a proof contains nodes that are not on the path to its key")
    return value


def decode_rlp(data: bytes) -> Item:
    """Decode canonical RLP to bytes or nested lists of bytes; raises ValueError."""
    import rlp
    from rlp.exceptions import RLPException

    try:
        item: Item = rlp.decode(data)
    except (RLPException, RecursionError):
        raise ValueError("some data is not RLP") from None
    return item


def _is_node(node: object, depth: int = 0) -> bool:
    """Return True for a trie node, with embedded nodes of under 32 bytes (at most 16 deep)."""
    if not isinstance(node, list) or depth > 16:
        return False
    if len(node) == 2:
        path, child = node
        # The first nibble: leaf or extension, odd or even length (hex prefix encoding).
        well_formed = isinstance(path, bytes) and 0 < len(path) <= 33 and path[0] >> 4 <= 3
        if not well_formed or (not path[0] & 0x10 and path[0] & 0x0F):
            return False
        leaf = bool(path[0] & 0x20)
        return isinstance(child, bytes) if leaf else _is_child(child, depth) and child != b""
    if len(node) == 17:
        return isinstance(node[16], bytes) and all(_is_child(x, depth) for x in node[:16])
    return False


def _is_child(child: object, depth: int) -> bool:
    return len(child) in (0, 32) if isinstance(child, bytes) else _is_node(child, depth + 1)
