"""Block headers: encoded from JSON, and verified by their hash.

A header is the RLP list of the fields below (yellow paper §4.4.3; EIP-1559, 4895, 4844, 4788, 7685,
7928, 7843); forks only append fields. A header with fields that are unknown here cannot be encoded
from JSON, but its RLP bytes can be read, since only the hash has to match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capdex.encoding.keccak import keccak
from capdex.errors import Code, VerificationFailure
from capdex.proof.trie import decode_rlp

MAX_HEADER_BYTES: Final = 8192  # 650 on mainnet; proof-of-authority chains list signers in it
MAX_FIELDS: Final = 64

_ANY: Final = -1  # bytes of any length
_NUMBER: Final = 0
_FIELDS: Final = {
    "parentHash": 32,
    "sha3Uncles": 32,
    "miner": 20,
    "stateRoot": 32,
    "transactionsRoot": 32,
    "receiptsRoot": 32,
    "logsBloom": 256,
    "difficulty": _NUMBER,
    "number": _NUMBER,
    "gasLimit": _NUMBER,
    "gasUsed": _NUMBER,
    "timestamp": _NUMBER,
    "extraData": _ANY,
    "mixHash": 32,
    "nonce": 8,
}
_APPENDED: Final = {  # by later forks, in this order; a header ends before the first it lacks
    "baseFeePerGas": _NUMBER,  # London
    "withdrawalsRoot": 32,  # Shanghai
    "blobGasUsed": _NUMBER,  # Cancun
    "excessBlobGas": _NUMBER,
    "parentBeaconBlockRoot": 32,
    "requestsHash": 32,  # Prague
    "blockAccessListHash": 32,  # Amsterdam
    "slotNumber": _NUMBER,
}
_ORDER: Final = tuple(_FIELDS)
_STATE_ROOT, _BLOCK_NUMBER, _TIMESTAMP = map(_ORDER.index, ("stateRoot", "number", "timestamp"))
_PARENT: Final = 0


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """The verified fields of a header: timestamp in seconds; hashes and state root of 32 bytes."""

    number: int
    hash: bytes
    state_root: bytes
    timestamp: int
    parent: bytes


def verify_header(data: bytes, block_hash: bytes) -> BlockHeader:
    """Read the header (RLP) of the block with this hash; raises VerificationFailure BAD_PROOF."""
    if len(data) > MAX_HEADER_BYTES or keccak(data) != block_hash:
        raise VerificationFailure(
            "the header is not that of the trusted block",
            Code.BAD_PROOF,
            why=f"it does not hash to 0x{block_hash.hex()}",
            fix="ask again: the chain may just have changed its newest blocks. If it stays so, "
            "the node or the source of the hash is wrong",
        )
    try:
        fields = decode_rlp(data)
        if not isinstance(fields, list) or not len(_FIELDS) <= len(fields) <= MAX_FIELDS:
            raise ValueError("it has too few fields, or too many")
        root, parent = (_read_hash(fields[i]) for i in (_STATE_ROOT, _PARENT))
        number, timestamp = (_read_number(fields[i]) for i in (_BLOCK_NUMBER, _TIMESTAMP))
    except ValueError as error:
        # The data has this hash, so the trusted hash is not one of a block.
        raise VerificationFailure(
            "the trusted hash is not that of a block", Code.BAD_PROOF, why=str(error)[:200]
        ) from None
    return BlockHeader(number, block_hash, root, timestamp, parent)


def encode_header(block: Mapping[str, Any]) -> bytes:
    """Encode the result of `eth_getBlockBy…` as RLP; raises ValueError if a field is malformed.

    The caller compares the hash, since a chain may have additional header fields.
    """
    import rlp

    values = [_value(name, block.get(name), size) for name, size in _FIELDS.items()]
    for name, size in _APPENDED.items():
        if block.get(name) is None:
            break
        values.append(_value(name, block[name], size))
    encoded: bytes = rlp.encode(values)
    return encoded


def _value(name: str, value: object, size: int) -> bytes:
    if not isinstance(value, str) or not value.startswith("0x") or len(value) > MAX_HEADER_BYTES:
        raise ValueError(f"a block's {name} is not hexadecimal")
    if size == _NUMBER:
        number = int(value[2:], 16)
        return number.to_bytes(-(-number.bit_length() // 8), "big")
    data = bytes.fromhex(value[2:])
    if size not in (_ANY, len(data)):
        raise ValueError(f"a block's {name} has {len(data)} bytes")
    return data


def _read_hash(value: object) -> bytes:
    if not isinstance(value, bytes) or len(value) != 32:
        raise ValueError("a field is not a 32-byte hash")
    return value


def _read_number(value: object) -> int:
    if not isinstance(value, bytes) or len(value) > 8 or value[:1] == b"\0":
        raise ValueError("a field is not a 64-bit number")
    return int.from_bytes(value, "big")
