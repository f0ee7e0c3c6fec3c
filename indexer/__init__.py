"""chain + IPFS -> rows: the only writer of the index."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from indexer.node.node import Node
    from indexer.options import NodeOptions, Role
    from indexer.query.index import Index
    from indexer.query.release import IndexedRelease

__all__ = [
    "Index",
    "IndexedRelease",
    "Node",
    "NodeOptions",
    "Role",
]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(
        __name__,
        {
            "indexer.node.node": ["Node"],
            "indexer.options": ["NodeOptions", "Role"],
            "indexer.query.index": ["Index"],
            "indexer.query.release": ["IndexedRelease"],
        },
    )
