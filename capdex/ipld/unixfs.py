"""UnixFS files: assembled from verified blocks, and divided into blocks again (P3).

There is no I/O here. The caller supplies the blocks, from a CAR or from a gateway:

    assembly = Assembly(root)
    while (cid := assembly.wanted) is not None:
        assembly.give(await get(cid))
    assembly.data
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.cid import RAW, Cid
from capdex.ipld.dag_pb import MAX_LINKS, Piece, read_piece, write_piece
from capdex.limits import MAX_PACKAGE_BYTES

MAX_BLOCKS: Final = MAX_LINKS  # repeated ones count each time: repetition makes a DAG explode
MAX_BLOCK_BYTES: Final = 2 * 1024 * 1024  # what IPFS nodes exchange
# Of a file's limit, in blocks, each counted as often as it occurs: many are in memory at once.
MAX_KEPT: Final = 2
LEAF_BYTES: Final = 256 * 1024  # Kubo's size of a raw block
MAX_DEPTH: Final = 4  # 256 KiB in blocks of any size that is in use need one level


class Assembly:
    """A file with the root CID `root`, assembled block by block; each block is hashed before use.

    It may have `most_bytes`, by default those of a package.

    `give` raises Unavailable for a block that is not the wanted one (another source may have it),
    and InvalidInput if the DAG is not a file within the limits (no source can change that).
    """

    def __init__(self, root: Cid, most_bytes: int = MAX_PACKAGE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._data = bytearray()
        # A stack of (block, its depth, its declared size).
        self._todo: list[tuple[Cid, int, int | None]] = [(root, 1, None)]
        self._blocks = 0
        self._given_bytes = 0
        self._kept: dict[Cid, bytes] = {}

    @property
    def wanted(self) -> Cid | None:
        """The CID of the next block to `give`; None once the file is complete."""
        return self._todo[-1][0] if self._todo else None

    @property
    def data(self) -> bytes:
        """The file's bytes, from its start."""
        return bytes(self._data)

    @property
    def blocks(self) -> Mapping[Cid, bytes]:
        """The blocks given so far, to be stored; empty if the DAG is much larger than its file."""
        return self._kept if self._given_bytes <= MAX_KEPT * self._most_bytes else {}

    def give(self, block: bytes) -> None:
        """Add the bytes of the block `wanted`."""
        cid, depth, size = self._todo[-1]
        if len(block) > MAX_BLOCK_BYTES:
            raise _too_large(f"a block has more than {MAX_BLOCK_BYTES} bytes")
        if not cid.matches(block):
            raise Unavailable(
                f"the bytes given are not the block {cid}",
                Code.IPFS_UNAVAILABLE,
                why="their sha2-256 is another one",
                fix="ask another source",
            )
        self._todo.pop()
        self._blocks += 1
        piece = Piece(block, ()) if cid.codec == RAW else read_piece(block)
        if size is not None and size != piece.size_bytes:
            raise InvalidInput(
                f"the block {cid} holds {piece.size_bytes} bytes of the file",
                why=f"the block above it says {size}",
            )
        if piece.size_bytes > self._most_bytes:
            raise _too_large(f"it declares {piece.size_bytes} bytes")
        if piece.children and depth == MAX_DEPTH:
            raise _too_large(f"its blocks are more than {MAX_DEPTH} deep")
        if self._blocks + len(self._todo) + len(piece.children) > MAX_BLOCKS:
            raise _too_large(f"it has more than {MAX_BLOCKS} blocks")
        self._data += piece.data
        self._given_bytes += len(block)
        if self._given_bytes <= MAX_KEPT * self._most_bytes:
            self._kept[cid] = block
        self._todo += [(child, depth + 1, size) for child, size in reversed(piece.children)]


def divide(data: bytes) -> list[tuple[Cid, bytes]]:
    """Return the blocks of a file as `ipfs add --cid-version 1` makes them, the root first.

    The file has at most `MAX_LINKS` leaves: a small one is a single raw block.
    """
    parts = [data[at : at + LEAF_BYTES] for at in range(0, len(data) or 1, LEAF_BYTES)]
    leaves = [(Cid.of(part), part) for part in parts]
    if len(leaves) == 1:
        return leaves
    root = write_piece((cid, len(part)) for cid, part in leaves)
    return [(Cid.from_bytes(b"\x01\x70\x12\x20" + hashlib.sha256(root).digest()), root), *leaves]


def size_of(root: Cid, block: bytes) -> int:
    """Return the size in bytes of the file with this root block; raises InvalidInput."""
    return len(block) if root.codec == RAW else read_piece(block).size_bytes


def walk(
    root: Cid, read: Callable[[Cid], bytes | None], part: range | None = None
) -> Iterator[tuple[Cid, bytes]]:
    """Iterate over the blocks of a file, depth first, the root first, repeated ones repeatedly.

    With `part`, a range of the file's bytes, only the blocks that contain it. Raises Unavailable
    if `read` returns None for a block, and InvalidInput if it is not a file within the limits.
    """
    todo, blocks = [(root, 0)], 0  # a stack of (block, its offset in the file)
    while todo:
        cid, at = todo.pop()
        block = read(cid)
        if block is None:
            raise Unavailable(f"the block {cid} is not here", Code.IPFS_UNAVAILABLE)
        blocks += 1
        if blocks > MAX_BLOCKS:
            raise InvalidInput(f"it has more than {MAX_BLOCKS} blocks", Code.TOO_LARGE)
        yield cid, block
        if cid.codec == RAW:
            continue
        piece = read_piece(block)
        at += len(piece.data)
        needed = []
        for child, size in piece.children:
            if part is None or (at < part.stop and part.start < at + size):
                needed.append((child, at))
            at += size
        todo += reversed(needed)


def _too_large(why: str) -> InvalidInput:
    return InvalidInput(
        "the file is larger than it may be", Code.TOO_LARGE, why=why, fix="publish less"
    )
