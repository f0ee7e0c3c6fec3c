"""The canonical chain as one stream of steps: block ranges, and reorgs."""

from indexer.chain.reader import ChainReader
from indexer.chain.start_block import RegistryLocation, locate_registry

__all__ = ["ChainReader", "RegistryLocation", "locate_registry"]
