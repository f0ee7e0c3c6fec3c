"""Bytes as `0x` and hexadecimal digits, as the JSON-RPC of Ethereum writes data."""

from __future__ import annotations

from binascii import a2b_hex


def to_hex(data: bytes) -> str:
    """Write bytes as `0x` and lower-case digits."""
    return "0x" + data.hex()


def unhex(value: object) -> bytes:
    """Read `0x…`; raise ValueError if it is anything else."""
    if not isinstance(value, str) or value[:2] != "0x":
        raise ValueError("data is not hexadecimal")
    return a2b_hex(value[2:])  # unlike bytes.fromhex it takes no white space
