"""Where packages come from and go to: sources and storages, and fetching from several."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from capdex.errors import Code, UsageError
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.gateway import Gateway
from capdex.net.ipfs.kubo import Kubo
from capdex.net.ipfs.multi_source import Sources
from capdex.net.ipfs.source import Source

__all__ = [
    "BlockDirectory",
    "Gateway",
    "Kubo",
    "Source",
    "Sources",
    "Storage",
    "fetch",
    "fetch_file",
    "open_ipfs",
    "open_storage",
]


class Storage(Source, Protocol):
    """Takes blocks, too."""

    async def put(self, data: bytes) -> Cid:
        """Keep a file as one raw block; raises Unavailable."""
        ...


async def fetch(cid: Cid, sources: Sequence[Source]) -> bytes:
    """The block from whoever gives it first; raises Unavailable naming what each source said.

    Sources are asked in their order: the next one when one fails, or after a second as well.
    """
    return await Sources(sources).get(cid)


async def fetch_file(cid: Cid, sources: Sequence[Source]) -> bytes:
    """The file that a CID names: its one raw block, or a UnixFS file block by block (P3).

    Raises Unavailable as `fetch` does, and InvalidInput for what is no file within the limits.
    """
    return (await Sources(sources).file(cid)).data


def open_ipfs(spec: str) -> Source:
    """The source a spec names: `dir:PATH`, `gateway:URL`, or a Kubo RPC as URL or multiaddr.

    Another node is a gateway, too, at its own address.
    """
    if spec.startswith("dir:"):
        with suppress(RuntimeError):  # of a ~ that is nobody's
            return BlockDirectory(Path(spec.removeprefix("dir:")).expanduser())
    if spec.startswith("gateway:"):
        return Gateway(spec.removeprefix("gateway:"))
    if spec.startswith(("http://", "https://", "/")):
        return Kubo(spec)
    raise UsageError(
        f"{spec!r} names no IPFS",
        Code.CONFIG,
        fix="write dir:PATH, gateway:URL, or a Kubo RPC like http://127.0.0.1:5001",
    )


def open_storage(spec: str) -> Storage:
    """As `open_ipfs`, for publishing; raises UsageError for a source that takes nothing."""
    source = open_ipfs(spec)
    if isinstance(source, BlockDirectory | Kubo):
        return source
    raise UsageError(
        f"{spec!r} cannot be published to",
        Code.CONFIG,
        why="a gateway only gives",
        fix="use dir:PATH or a Kubo RPC",
    )
