"""JSON-RPC values as ours: quantities, data, block headers and logs.

Everything raises ValueError for what is not well formed; `Rpc` turns that into a fault of the
endpoint, since no well-behaved one sends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capdex.events import LogPosition, RawLog
from capdex.keccak import keccak


@dataclass(frozen=True, slots=True)
class Header:
    """What we need of a block's header; hashes are 32 bytes, `bloom` 256, the time in seconds."""

    number: int
    hash: bytes
    parent: bytes
    timestamp: int
    bloom: bytes

    def may_hold_logs_of(self, address: bytes) -> bool:
        """Whether the block's bloom filter admits a log of this address (yellow paper §4.3.1)."""
        if len(self.bloom) != 256:
            return False  # some chains leave it out
        digest, filter_ = keccak(address), int.from_bytes(self.bloom, "big")
        bits = (int.from_bytes(digest[i : i + 2], "big") & 2047 for i in (0, 2, 4))
        return all(filter_ >> bit & 1 for bit in bits)


def quantity(value: Any) -> int:
    """A quantity (`0x…`, at most 32 bytes) as a number."""
    if not isinstance(value, str) or not value.startswith("0x") or len(value) > 66:
        raise ValueError("a quantity is not one")
    return int(value[2:], 16)


def unhex(value: Any) -> bytes:
    """Data (`0x…`) as bytes."""
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError("data is not hexadecimal")
    return bytes.fromhex(value[2:])


def hex_(data: bytes) -> str:
    """Bytes as data."""
    return "0x" + data.hex()


def read_header(value: Any) -> Header | None:
    """A block as `eth_getBlockBy…` gives it; None where there is none."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("a block is not an object")
    return Header(
        quantity(value.get("number")),
        _hash(value.get("hash")),
        _hash(value.get("parentHash")),
        quantity(value.get("timestamp")),
        unhex(value.get("logsBloom") or "0x"),
    )


def read_log(value: Any) -> RawLog:
    """A log as `eth_getLogs` gives it."""
    if not isinstance(value, dict) or value.get("removed"):
        raise ValueError("a log is not a log of the canonical chain")
    topics = value.get("topics")
    if not isinstance(topics, list) or len(topics) > 4:
        raise ValueError("a log has up to four topics")
    position = LogPosition(
        quantity(value.get("blockNumber")),
        _hash(value.get("blockHash")),
        _hash(value.get("transactionHash")),
        quantity(value.get("logIndex")),
    )
    topics_ = tuple([_hash(topic) for topic in topics])
    return RawLog(unhex(value.get("address")), topics_, unhex(value.get("data")), position)


def read_logs(value: Any, address: bytes, first: int, last: int) -> list[RawLog]:
    """Logs in canonical order without doubles, all of one contract and of blocks first to last."""
    if not isinstance(value, list):
        raise ValueError("the logs are not a list")
    logs: dict[tuple[int, int], RawLog] = {}
    for log in map(read_log, value):
        at = log.position
        if log.address != address or not first <= at.block_number <= last:
            raise ValueError("a log was not asked for")
        if logs.setdefault((at.block_number, at.log_index), log) != log:
            raise ValueError("two logs stand at one place")
    return [logs[at] for at in sorted(logs)]


def _hash(value: Any) -> bytes:
    if not isinstance(value, str) or len(value) != 66 or not value.startswith("0x"):
        raise ValueError("a hash has 32 bytes")
    return bytes.fromhex(value[2:])
