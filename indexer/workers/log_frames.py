"""Frames that have a worker read an `eth_getLogs` reply: the reply in, columns of rows out.

An answer is MessagePack of `_Columns`, whose types and sizes msgspec checks while it decodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from capdex.net.rpc.replies import Answer, read_one
from capdex.registry.logs import LogColumns
from indexer.projection.block_range import LogReader, LogRows
from indexer.projection.event_rows import MAX_TEXT_CHARS
from indexer.workers.frames import Frame, Work, make_request

MAX_REPLY_BYTES: Final = 8 * 1024 * 1024  # larger replies are read in a thread of the node

_Number = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
_Index = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
_Hash = Annotated[bytes, Meta(min_length=32, max_length=32)]
_Topics = Annotated[bytes, Meta(max_length=4 * 32)]
_Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
_Announced = tuple[_Text, _Text, _Text, bool, _Text, _Text, _Hash, _Text]


class _Columns(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The columns of `LogRows` without the address, and the times of blocks by number."""

    block_numbers: list[_Number]
    block_hashes: list[_Hash]
    tx_hashes: list[_Hash]
    log_indexes: list[_Index]
    topics: list[_Topics]
    data: list[bytes]
    entries: list[_Hash]
    releases: list[_Announced | None]
    times: dict[_Number, _Number]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Columns).decode


def read_request(label: str, answer: Answer, id_: int, reader: LogReader) -> Frame:
    """Return the request to read a reply of `eth_getLogs`."""
    header = [label, answer.status, answer.retry_after_s, id_]
    blocks = [reader.address.hex(), reader.first, reader.last]
    return make_request(Work.READ_LOGS, header + blocks, answer.data)


def read_logs(header: list[Any], data: bytes) -> bytes:
    """Read the reply of a request; raise RpcError as `read_one` does. The worker's side."""
    label, status, retry_after_s, id_, address, first, last = header
    reader = LogReader(bytes.fromhex(address), first, last)
    rows, times = read_one(label, Answer(status, retry_after_s, data), id_, reader)
    logs = rows.logs
    where = (logs.block_numbers, logs.block_hashes, logs.tx_hashes, logs.log_indexes)
    return _encode(_Columns(*where, logs.topics, logs.data, rows.entries, rows.releases, times))


def read_columns(answer: bytes, reader: LogReader) -> tuple[LogRows, dict[int, int]]:
    """Return what `LogReader` makes of the reply, from a worker's answer.

    Raises ValueError unless each column has its type and length, and the logs are in canonical
    order and in the blocks of the request.
    """
    try:
        found = _decode(answer)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    *columns, entries, releases, times = msgspec.structs.astuple(found)
    count, numbers = len(found.data), found.block_numbers
    if any(len(column) != count for column in (*columns, entries, releases)):
        raise ValueError("the columns differ in length")
    if count and not reader.first <= numbers[0] <= numbers[-1] <= reader.last:
        raise ValueError("a log is of a block that was not asked for")
    if not _ascends(zip(numbers, found.log_indexes, strict=True)):
        raise ValueError("the logs are out of order")
    if any(len(topics) % 32 for topics in found.topics):
        raise ValueError("a topic is cut")
    return LogRows(LogColumns([reader.address] * count, *columns), entries, releases), times


def _ascends(values: Iterable[Any]) -> bool:
    return all(a < b for a, b in pairwise(values))
