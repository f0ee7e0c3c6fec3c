"""Block headers: what a hash stands for, of every fork."""

from __future__ import annotations

from typing import Any

import pytest
import rlp
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, VerificationFailure
from capdex.proof.block_header import MAX_HEADER_BYTES, encode_header, verify_header

# Mainnet's genesis block and the London, Paris and Shanghai forms as clients give them.
GENESIS = {
    "parentHash": "0x" + "00" * 32,
    "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
    "miner": "0x" + "00" * 20,
    "stateRoot": "0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544",
    "transactionsRoot": "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
    "receiptsRoot": "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
    "logsBloom": "0x" + "00" * 256,
    "difficulty": "0x400000000",
    "number": "0x0",
    "gasLimit": "0x1388",
    "gasUsed": "0x0",
    "timestamp": "0x0",
    "extraData": "0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa",
    "mixHash": "0x" + "00" * 32,
    "nonce": "0x0000000000000042",
}
GENESIS_HASH = "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3"
FORKS = {
    "Frontier": {},
    "London": {"baseFeePerGas": "0x7"},
    "Shanghai": {"withdrawalsRoot": "0x" + "66" * 32},
    "Cancun": {
        "blobGasUsed": "0x20000",
        "excessBlobGas": "0x0",
        "parentBeaconBlockRoot": "0x" + "77" * 32,
    },
    "Prague": {"requestsHash": "0x" + "88" * 32},
    "Amsterdam": {"blockAccessListHash": "0x" + "99" * 32, "slotNumber": "0xb71b00"},
}


def block_of(fork: str) -> dict[str, Any]:
    """A block as clients give it since that fork."""
    block: dict[str, Any] = dict(GENESIS) | {"number": "0x12a05f2", "timestamp": "0x65a0b1c2"}
    for name, fields in FORKS.items():
        block |= fields
        if name == fork:
            break
    return block | {"hash": "0x" + "00" * 32, "size": "0x220", "uncles": [], "transactions": []}


def test_the_genesis_block_of_ethereum_has_its_hash() -> None:
    header = verify_header(encode_header(GENESIS), bytes.fromhex(GENESIS_HASH[2:]))
    assert (header.number, header.timestamp) == (0, 0)
    assert "0x" + header.state_root.hex() == GENESIS["stateRoot"]
    assert "0x" + header.parent.hex() == GENESIS["parentHash"]


@pytest.mark.parametrize("fork", FORKS)
def test_a_header_of_every_fork_is_its_fields_in_order(fork: str) -> None:
    block = block_of(fork)
    data = encode_header(block)
    fields = rlp.decode(data)
    names = [*GENESIS, *(key for fork_fields in FORKS.values() for key in fork_fields)]
    assert len(fields) == 15 + sum(key in block for key in names[15:])
    for name, value in zip(names, fields, strict=False):
        given = block[name][2:]
        assert int(value.hex() or "0", 16) == int(given or "0", 16), name
    header = verify_header(data, keccak(data))
    assert (header.number, header.timestamp) == (0x12A05F2, 0x65A0B1C2)


def test_a_field_that_is_null_ends_the_header() -> None:
    block = block_of("Cancun") | {"requestsHash": None}
    assert encode_header(block) == encode_header(block_of("Cancun"))


def test_a_header_of_fields_unknown_here_is_read_all_the_same() -> None:
    fields = [*rlp.decode(encode_header(block_of("Amsterdam"))), b"\x01" * 32, b"\x02"]
    data = rlp.encode(fields)
    assert verify_header(data, keccak(data)).number == 0x12A05F2


@pytest.mark.parametrize(
    "change",
    [
        {"stateRoot": None},
        {"stateRoot": "0x12"},
        {"stateRoot": 7},
        {"number": "seven"},
        {"number": "0x"},
        {"extraData": "0x" + "00" * MAX_HEADER_BYTES},
        {"miner": "0x" + "zz" * 20},
        {"withdrawalsRoot": "0x00"},
    ],
)
def test_a_block_without_a_header_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        encode_header(block_of("Prague") | change)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"\xc0",
        rlp.encode([b""] * 14),
        rlp.encode([b""] * 16),
        rlp.encode([b"", b"", b"", bytes(32), *[b""] * 4, b"\0\1", *[b""] * 7]),
        rlp.encode([bytes(32), b"", b"", bytes(32), *[b""] * 4, b"\0\1", *[b""] * 7]),
        rlp.encode([bytes(32), b"", b"", bytes(32), *[b""] * 4, b"\1" * 9, *[b""] * 7]),
        rlp.encode([b"", b"", b"", [b"x"] * 32, *[b""] * 12]),
        b"\xc1" * 5000,
        b"\xf9\xff\xff",
    ],
)
def test_a_hash_that_is_no_blocks_proves_nothing(data: bytes) -> None:
    with pytest.raises(VerificationFailure) as caught:
        verify_header(data, keccak(data))
    assert caught.value.code is Code.BAD_PROOF


@given(st.binary(max_size=700), st.binary(min_size=32, max_size=32))
def test_any_bytes_are_refused_by_a_hash_that_is_not_theirs(data: bytes, hash_: bytes) -> None:
    with pytest.raises(VerificationFailure) as caught:
        verify_header(data, hash_)
    assert caught.value.code is Code.BAD_PROOF


@given(st.integers(0, 5000))
def test_one_flipped_bit_is_another_header(bit: int) -> None:
    data = bytearray(encode_header(GENESIS))
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    with pytest.raises(VerificationFailure):
        verify_header(bytes(data), bytes.fromhex(GENESIS_HASH[2:]))
