"""CAR files, version 1: the blocks of a DAG in one stream; every block read is hashed (P3).

https://ipld.io/specs/transport/car/carv1/ : `length ‖ header`, then `length ‖ CID ‖ block` each.
The roots in the header are ignored: the root is the CID that the caller requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from capdex.encoding.multiformats import read_varint, write_varint
from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES, Assembly

MAX_CAR_BYTES: Final = 4 * 1024 * 1024  # a package with its DAG, and some unrelated blocks
MAX_HEADER_BYTES: Final = 8192  # some 200 roots
MAX_CID_BYTES: Final = 128

_VERSION_1: Final = b"\x67version\x01"  # the last entry of the header's map, by dag-cbor's order


def read_car(data: bytes, root: Cid) -> bytes:
    """Return the file with the root CID `root` from a CAR.

    Raises Unavailable if the CAR is malformed, incomplete or contains wrong bytes (another source
    may have the right ones), and InvalidInput if `root` is not a file within the limits of
    `unixfs.Assembly`.
    """
    try:
        blocks = dict(_blocks(data))
    except InvalidInput as error:
        raise _unusable(error.line) from None
    assembly = Assembly(root)
    while (cid := assembly.wanted) is not None:
        block = blocks.get(cid.to_bytes())
        if block is None:
            raise _unusable(f"it lacks the block {cid}")
        assembly.give(block)
    return assembly.data


def write_car(root: bytes, blocks: Iterable[tuple[Cid, bytes]]) -> bytes:
    """Write a CAR with one root (a binary CID) and these blocks; equal input gives equal bytes."""
    return b"".join((write_header(root), *(write_block(cid, block) for cid, block in blocks)))


def write_header(root: bytes) -> bytes:
    """Write the header of a CAR with one root."""
    link = b"\0" + root  # dag-cbor: tag 42 and a byte string of NUL and the CID
    size = bytes([0x40 + len(link)]) if len(link) < 24 else bytes([0x58, len(link)])
    header = b"\xa2\x65roots\x81\xd8\x2a" + size + link + _VERSION_1
    return write_varint(len(header)) + header


def write_block(cid: Cid, block: bytes) -> bytes:
    """Write one section of a CAR: length, CID, block."""
    section = cid.to_bytes() + block
    return write_varint(len(section)) + section


def _blocks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over (binary CID, block) for accepted CIDs; each block is hashed first."""
    if len(data) > MAX_CAR_BYTES:
        raise InvalidInput(f"it has more than {MAX_CAR_BYTES} bytes")
    header, at = _section(data, 0, MAX_HEADER_BYTES)
    if not header.endswith(_VERSION_1):
        raise InvalidInput("it is not a CAR of version 1")
    while at < len(data):
        section, at = _section(data, at, MAX_BLOCK_BYTES + MAX_CID_BYTES)
        end = _end_of_cid(section)
        try:
            cid = Cid.from_bytes(section[:end])
        except InvalidInput:
            continue  # no accepted CID: it cannot be part of a package
        if not cid.matches(section[end:]):
            raise InvalidInput(f"the bytes of block {cid} are wrong")
        yield section[:end], section[end:]


def _section(data: bytes, at: int, limit_bytes: int) -> tuple[bytes, int]:
    length, at = read_varint(data, at)
    if length > limit_bytes:
        raise InvalidInput(f"a section declares {length} bytes", why=f"the limit is {limit_bytes}")
    if length > len(data) - at:
        raise InvalidInput("it is cut off")
    return data[at : at + length], at + length


def _end_of_cid(section: bytes) -> int:
    """Return the length of the CID at the start of a section, for any codec and hash."""
    if section.startswith(b"\x12\x20"):
        return 34  # CIDv0 is a bare sha2-256 multihash
    at = 0
    for _ in ("version", "codec", "hash function"):
        _, at = read_varint(section, at)
    length, at = read_varint(section, at)
    if at + length > min(len(section), MAX_CID_BYTES):
        raise InvalidInput("a CID is cut off or too long")
    return at + length


def _unusable(why: str) -> Unavailable:
    return Unavailable(
        "the CAR does not hold the file", Code.IPFS_UNAVAILABLE, why=why, fix="ask another source"
    )
