"""The canonical chain as one stream of steps: block ranges, and reorgs."""

from capdex_indexer.chain.reader import ChainReader
from capdex_indexer.chain.start_block import RegistryLocation, locate_registry

__all__ = ["ChainReader", "RegistryLocation", "locate_registry"]
