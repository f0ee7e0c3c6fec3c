"""Open the sources and storages that the configuration names."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Protocol

from capdex.errors import Code, UsageError
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.gateway import Gateway
from capdex.net.ipfs.kubo import Kubo
from capdex.net.ipfs.source import BlockSource


class Storage(BlockSource, Protocol):
    """A source that also stores blocks."""

    async def put(self, data: bytes) -> Cid:
        """Store a file in the blocks of `divide`, return the root; raises Unavailable."""
        ...


def open_ipfs(spec: str) -> BlockSource:
    """Open the source of a spec: `dir:PATH`, `gateway:URL`, or a Kubo RPC as URL or multiaddr.

    The address of a capdex node is a gateway too. Raises UsageError for any other spec.
    """
    if spec.startswith("dir:"):
        with suppress(RuntimeError):  # expanduser() knows no such user
            return BlockDirectory(Path(spec.removeprefix("dir:")).expanduser())
    if spec.startswith("gateway:"):
        return Gateway(spec.removeprefix("gateway:"))
    if spec.startswith(("http://", "https://", "/")):
        return Kubo(spec)
    raise UsageError(
        f"{spec!r} is not an IPFS source",
        Code.CONFIG,
        fix="write dir:PATH, gateway:URL, or a Kubo RPC like http://127.0.0.1:5001",
    )


def open_storage(spec: str) -> Storage:
    """Open a source that also stores; raises UsageError if it cannot."""
    source = open_ipfs(spec)
    if isinstance(source, BlockDirectory | Kubo):
        return source
    raise UsageError(
        f"{spec!r} cannot be published to",
        Code.CONFIG,
        why="a gateway is read-only",
        fix="use dir:PATH or a Kubo RPC",
    )
