"""keccak-256: the fast one and the one of every system are the same hash."""

from __future__ import annotations

import sys

import pytest

from capdex.encoding.keccak import fastest, keccak


def test_the_hash_of_nothing_is_the_one_that_the_yellow_paper_names() -> None:
    empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert keccak(b"").hex() == empty


@pytest.mark.parametrize("size", [0, 1, 32, 135, 136, 137, 1000])
def test_a_system_without_the_fast_hash_gets_the_same(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    data = bytes(i % 256 for i in range(size))
    monkeypatch.setitem(sys.modules, "sha3", None)  # as where there is no wheel of it
    slow = fastest()
    assert slow is not keccak
    assert slow(data) == keccak(data)
