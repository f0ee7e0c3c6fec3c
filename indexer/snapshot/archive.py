"""The bytes of a snapshot: a CAR file (version 1), and the chunks of events in its blocks (P14).

Blocks are read one at a time: a snapshot may not fit in memory. A chunk holds each event's leaf of
the index digest, then its block's timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO, Final

from capdex.encoding.varint import MAX_BYTES, read_varint
from capdex.errors import Code, InvalidInput
from capdex.ipld.car import write_header
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES
from capdex.proof.index_digest import MAX_TOPICS
from capdex.registry.logs import LogPosition, RawLog

RAW_PREFIX: Final = b"\x01\x55\x12\x20"  # CIDv1, raw, sha2-256 of 32 bytes: the only kind inside
CID_BYTES: Final = len(RAW_PREFIX) + 32
HEADER: Final = write_header(RAW_PREFIX + bytes(32))  # of every snapshot, except for its root
_LINK_AT: Final = HEADER.index(RAW_PREFIX)

CHUNK_BYTES: Final = 1 << 20  # some 1 500 events; a larger event gets a chunk of its own

_HEAD: Final = Struct(">QQ32s32sIB")  # sequence, block, its hash, transaction, log index, topics
_TAIL: Final = Struct(">BI")  # effect (an importer ignores it and decodes the log), data
_TIME: Final = Struct(">Q")


def read_root(file: BinaryIO) -> Cid:
    """Read the header and return the manifest's CID; raises InvalidInput for another file."""
    header = file.read(len(HEADER))
    root = header[_LINK_AT : _LINK_AT + CID_BYTES]
    if not root.startswith(RAW_PREFIX) or write_header(root) != header:
        raise InvalidInput(
            "the file is no snapshot",
            why="it does not begin as a CAR of version 1 with one raw root",
            fix="name a file that capdex snapshot export has written",
        )
    return Cid.from_bytes(root)


def read_blocks(file: BinaryIO) -> Iterator[tuple[Cid, bytes]]:
    """Iterate over the remaining blocks, each checked by its CID; raises InvalidInput."""
    while (length := _read_length(file)) is not None:
        if not CID_BYTES <= length <= CID_BYTES + MAX_BLOCK_BYTES:
            raise damaged(f"a block has {length} bytes")
        section = file.read(length)
        if len(section) < length:
            raise damaged("it is cut off")
        if not section.startswith(RAW_PREFIX):
            raise damaged("a block has another kind of CID than a snapshot's")
        cid, block = Cid.from_bytes(section[:CID_BYTES]), section[CID_BYTES:]
        if not cid.matches(block):
            raise damaged(f"the bytes of block {cid} are wrong")
        yield cid, block


def damaged(why: str) -> InvalidInput:
    """Return the error for a snapshot whose bytes are wrong after its header."""
    fix = "download it again, or use another one"
    return InvalidInput("the snapshot is damaged", why=why, fix=fix)


def _read_length(file: BinaryIO) -> int | None:
    """Read the length of the next section; None at the end of the file."""
    number = b""
    while len(number) < MAX_BYTES:
        byte = file.read(1)
        if not byte:
            if not number:
                return None
            break
        number += byte
        if byte[0] < 0x80:
            break
    try:
        return read_varint(number, 0)[0]
    except InvalidInput as error:
        raise damaged(error.message) from None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One event with its claimed sequence number and block timestamp (seconds)."""

    sequence: int
    log: RawLog
    timestamp: int


def pack(leaves: Iterable[tuple[bytes, int]]) -> Iterator[bytes]:
    """Join leaves and timestamps to chunks; equal leaves give equal chunks."""
    chunk = bytearray()
    for leaf, timestamp in leaves:
        size = len(leaf) + _TIME.size
        if chunk and len(chunk) + size > CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
        if size > MAX_BLOCK_BYTES:
            raise InvalidInput(f"an event has {size} bytes, too many for a block", Code.TOO_LARGE)
        chunk += leaf
        chunk += _TIME.pack(timestamp)
    if chunk:
        yield bytes(chunk)


def unpack(chunk: bytes, contract: bytes) -> Iterator[EventRecord]:
    """The events of a chunk, as logs of a contract; raises InvalidInput for malformed bytes."""
    at = 0
    while at < len(chunk):
        if at + _HEAD.size > len(chunk):
            raise damaged("an event is cut off")
        sequence, number, block_hash, tx_hash, index, count = _HEAD.unpack_from(chunk, at)
        at += _HEAD.size
        data_at = at + 32 * count + _TAIL.size
        if count > MAX_TOPICS or data_at > len(chunk):
            raise damaged("an event has more topics than there are")
        topics = tuple([chunk[i : i + 32] for i in range(at, at + 32 * count, 32)])
        _, length = _TAIL.unpack_from(chunk, data_at - _TAIL.size)
        at = data_at + length + _TIME.size
        if at > len(chunk):
            raise damaged("an event is cut off")
        data = chunk[data_at : data_at + length]
        (timestamp,) = _TIME.unpack_from(chunk, data_at + length)
        log = RawLog(contract, topics, data, LogPosition(number, block_hash, tx_hash, index))
        yield EventRecord(sequence, log, timestamp)
