"""Where the registry keeps what: the layout that a proof speaks of."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from eth_abi import encode
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from capdex.proof import storage_layout as slots
from capdex.proof.storage_layout import NameWord, ReleaseWord

LONG = "1.0.0-" + "x" * 25


def mapped(key_type: str, key: Any, slot: bytes) -> bytes:
    """Solidity's rule for mappings, by another encoder."""
    return keccak(encode([key_type, "bytes32"], [key, slot]))


def base(slot: int) -> bytes:
    return slot.to_bytes(32, "big")


def test_slots_are_those_of_solidity_mappings() -> None:
    name_id, semver_id = keccak(b"weather"), keccak(b"1.2.3")
    of_name = [mapped("bytes32", name_id, base(i)) for i in range(6)]
    assert slots.record_slot("weather") == of_name[1]
    assert slots.digest_slot("weather", "1.2.3") == mapped("bytes32", semver_id, of_name[3])
    assert slots.release_slot("weather", 7) == mapped("uint256", 7, of_name[4])
    assert slots.long_semver_slots("weather", 7, 31) == [mapped("uint256", 7, of_name[5])]


@pytest.mark.parametrize(("length", "count"), [(31, 1), (32, 2), (33, 3), (64, 3)])
def test_a_long_version_takes_the_slots_of_a_solidity_string(length: int, count: int) -> None:
    head, *text = slots.long_semver_slots("weather", 0, length)
    first = int.from_bytes(keccak(head), "big")
    assert text == [base(first + i) for i in range(count - 1)]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (bytes(32), NameWord(bytes(20), 0, 0, False)),
        (bytes.fromhex("00000001" "00000002" "00000003" + "aa" * 20),
         NameWord(b"\xaa" * 20, 3, 2, True)),
    ],
)  # fmt: skip
def test_a_name_record_is_read_from_its_word(word: bytes, expected: NameWord) -> None:
    assert NameWord.read(word) == expected


@pytest.mark.parametrize(
    ("owner", "epoch", "claimed"), [(b"\0", 0, False), (b"\1", 0, True), (b"\0", 1, True)]
)
def test_a_renounced_name_stays_claimed(owner: bytes, epoch: int, claimed: bool) -> None:
    assert NameWord(owner * 20, 1, epoch, False).claimed is claimed


def test_a_release_word_is_read() -> None:
    word = bytes([3, 5]) + b"1.2.3".ljust(30, b"\0")
    assert ReleaseWord.read(word) == ReleaseWord(True, True, 5, "1.2.3")
    whole = "1.0.0-" + "x" * 24
    word = bytes([1, 30]) + whole.encode()
    assert ReleaseWord.read(word) == ReleaseWord(True, False, 30, whole)
    assert ReleaseWord.read(bytes([0, 31]) + bytes(30)) == ReleaseWord(False, False, 31, None)


@pytest.mark.parametrize(
    "word",
    [
        bytes(32),  # no release
        bytes([4, 5]) + b"1.2.3".ljust(30, b"\0"),  # a flag that no registry sets
        bytes([0, 65]) + bytes(30),  # longer than a version may be
        bytes([0, 5]) + b"1.2.34".ljust(30, b"\0"),  # more than the length says
        bytes([0, 31]) + b"1".ljust(30, b"\0"),  # long, and yet inside
        bytes([0, 2]) + b"\xc3\xa9".ljust(30, b"\0"),  # no ASCII
    ],
)
def test_a_word_that_no_registry_writes_is_refused(word: bytes) -> None:
    with pytest.raises(ValueError):
        ReleaseWord.read(word)


@pytest.mark.parametrize("length", [31, 32, 33, 64])
def test_a_version_of_every_length_is_the_string_of_solidity(proving: Any, length: int) -> None:
    semver = "1.0.0-" + "x" * (length - 6)
    words = proving.solidity_string(semver.encode(), len(slots.long_semver_slots("a", 0, length)))
    assert slots.read_long_semver(words, length) == semver
    for at in range(len(words)):
        damaged = [*words[:at], words[at][:-1] + b"\xfe", *words[at + 1 :]]
        if length % 32 or at == 0:  # else the last byte is one of the text, which is not ASCII now
            with pytest.raises(ValueError):
                slots.read_long_semver(damaged, length)


@given(st.text("0123456789.-abc", min_size=31, max_size=64))
def test_a_long_version_is_read_back(proving: Any, semver: str) -> None:
    count = len(slots.long_semver_slots("weather", 0, len(semver)))
    words = proving.solidity_string(semver.encode(), count)
    assert slots.read_long_semver(words, len(semver)) == semver
    for i in range(count):
        damaged = list(words)
        damaged[i] = damaged[i][:-1] + bytes([damaged[i][-1] ^ 1])
        with suppress(ValueError):  # a bit of the text is another text, any other is refused
            assert slots.read_long_semver(damaged, len(semver)) != semver


def test_a_name_has_at_most_its_one_known_flag() -> None:
    with pytest.raises(ValueError, match="unknown flags 0x2"):
        NameWord.read(bytes.fromhex("00000002") + bytes(28))
