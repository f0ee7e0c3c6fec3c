"""Read blocks of a CAR file (version 1) one at a time: a snapshot may not fit in memory."""

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
HEADER: Final = write_header(
    RAW_PREFIX + bytes(32)
)  # the same in every snapshot, except for its root
_LINK_AT: Final = HEADER.index(RAW_PREFIX)


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
    return InvalidInput(
        "the snapshot is damaged",
        Code.INVALID_INPUT,
        why=why,
        fix="download it again, or use another one",
    )


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
