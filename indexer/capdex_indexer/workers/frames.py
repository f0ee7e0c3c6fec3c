"""Frames between a node and its worker processes: plain bytes and JSON, never pickle.

| work | request header (JSON) | request body | answer body |
|---|---|---|---|
| JUDGE | the announcement | the package | `Judgement.to_json` |
| READ_LOGS | endpoint, status, call id, address, blocks | the reply | `_Columns`, MessagePack |
| VALIDATE | null | a file that a visitor sent | verdict and problems, JSON (another program) |

A request is the work (1 byte), the two lengths (4 bytes each, big-endian), header and body. An
answer is its status (1 byte), the length (4 bytes) and the body.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise
from struct import Struct
from typing import Annotated, Any, BinaryIO, Final

import msgspec
import orjson
from msgspec import Meta

from capdex.net.rpc.replies import RpcReply, read_one
from capdex.registry.events import Announcement
from capdex.registry.logs import LogColumns
from capdex_indexer.projection.block_range import LogReader, LogRows
from capdex_indexer.projection.event_rows import MAX_TEXT_CHARS

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


def read_request(label: str, answer: RpcReply, id_: int, reader: LogReader) -> Frame:
    """Return the request to read a reply of `eth_getLogs`."""
    header = [label, answer.status, answer.retry_after_s, id_]
    blocks = [reader.address.hex(), reader.first, reader.last]
    return make_request(Work.READ_LOGS, header + blocks, answer.data)


def read_logs(header: list[Any], data: bytes) -> bytes:
    """Read the reply of a request; raise RpcError as `read_one` does. The worker's side."""
    label, status, retry_after_s, id_, address, first, last = header
    reader = LogReader(bytes.fromhex(address), first, last)
    rows, times = read_one(label, RpcReply(status, retry_after_s, data), id_, reader)
    logs = rows.logs
    where = (logs.block_numbers, logs.block_hashes, logs.tx_hashes, logs.log_indexes)
    return _encode(_Columns(*where, logs.topics, logs.data, rows.entries, rows.releases, times))


def read_columns(answer: bytes, reader: LogReader) -> tuple[LogRows, dict[int, int]]:
    """Return what `LogReader` makes of the reply, from a worker's answer.

    Raises ValueError or msgspec.DecodeError unless each column has its type and length, and the
    logs are in canonical order and in the blocks of the request.
    """
    decoded = _decode(answer)
    *columns, entries, releases, times = msgspec.structs.astuple(decoded)
    count, numbers = len(decoded.data), decoded.block_numbers
    if any(len(column) != count for column in (*columns, entries, releases)):
        raise ValueError("the columns differ in length")
    if count and not reader.first <= numbers[0] <= numbers[-1] <= reader.last:
        raise ValueError("a log is of a block that was not asked for")
    positions = zip(numbers, decoded.log_indexes, strict=True)
    if not all(before < after for before, after in pairwise(positions)):
        raise ValueError("the logs are out of order")
    if any(len(topics) % 32 for topics in decoded.topics):
        raise ValueError("a topic is cut")
    return LogRows(LogColumns([reader.address] * count, *columns), entries, releases), times


REQUEST: Final = Struct(">BII")
ANSWER: Final = Struct(">BI")

Frame = tuple[bytes, bytes]  # all before the body, and the body, which is not copied


class Work(IntEnum):
    """Kinds of work that a worker does."""

    JUDGE = 0
    READ_LOGS = 1
    VALIDATE = 2


class WorkStatus(IntEnum):
    """How a worker's work ended."""

    DONE = 0
    OUT_OF_MEMORY = 1  # the worker ends after it
    FAILED = 2  # the parent does the work itself and meets the error there


def make_request(work: Work, header: object, body: bytes) -> Frame:
    """Return the frame of a request."""
    text = orjson.dumps(header)
    return REQUEST.pack(work, len(text), len(body)) + text, body


def judge_request(announcement: Announcement, data: bytes) -> Frame:
    """Return the request to judge the bytes of a release."""
    *texts, digest = announcement
    return make_request(Work.JUDGE, [*texts, digest.hex()], data)


def read_announcement(header: list[Any]) -> Announcement:
    """Return the announcement in the header of a JUDGE request."""
    chain_id, publisher, cap_uri, semver, cid, digest = header
    return Announcement(chain_id, publisher, cap_uri, semver, cid, bytes.fromhex(digest))


def receive_request(stream: BinaryIO) -> tuple[Work, Any, bytes] | None:
    """Read a request from the parent; None at the end of the stream."""
    head = stream.read(REQUEST.size)
    if len(head) < REQUEST.size:
        return None
    work, header_bytes, body_bytes = REQUEST.unpack(head)
    header, body = stream.read(header_bytes), stream.read(body_bytes)
    if len(header) < header_bytes or len(body) < body_bytes:
        return None
    return Work(work), orjson.loads(header), body


def send_answer(stream: BinaryIO, status: WorkStatus, body: bytes = b"") -> None:
    """Write an answer to the parent."""
    stream.write(ANSWER.pack(status, len(body)) + body)
    stream.flush()
