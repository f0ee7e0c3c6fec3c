"""EIP-1559 transactions as bytes: `0x02 ‖ rlp([…fields, parity, r, s])`, or without the signature.

Only what this project sends: transactions without an access list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

TRANSACTION_TYPE: Final = b"\x02"
FIELDS: Final = (  # in the order of EIP-1559
    *("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas"),
    *("gas", "to", "value", "data", "accessList"),
)

Item = bytes | list[Any]


def items_of(fields: dict[str, Any]) -> list[Item]:
    """The RLP items of a transaction's fields (named as in `eth_signTransaction`), in order."""
    return [item_of(fields.get(name, [] if name == "accessList" else "0x")) for name in FIELDS]


def item_of(value: object) -> Item:
    """Return a field as an RLP item: an integer in its fewest bytes, 0x hex as bytes, or a list."""
    if isinstance(value, int):
        return value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes.fromhex(value[2:]) if isinstance(value, str) else []


def encode(items: Sequence[Item]) -> bytes:
    """The transaction of these items; what is signed has no signature among them."""
    return TRANSACTION_TYPE + _rlp(list(items))


def _rlp(item: Item) -> bytes:
    """RLP of bytes and lists (yellow paper, appendix B)."""
    if isinstance(item, bytes):
        return item if len(item) == 1 and item[0] < 0x80 else _prefix(0x80, len(item)) + item
    body = b"".join(map(_rlp, item))
    return _prefix(0xC0, len(body)) + body


def _prefix(first: int, length: int) -> bytes:
    if length <= 55:
        return bytes([first + length])
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([first + 55 + len(size)]) + size
