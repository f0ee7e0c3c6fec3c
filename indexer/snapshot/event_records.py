"""Events as bytes: each event's leaf of the index digest, then its block's timestamp (P14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from capdex.errors import Code, InvalidInput
from capdex.ipld.unixfs import MAX_BLOCK_BYTES
from capdex.proof.index_digest import MAX_TOPICS
from capdex.registry.logs import LogPosition, RawLog
from indexer.snapshot.archive import damaged

CHUNK_BYTES: Final = 1 << 20  # some 1 500 events; a larger event gets a chunk of its own

_HEAD: Final = Struct(">QQ32s32sIB")  # sequence, block, its hash, transaction, log index, topics
_TAIL: Final = Struct(">BI")  # effect (an importer ignores it and decodes the log), data
_TIME: Final = Struct(">Q")


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
