"""Values out of ABI data: whatever is not well-formed is refused, and never read past its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from eth_abi.abi import encode

from capdex.encoding import abi as abidata
from capdex.errors import InvalidInput, UsageError


def test_words_numbers_and_addresses_are_read_where_they_stand() -> None:
    data = encode(["uint64", "int8", "address"], [2**64 - 1, -128, "0x" + "ab" * 20])
    assert abidata.unsigned(data, 0, 64) == 2**64 - 1
    assert abidata.signed(data, 1, 8) == -128
    assert abidata.address(data, 2).lower() == "0x" + "ab" * 20
    assert abidata.word(data, 2) == bytes(12) + b"\xab" * 20


def test_a_string_is_strict_and_words_for_people_are_not() -> None:
    data = encode(["bytes", "string"], [b"a\xff", "né"])
    assert abidata.string(data, 1) == "né"
    assert abidata.words(data, 0) == "a\ufffd"
    with pytest.raises(InvalidInput, match="not UTF-8"):
        abidata.string(data, 0)


@pytest.mark.parametrize(
    ("read", "data", "why"),
    [
        (lambda x: abidata.word(x, 1), bytes(63), "too short"),
        (lambda x: abidata.unsigned(x, 0, 64), bytes(23) + b"\1" + bytes(8), "uint64"),
        (lambda x: abidata.signed(x, 0, 8), bytes(31) + b"\x80", "int8"),
        (lambda x: abidata.signed(x, 0, 8), b"\xff" * 31 + b"\x7f", "int8"),
        (lambda x: abidata.address(x, 0), b"\1" + bytes(31), "not an address"),
        (lambda x: abidata.string(x, 0), bytes(31) + b"\1", "outside"),
        (lambda x: abidata.string(x, 0), bytes(31) + b"\x20", "outside"),
        (lambda x: abidata.string(x, 0), bytes(31) + b"\x20" + bytes(31) + b"\1", "longer"),
    ],
)
def test_what_is_not_well_formed_is_refused(
    read: Callable[[bytes], Any], data: bytes, why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        read(data)


@pytest.mark.parametrize(
    "spaced", ["ab" * 19 + " b", "ab" * 20 + "\n", " " + "ab" * 20, "ab" * 19 + "  "]
)
def test_an_address_has_no_white_space(spaced: str) -> None:
    with pytest.raises(UsageError, match="not an address"):
        abidata.parse_address("0x" + spaced)
