"""Strict reader, and writer, of dag-pb blocks that are pieces of a UnixFS file: two protobufs (P3).

Sources: https://ipld.io/specs/codecs/dag-pb/spec/ and https://specs.ipfs.tech/unixfs/.
Only files are read, because a directory cannot be a package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from capdex.encoding.multiformats import read_varint, write_varint
from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid

MAX_LINKS: Final = 64  # a package has at most 64 blocks, so one block has at most 64 links
MAX_FIELDS: Final = MAX_LINKS + 16  # UnixFS has one size for each link, and 7 other fields

_VARINT, _BYTES = 0, 2  # protobuf's wire types
_RAW, _FILE = 0, 2  # of UnixFS; the others cannot be a package
_OTHERS: Final = {1: "a directory", 3: "metadata", 4: "a symlink", 5: "a sharded directory"}


@dataclass(frozen=True, slots=True)
class Piece:
    """One block of a file: its own bytes, and the CID and size of each child block after them."""

    data: bytes
    children: tuple[tuple[Cid, int], ...]

    @property
    def size_bytes(self) -> int:
        """The declared size in bytes of this block and its children together."""
        return len(self.data) + sum(size for _, size in self.children)


def read_piece(block: bytes) -> Piece:
    """Read one dag-pb block of a file; raises InvalidInput for any other block."""
    links, named, content = _node(block)
    kind, data, size, sizes = _unixfs(content)
    if kind not in (_RAW, _FILE):
        raise _refusal(f"it is {_OTHERS.get(kind, f'UnixFS type {kind}')}")
    if named:
        raise _refusal("a link of a file has a name")
    if len(links) != len(sizes):
        raise _refusal(f"it has {len(links)} links and {len(sizes)} sizes")
    piece = Piece(data, tuple(zip(links, sizes, strict=True)))
    if size is not None and size != piece.size_bytes:
        raise _refusal(f"it declares {size} bytes, and its parts {piece.size_bytes}")
    return piece


def write_piece(leaves: Iterable[tuple[Cid, int]]) -> bytes:
    """Write the block of a file above raw blocks of these sizes, as Kubo writes it."""
    links, sizes, total = b"", b"", 0
    for cid, size in leaves:
        link = _field(1, cid.to_bytes()) + _field(2, b"") + b"\x18" + write_varint(size)
        links += _field(2, link)
        sizes += b"\x20" + write_varint(size)
        total += size
    return links + _field(1, bytes((8, _FILE)) + b"\x18" + write_varint(total) + sizes)


def _field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | _BYTES,)) + write_varint(len(value)) + value


def _node(block: bytes) -> tuple[list[Cid], bool, bytes]:
    """Read a PBNode: links (field 2), then data (field 1) once; also True if a link has a name."""
    links: list[Cid] = []
    names: list[bool] = []
    content: bytes | None = None
    for number, value in _fields(block):
        if not isinstance(value, bytes) or content is not None:
            raise _refusal("a field of the node is out of place")
        if number == 2:
            cid, named = _link(value)
            links.append(cid)
            names.append(named)
            if len(links) > MAX_LINKS:
                raise _refusal(f"it has more than {MAX_LINKS} links")
        elif number == 1:
            content = value
        else:
            raise _refusal(f"the node has an unknown field {number}")
    if content is None:
        raise _refusal("it holds no UnixFS data")
    return links, any(names), content


def _link(raw: bytes) -> tuple[Cid, bool]:
    """Read a PBLink: hash (1), name (2), size (3), in this order; also True if it has a name."""
    cid: Cid | None = None
    named = False
    last = 0
    for number, value in _fields(raw):
        if number <= last or number > 3 or isinstance(value, bytes) is (number == 3):
            raise _refusal("a field of a link is out of place")
        last = number
        if number == 1:
            cid = Cid.from_bytes(bytes(value))
        elif number == 2:
            named = bool(value)
    if cid is None:
        raise _refusal("a link has no CID")
    return cid, named


def _unixfs(content: bytes) -> tuple[int, bytes, int | None, list[int]]:
    """Read UnixFS data: type (1), data (2), file size (3), child sizes (4); mode, time ignored."""
    kind, data, size, sizes = -1, b"", None, []
    seen: set[int] = set()
    for number, value in _fields(content):
        if number in seen and number != 4:
            raise _refusal(f"the UnixFS field {number} occurs twice")
        seen.add(number)
        if number == 2 and isinstance(value, bytes):
            data = value
        elif number == 1 and isinstance(value, int):
            kind = value
        elif number == 3 and isinstance(value, int):
            size = value
        elif number == 4 and isinstance(value, int):
            sizes.append(value)
        elif number < 5:
            raise _refusal(f"the UnixFS field {number} has the wrong type")
    return kind, data, size, sizes


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Iterate over the fields of a protobuf message: field number, and a number or bytes."""
    at = seen = 0
    while at < len(message):
        seen += 1
        if seen > MAX_FIELDS:  # a block of two bytes a field would take a second to read
            raise _refusal(f"a message has more than {MAX_FIELDS} fields")
        key, at = read_varint(message, at)
        value, at = read_varint(message, at)
        if key & 7 == _VARINT:
            yield key >> 3, value
        elif key & 7 == _BYTES and value <= len(message) - at:
            yield key >> 3, message[at : at + value]
            at += value
        else:
            raise _refusal("a field is cut off, or of a kind that dag-pb does not have")


def _refusal(why: str) -> InvalidInput:
    return InvalidInput("a block is not a piece of a file", why=why, fix="publish a single file")
