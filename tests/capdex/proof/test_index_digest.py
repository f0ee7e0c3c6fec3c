"""Merkle trees as RFC 6962 has them, and what is in a leaf."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.proof.index_digest import Counts, Frontier, deployment_leaf, event_leaf, release_leaf
from capdex.registry.logs import LogPosition, RawLog

TREES: dict[str, list[Any]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "merkle" / "trees.json").read_text("utf-8")
)
# The leaves of Certificate Transparency's own tests, of which the vectors speak.
LEAVES = [
    bytes.fromhex(x)
    for x in (
        *("", "00", "10", "2021", "3031", "40414243"),
        *("5051525354555657", "606162636465666768696a6b6c6d6e6f"),
    )
]
LISTS = st.lists(st.binary(max_size=40), max_size=80)
EVENT = RawLog(
    b"\x11" * 20,
    (b"\x01" * 32, b"\x02" * 32, b"\x03" * 32),
    b"data",
    LogPosition(7, b"\x04" * 32, b"\x05" * 32, 9),
)


def naive(leaves: Sequence[bytes]) -> bytes:
    """The Merkle tree hash, word for word as RFC 6962 §2.1 defines it."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = split(len(leaves))
    return hashlib.sha256(b"\x01" + naive(leaves[:k]) + naive(leaves[k:])).digest()


def split(n: int) -> int:
    """The largest power of two below n."""
    return 1 << (n - 1).bit_length() - 1


def tree(leaves: Sequence[bytes]) -> bytes:
    return Frontier(leaves).root()


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The audit path of leaf m (§2.1.1), out of roots that a frontier gives."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), tree(leaves[k:])]
    return [*path(m - k, leaves[k:]), tree(leaves[:k])]


def consistency(m: int, leaves: Sequence[bytes], *, whole: bool = True) -> list[bytes]:
    """The consistency proof from m leaves (§2.1.2), out of roots that a frontier gives."""
    if m == len(leaves):
        return [] if whole else [tree(leaves)]
    k = split(len(leaves))
    if m <= k:
        return [*consistency(m, leaves[:k], whole=whole), tree(leaves[k:])]
    return [*consistency(m - k, leaves[k:], whole=False), tree(leaves[:k])]


@given(LISTS)
def test_the_root_is_that_of_the_recursion_in_rfc_6962(leaves: list[bytes]) -> None:
    assert tree(leaves) == naive(leaves)


def test_every_tree_of_up_to_70_leaves_has_its_root_on_the_way_to_the_next() -> None:
    leaves = [bytes([i]) for i in range(70)]
    grown = Frontier()
    for size in range(70):
        assert grown.copy().root() == grown.root() == naive(leaves[:size])
        grown.append(leaves[size])


@given(LISTS, LISTS)
def test_a_tree_grows_from_any_prefix_and_a_copy_grows_by_itself(
    first: list[bytes], then: list[bytes]
) -> None:
    grown = Frontier(first)
    kept = grown.copy()
    grown.extend(then)
    assert (grown.size, grown.root()) == (len(first + then), naive(first + then))
    assert (kept.size, kept.root()) == (len(first), naive(first))


@pytest.mark.parametrize(("index", "size", "leaf", "root", "proof"), TREES["inclusion"])
def test_the_inclusion_proofs_of_the_shared_vectors_are_those_of_our_trees(
    index: int, size: int, leaf: str, root: str, proof: list[str]
) -> None:
    assert tree(LEAVES[:size]).hex() == root
    assert tree([LEAVES[index]]).hex() == leaf
    assert [x.hex() for x in path(index, LEAVES[:size])] == proof


@pytest.mark.parametrize(("before", "after", "root", "later", "proof"), TREES["consistency"])
def test_the_consistency_proofs_of_the_shared_vectors_are_those_of_our_trees(
    before: int, after: int, root: str, later: str, proof: list[str]
) -> None:
    assert tree(LEAVES[:before]).hex() == root
    assert tree(LEAVES[:after]).hex() == later
    assert [x.hex() for x in consistency(before, LEAVES[:after])] == proof


def test_all_shared_vectors_that_hold_were_met() -> None:
    assert {kind: len(cases) for kind, cases in TREES.items()} == {"inclusion": 4, "consistency": 4}


def test_a_leaf_is_no_node() -> None:
    left, right = (hashlib.sha256(b"\x00" + x).digest() for x in (b"a", b"b"))
    assert tree([left + right]) != tree([b"a", b"b"])


def test_the_leaf_of_a_deployment_has_its_fields_in_order() -> None:
    leaf = deployment_leaf(31337, b"\x11" * 20, b"\x22" * 32, 3)
    assert leaf == (
        b"capdex-index-v1" + bytes.fromhex("0000000000007a69") + b"\x11" * 20 + b"\x22" * 32
        + bytes.fromhex("00000003")
    )  # fmt: skip


def test_the_leaf_of_an_event_has_its_fields_in_order() -> None:
    assert event_leaf(5, EVENT, Counts.RELEASE) == (
        bytes.fromhex("0000000000000005" "0000000000000007")
        + b"\x04" * 32 + b"\x05" * 32 + bytes.fromhex("00000009" "03")
        + b"\x01" * 32 + b"\x02" * 32 + b"\x03" * 32 + bytes.fromhex("02" "00000004") + b"data"
    )  # fmt: skip


def test_what_an_event_counts_for_is_a_byte_of_its_own() -> None:
    leaves = [event_leaf(5, EVENT, counts) for counts in Counts]
    assert [leaf[-9] for leaf in leaves] == [0, 1, 2]


def test_the_leaf_of_a_release_has_its_fields_in_order() -> None:
    assert release_leaf(5, b"\x22" * 32, 4, "verified") == (
        bytes.fromhex("0000000000000005") + b"\x22" * 32 + bytes.fromhex("00000004") + b"verified"
    )
