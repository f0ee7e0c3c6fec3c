"""The blocks of a file's DAG, depth first: all of them, or those that hold some of its bytes (P3).

No I/O: whoever keeps the blocks gives them. What `capdex.ipld.unixfs` puts together, this takes
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.cid import RAW, Cid
from capdex.ipld.dag_pb import read_piece
from capdex.ipld.unixfs import MAX_BLOCKS


def size_of(root: Cid, block: bytes) -> int:
    """How many bytes the file has whose root block this is; raises InvalidInput for no file."""
    return len(block) if root.codec == RAW else read_piece(block).size_bytes


def walk(
    root: Cid, read: Callable[[Cid], bytes | None], part: range | None = None
) -> Iterator[tuple[Cid, bytes]]:
    """Each block as often as it occurs; of a `part` of the file's bytes, only those it needs.

    The root always comes first. Raises Unavailable where `read` has a block not, and InvalidInput
    for what is no file within the limits.
    """
    todo, blocks = [(root, 0)], 0  # the last one first, each with where in the file it starts
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
