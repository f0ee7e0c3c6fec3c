"""Content-addressed data: CIDs, CAR files, and UnixFS files in raw or dag-pb blocks (P3)."""

from capdex.ipld.car import read_car, write_car
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES, Assembly

__all__ = ["MAX_BLOCK_BYTES", "Assembly", "Cid", "read_car", "write_car"]
