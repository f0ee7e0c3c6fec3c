"""Values of a Merkle-Patricia trie by proof: nothing missing, nothing more, nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import rlp
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st
from trie import HexaryTrie

from capdex.proof.trie import decode_rlp, read_value

KEYS = st.binary(min_size=1, max_size=32)
VALUES = st.dictionaries(KEYS, st.binary(min_size=1, max_size=40), max_size=40)
RLP = st.recursive(st.binary(max_size=40), lambda x: st.lists(x, max_size=17), max_leaves=40)


@given(VALUES, KEYS)
def test_every_value_and_every_absence_is_proven(
    proving: Any, values: dict[bytes, bytes], other: bytes
) -> None:
    trie = proving.trie_of(values)
    for key in (*values, other):
        proof = proving.proof_of(trie, key)
        assert read_value(trie.root_hash, key, proof) == values.get(key, b"")


@given(VALUES, KEYS, st.data())
def test_one_node_more_less_or_elsewhere_proves_nothing(
    proving: Any, values: dict[bytes, bytes], key: bytes, data: Any
) -> None:
    trie = proving.trie_of(values | {b"one": b"1", b"two": b"2" * 40})
    proof = proving.proof_of(trie, key)
    at = data.draw(st.integers(0, len(proof) - 1))
    others = [
        proof[:at] + proof[at + 1 :],
        (*proof, proof[at]),
        proof[:at] + proof[at : at + 1] * 2,
    ]
    others += [tuple(reversed(proof))] if len(proof) > 1 else []
    for other in others:
        if other != proof:
            with pytest.raises(ValueError):
                read_value(trie.root_hash, key, other)


@given(VALUES, KEYS, st.integers(0, 10_000))
def test_one_flipped_bit_proves_nothing(
    proving: Any, values: dict[bytes, bytes], key: bytes, bit: int
) -> None:
    trie = proving.trie_of(values | {b"one": b"1"})
    proof = list(proving.proof_of(trie, key))
    node = bytearray(proof[bit % len(proof)])
    node[bit // 8 % len(node)] ^= 1 << bit % 8
    proof[bit % len(proof)] = bytes(node)
    with pytest.raises(ValueError):
        read_value(trie.root_hash, key, proof)


def test_the_empty_trie_needs_no_node() -> None:
    assert read_value(HexaryTrie.BLANK_NODE_HASH, b"key", []) == b""
    with pytest.raises(ValueError):
        read_value(HexaryTrie.BLANK_NODE_HASH, b"key", [b"\x80"])


@given(RLP)
def test_a_root_that_is_no_tries_is_an_error_of_ours(item: Any) -> None:
    """A hash from somebody who lies may lead to any bytes at all."""
    for node in (item, [b"\x00", item], [b"\x20" + keccak(b"key"), item], [item] * 17):
        raw = rlp.encode(node)
        try:
            assert isinstance(read_value(keccak(raw), b"key", [raw]), bytes)
        except ValueError:
            continue


@given(st.lists(st.binary(max_size=80), max_size=5))
def test_any_nodes_are_refused_or_read(nodes: list[bytes]) -> None:
    root = keccak(nodes[0]) if nodes else bytes(32)
    with suppress(ValueError):
        assert isinstance(read_value(root, b"key", nodes), bytes)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x81\x01", b"\xb8\x01\x80", b"\xc1", b"\x80\x80", b"\xc1" * 1000, b"\xf8\xff"],
)
def test_rlp_has_one_spelling(data: bytes) -> None:
    with pytest.raises(ValueError, match="not RLP"):
        decode_rlp(data)


def test_every_value_of_a_small_trie_is_proven(proving: Any) -> None:
    values = {bytes([i]): bytes([i]) * (1 + i) for i in range(40)}
    trie = proving.trie_of(values)
    for key in (*values, b"none of them"):
        proof = proving.proof_of(trie, key)
        assert read_value(trie.root_hash, key, proof) == values.get(key, b"")
        with pytest.raises(ValueError, match="missing"):
            read_value(trie.root_hash, key, proof[:-1])
        with pytest.raises(ValueError, match="not on the path"):
            read_value(trie.root_hash, key, (*proof, proof[-1]))


KEY = keccak(b"key")
CHILD = bytes(31) + b"\1"
NESTED: list[Any] = [b"\x20", b"x"]
for _ in range(17):
    NESTED = [b"\x00", NESTED]


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ([b"", CHILD], "neither"),  # a path is never empty
        ([b"\x40" + KEY, CHILD], "neither"),  # of no kind
        ([b"\x01", CHILD], "neither"),  # an even path whose spare nibble is not 0
        ([[], CHILD], "neither"),
        ([b"\x00" + KEY, b""], "neither"),  # an extension to nothing
        ([b"\x00" + KEY, b"short"], "neither"),
        ([b"\x20" + KEY, [b"\x20", b"x"]], "neither"),  # a leaf holds bytes
        ([b"x"] * 3, "neither"),
        (NESTED, "neither"),  # a sender must not choose how deep the reader goes
        ([b""] * 16 + [[]], "neither"),
        # Leads on behind the end of every key.
        (
            [bytes([0x10 | KEY[0] >> 4]) + bytes.fromhex((KEY.hex() + "0")[1:]), CHILD],
            "do not form a trie",
        ),
    ],
)
def test_a_root_that_is_no_node_is_refused(node: Any, why: str) -> None:
    raw = rlp.encode(node)
    with pytest.raises(ValueError, match=why):
        read_value(keccak(raw), b"key", [raw])
