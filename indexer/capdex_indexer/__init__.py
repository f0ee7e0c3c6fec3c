"""chain + IPFS -> rows: the only writer of the index."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_indexer.node.node import Node as Node
    from capdex_indexer.options import NodeOptions as NodeOptions
    from capdex_indexer.options import Role as Role
    from capdex_indexer.query.index import Index as Index
    from capdex_indexer.query.release import IndexedRelease as IndexedRelease
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
