"""Read JSON-RPC values: quantities, data, block headers and logs.

Every function raises ValueError for a malformed value; `Rpc` turns that into a fault of the
endpoint.
"""

from __future__ import annotations

import re
from binascii import a2b_hex
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import itemgetter, lt
from typing import Any

from capdex.encoding.hexadecimal import unhex
from capdex.encoding.keccak import keccak
from capdex.registry.logs import BlockRef, LogColumns, RawLog

MAX_TIME = 253_402_300_799  # the last second of the year 9999, and of Python's calendar
_QUANTITY = re.compile(r"0x[0-9A-Fa-f]{1,64}")


@dataclass(frozen=True, slots=True)
class Header(BlockRef):
    """A block reference with the bloom filter of its logs: 256 bytes, or empty if left out."""

    bloom: bytes

    @property
    def ref(self) -> BlockRef:
        """The block reference without the bloom filter."""
        return BlockRef(self.number, self.hash, self.parent, self.timestamp)

    def may_hold_logs_of(self, address: bytes) -> bool:
        """Return True if the bloom filter admits a log of `address` (yellow paper §4.3.1)."""
        if len(self.bloom) != 256:
            return False  # some chains leave it out
        digest, filter_ = keccak(address), int.from_bytes(self.bloom, "big")
        bits = (int.from_bytes(digest[i : i + 2], "big") & 2047 for i in (0, 2, 4))
        return all(filter_ >> bit & 1 for bit in bits)


def quantity(value: object) -> int:
    """Read a quantity (`0x…`, at most 32 bytes)."""
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):  # int() takes signs and `_`
        raise ValueError("a quantity is not a hexadecimal number")
    return int(value, 16)


def read_header(value: object) -> Header | None:
    """Read a block of `eth_getBlockBy…`; None if there is none."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("a block is not an object")
    number, timestamp = quantity(value.get("number")), quantity(value.get("timestamp"))
    if number >> 63:  # more than a database column holds, and more than a chain needs
        raise ValueError("a block's number has more than 63 bits")
    if timestamp > MAX_TIME:
        raise ValueError("a block's time is after the year 9999; it must be in seconds")
    if number and not timestamp:  # some chains begin with 0; each later block has a later time
        raise ValueError("a block's time is 0")
    return Header(
        number,
        _hash(value.get("hash")),
        _hash(value.get("parentHash")),
        timestamp,
        unhex(value.get("logsBloom") or "0x"),
    )


def read_logs(value: object, address: bytes, first: int, last: int) -> LogColumns:
    """Read logs of one contract in blocks first to last: in canonical order, without duplicates.

    Null is no logs, as some servers write it; a pending log, which is of no block yet, is left out.
    """
    if value is None:
        return LogColumns()
    if not isinstance(value, list):
        raise ValueError("the logs are not a list")
    try:
        logs = read_columns(value)
    except ValueError:
        mined = [x for x in value if not _is_pending(x)]
        if len(mined) == len(value):
            raise
        logs = read_columns(mined)
    if not logs:
        return logs
    numbers, indexes = logs.block_numbers, logs.log_indexes
    if {*logs.addresses} != {address} or not first <= min(numbers) <= max(numbers) <= last:
        raise ValueError("a log is of another contract or block than requested")
    if max(indexes) >> 32:  # more than fits into a block, or into a digest (P14)
        raise ValueError("the index of a log has more than 32 bits")
    places = list(zip(numbers, indexes, strict=True))
    return logs if all(map(lt, places, islice(places, 1, None))) else _ordered(logs)


def _is_pending(log: object) -> bool:
    return isinstance(log, dict) and all(
        log.get(place, "missing") is None for place in ("blockHash", "blockNumber")
    )


def read_times(value: list[dict[str, Any]]) -> dict[int, int]:
    """Return block times (seconds) by number; empty unless all logs have one and agree.

    Many vendors do not send the `blockTimestamp` of a log yet, some send 0.
    """
    try:
        said = {(log["blockNumber"], log.get("blockTimestamp")) for log in value}
        times = {quantity(number): quantity(time) for number, time in said}
    except (ValueError, TypeError):  # missing, or a list or an object
        return {}
    return times if len(times) == len(said) and all(times.values()) else {}


def _ordered(logs: LogColumns) -> LogColumns:
    placed: dict[tuple[int, int], RawLog] = {}
    for log in logs:
        at = log.position
        if placed.setdefault((at.block_number, at.log_index), log) != log:
            raise ValueError("two logs have the same position")
    return LogColumns.of([placed[at] for at in sorted(placed)])


_PARTS = itemgetter(
    *("address", "blockNumber", "blockHash", "transactionHash", "logIndex", "topics", "data")
)


def read_columns(value: list[Any]) -> LogColumns:
    """The logs of one reply, of any contract; blocks, names and accounts recur in them."""
    if not value:
        return LogColumns()
    if {*map(type, value)} != {dict} or any(log.get("removed") for log in value):
        raise ValueError("a log is not a log of the canonical chain")
    address, number, hash_ = cache(unhex), cache(quantity), cache(_hash)  # each text once
    try:
        columns = zip(*map(_PARTS, value), strict=True)
        addresses, numbers, block_hashes, tx_hashes, indexes, topics, data = columns
        if {*map(type, topics)} != {list} or max(map(len, topics)) > 4:
            raise ValueError("a log has up to four topics")
        return LogColumns(
            [address(text) for text in addresses],
            [number(text) for text in numbers],
            [hash_(text) for text in block_hashes],
            [_hash(text) for text in tx_hashes],
            [number(text) for text in indexes],
            [b"".join([hash_(topic) for topic in some]) for some in topics],
            [unhex(text) for text in data],
        )
    except (KeyError, TypeError):  # missing, or a list or an object
        raise ValueError("a field of a log is missing or not a text") from None


def _hash(value: object) -> bytes:
    if not isinstance(value, str) or len(value) != 66 or value[:2] != "0x":
        raise ValueError("a hash has 32 bytes")
    return a2b_hex(value[2:])
