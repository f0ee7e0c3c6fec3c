"""A UnixFS file, put together from verified blocks: which block is wanted next, and the bytes.

No I/O: whoever has the blocks (a CAR, a gateway asked block by block) gives them.

    assembly = Assembly(root)
    while (cid := assembly.wanted) is not None:
        assembly.give(await get(cid))
    assembly.data
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.cid import RAW, Cid
from capdex.ipld.dag_pb import MAX_LINKS, Piece, read_piece
from capdex.limits import MAX_PACKAGE_BYTES

MAX_BLOCKS: Final = MAX_LINKS  # counted as often as they occur: repetition is how a DAG explodes
MAX_BLOCK_BYTES: Final = 2 * 1024 * 1024  # what IPFS nodes exchange
# A package in blocks, each counted as often as it occurs: hundreds of them are in memory at once.
MAX_KEPT_BYTES: Final = 2 * MAX_PACKAGE_BYTES
MAX_DEPTH: Final = 4  # 256 KiB in blocks of any size that is in use need one level


class Assembly:
    """The file that `root` names, as far as its blocks were given; each is hashed before use.

    `give` raises Unavailable for a block that is not the one wanted (ask another source), and
    InvalidInput for a DAG that is no file within the limits, which no source can mend.
    """

    def __init__(self, root: Cid) -> None:
        self._data = bytearray()
        self._todo: list[tuple[Cid, int, int | None]] = [(root, 1, None)]  # last one first
        self._blocks = 0
        self._given_bytes = 0
        self._kept: dict[Cid, bytes] = {}

    @property
    def wanted(self) -> Cid | None:
        """The CID of the next block; None when the file is whole."""
        return self._todo[-1][0] if self._todo else None

    @property
    def data(self) -> bytes:
        """The file's bytes, from its start."""
        return bytes(self._data)

    @property
    def blocks(self) -> Mapping[Cid, bytes]:
        """The blocks given, to be served again; none of a DAG that says little in much space."""
        return self._kept if self._given_bytes <= MAX_KEPT_BYTES else {}

    def give(self, block: bytes) -> None:
        """Take the block that is wanted."""
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
        if size is None and piece.size_bytes > MAX_PACKAGE_BYTES:  # the others add up to the root's
            raise _too_large(f"it declares {piece.size_bytes} bytes")
        if piece.children and depth == MAX_DEPTH:
            raise _too_large(f"its blocks are more than {MAX_DEPTH} deep")
        if self._blocks + len(self._todo) + len(piece.children) > MAX_BLOCKS:
            raise _too_large(f"it has more than {MAX_BLOCKS} blocks")
        self._data += piece.data
        self._given_bytes += len(block)
        if self._given_bytes <= MAX_KEPT_BYTES:
            self._kept[cid] = block
        self._todo += [(child, depth + 1, size) for child, size in reversed(piece.children)]


def _too_large(why: str) -> InvalidInput:
    return InvalidInput(
        "the file is larger than a package may be", Code.TOO_LARGE, why=why, fix="publish less"
    )
