"""The format of a snapshot: a CAR file (version 1) with a manifest and chunks of events (P14).

Blocks are read one at a time: a snapshot may not fit in memory. The first one is the manifest, with
contracts, digests and chunk CIDs. A chunk holds each event's leaf of the index digest, then its
block's timestamp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO, Final, Self

import orjson

from capdex.encoding.abi import checksum_address
from capdex.encoding.hexadecimal import to_hex
from capdex.encoding.multiformats import MAX_BYTES, read_varint
from capdex.errors import Code, InvalidInput, UsageError
from capdex.ipld.car import write_header
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES
from capdex.json import Json, object_of
from capdex.proof.document import ByteBudget, LogProof, read_number, read_object, read_text
from capdex.proof.index_digest import MAX_TOPICS
from capdex.registry.logs import BlockRef, LogHead, LogPosition, RawLog
from capdex_indexer.db.models import REGISTRY, SEQUENCES, VOTES
from capdex_indexer.store.deployment import Deployment

SCHEMA: Final = "capdex.snapshot/1"
MAX_CHUNKS: Final = 16_384  # a manifest is one block: 16 GiB of events
MAX_INTEGER: Final = 2**63 - 1  # of either database


_KEYS: Final = (
    *("schema", "chain_id", "genesis", "block", "decoder_version", "rules_version"),
    *("registry", "votes", "packages"),
)
_BLOCK_KEYS: Final = ("number", "hash", "parent", "timestamp")
_PART_KEYS: Final = (
    *("contract", "start_block", "log_count", "log_head", "index_digest", "content_digest"),
    *("chunks", "proof"),
)


@dataclass(frozen=True, slots=True)
class LogPart:
    """The log of one contract (20 bytes) up to the block: its digests (P14) and chunks of events.

    `content_digest` is for comparison by people: a snapshot contains no verdicts to check it by.
    """

    contract: bytes
    start_block: int
    log: LogHead
    index_digest: bytes
    content_digest: bytes | None
    chunks: tuple[Cid, ...]
    proof: LogProof | None

    def to_json(self) -> Json:
        """Return the JSON of this log in the manifest."""
        content = self.content_digest
        return {
            "contract": checksum_address(self.contract),
            "start_block": self.start_block,
            "log_count": self.log.count,
            "log_head": to_hex(self.log.head),
            "index_digest": to_hex(self.index_digest),
            "content_digest": None if content is None else to_hex(content),
            "chunks": [cid.text for cid in self.chunks],
            "proof": None if self.proof is None else self.proof.to_json(),
        }

    @classmethod
    def parse(cls, value: object, budget: ByteBudget) -> Self:
        """Parse the JSON; raises ValueError, InvalidInput or VerificationFailure."""
        given = read_object(value, _PART_KEYS)
        chunks, content, proof = (given[x] for x in ("chunks", "content_digest", "proof"))
        if not isinstance(chunks, list) or len(chunks) > MAX_CHUNKS:
            raise ValueError("its chunks are no list, or too many")
        count = _number(given["log_count"])
        if count >= SEQUENCES:
            raise ValueError("it has more events than an index takes")
        return cls(
            budget.data(read_text(given["contract"]).lower(), 20),
            _number(given["start_block"]),
            LogHead(budget.data(given["log_head"], 24), count),
            budget.data(given["index_digest"], 32),
            None if content is None else budget.data(content, 32),
            tuple([Cid.parse(read_text(x)) for x in chunks]),
            None if proof is None else LogProof.parse(proof),
        )


@dataclass(frozen=True, slots=True)
class SnapshotManifest:
    """The claims of a snapshot about itself; `packages` is the number of its package blocks."""

    chain_id: int
    genesis: bytes
    block: BlockRef
    decoder_version: int
    rules_version: int
    registry: LogPart
    votes: LogPart | None
    packages: int

    @property
    def parts(self) -> dict[int, LogPart]:
        """The logs by deployment id, in the order of the file."""
        return {REGISTRY: self.registry} | ({VOTES: self.votes} if self.votes else {})

    def deployment(self, part: LogPart) -> Deployment:
        """Return the contract of a log as a deployment of an index."""
        contract = checksum_address(part.contract)
        return Deployment(self.chain_id, contract, part.start_block, self.genesis)

    def to_bytes(self) -> bytes:
        """Encode the manifest canonically; raises InvalidInput if it is too large for a block."""
        document = {
            "schema": SCHEMA,
            "chain_id": self.chain_id,
            "genesis": to_hex(self.genesis),
            "block": {
                "number": self.block.number,
                "hash": to_hex(self.block.hash),
                "parent": to_hex(self.block.parent),
                "timestamp": self.block.timestamp,
            },
            "decoder_version": self.decoder_version,
            "rules_version": self.rules_version,
            "registry": self.registry.to_json(),
            "votes": None if self.votes is None else self.votes.to_json(),
            "packages": self.packages,
        }
        data = orjson.dumps(document)
        if len(data) > MAX_BLOCK_BYTES:
            raise InvalidInput("the index has more events than a snapshot can list")
        return data

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parse the block; raises InvalidInput, or VerificationFailure for a malformed proof.

        Raises UsageError for a snapshot of another version of the format.
        """
        try:
            return cls._parse(orjson.loads(data))
        except UsageError:
            raise
        except (ValueError, InvalidInput) as error:
            raise damaged(f"its manifest is malformed: {error}") from None

    @classmethod
    def _parse(cls, document: object) -> Self:
        schema = str(object_of(document).get("schema"))
        if schema != SCHEMA and re.fullmatch(r"capdex\.snapshot/[0-9]{1,9}", schema):
            raise of_another_version(f"its format is {schema}, not {SCHEMA}")
        given, budget = read_object(document, _KEYS), ByteBudget(1 << 20)
        if schema != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        block, votes = read_object(given["block"], _BLOCK_KEYS), given["votes"]
        return cls(
            _number(given["chain_id"]),
            budget.data(given["genesis"], 32),
            BlockRef(
                _number(block["number"]),
                budget.data(block["hash"], 32),
                budget.data(block["parent"], 32),
                _number(block["timestamp"]),
            ),
            _number(given["decoder_version"]),
            _number(given["rules_version"]),
            LogPart.parse(given["registry"], budget),
            None if votes is None else LogPart.parse(votes, budget),
            _number(given["packages"]),
        )


def _number(value: object) -> int:
    if (number := read_number(value)) > MAX_INTEGER:
        raise ValueError("a number is larger than an index takes")
    return number


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
            "the file is not a snapshot",
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


def of_another_version(why: str) -> UsageError:
    """Return the error for a snapshot that this version does not read."""
    return UsageError(
        "the snapshot was made by another version of capdex",
        why=why,
        fix="export it again with this version, or index from the chain",
    )


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
