"""chain + IPFS -> rows: the only writer of the index."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_indexer.node.node import Node
    from capdex_indexer.options import NodeOptions, Role
    from capdex_indexer.query.index import Index
    from capdex_indexer.query.release import IndexedRelease

__all__ = ["Index", "IndexedRelease", "Node", "NodeOptions", "Role"]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
