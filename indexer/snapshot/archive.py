"""Blocks in a CAR file of version 1, one at a time: a snapshot is never whole in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from capdex.encoding.varint import MAX_BYTES, read_varint
from capdex.errors import Code, InvalidInput
from capdex.ipld.car import write_header
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES

RAW_PREFIX: Final = b"\x01\x55\x12\x20"  # CIDv1, raw, sha2-256 of 32 bytes: the only kind inside
CID_BYTES: Final = len(RAW_PREFIX) + 32
HEADER: Final = write_header(RAW_PREFIX + bytes(32))  # of any snapshot but for its root
_LINK_AT: Final = HEADER.index(RAW_PREFIX)


def read_root(file: BinaryIO) -> Cid:
    """The CID of the manifest, at the start of the file; raises InvalidInput for no snapshot."""
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
    """Each block with its CID, hashed, from where the file is; raises InvalidInput if damaged."""
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
    """The error for a file that began as a snapshot and does not go on as one."""
    return InvalidInput(
        "the snapshot is damaged", Code.INVALID_INPUT, why=why, fix="fetch it again, or another one"
    )


def _read_length(file: BinaryIO) -> int | None:
    """The length of the next section; None at the end of the file."""
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
