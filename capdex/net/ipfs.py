"""Where packages come from and go to: sources and storages, and fetching from several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from capdex.cid import Cid
from capdex.errors import Code, Unavailable, UsageError
from capdex.net.blocks import BlockDirectory
from capdex.net.gateway import Gateway
from capdex.net.kubo import Kubo

__all__ = [
    "BlockDirectory",
    "Gateway",
    "Kubo",
    "Source",
    "Storage",
    "fetch",
    "open_ipfs",
    "open_storage",
]


class Source(Protocol):
    """Gives blocks; whatever `get` returns has the hash its CID names."""

    label: str

    async def get(self, cid: Cid) -> bytes:
        """The block; raises Unavailable."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Storage(Source, Protocol):
    """Takes blocks, too."""

    async def put(self, data: bytes) -> Cid:
        """Keep a file as one raw block; raises Unavailable."""
        ...


async def fetch(cid: Cid, sources: Sequence[Source]) -> bytes:
    """The block from the first source that has it; raises Unavailable naming what each said."""
    said: list[str] = []
    for source in sources:
        try:
            return await source.get(cid)
        except Unavailable as error:
            said.append(f"{error.message} ({error.why})" if error.why else error.message)
    raise Unavailable(
        f"no source gave {cid}",
        Code.IPFS_UNAVAILABLE,
        why="; ".join(said) or "no source is configured",
        fix="name a source that has it with --ipfs",
    )


def open_ipfs(spec: str) -> Source:
    """The source a spec names: `dir:PATH`, `gateway:URL`, or a Kubo RPC as URL or multiaddr."""
    if spec.startswith("dir:"):
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
