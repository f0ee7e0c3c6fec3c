"""Where packages come from and go to: sources and storages, and fetching from several."""

from __future__ import annotations

import asyncio
from asyncio import FIRST_COMPLETED
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from capdex.cid import RAW, Cid
from capdex.errors import CapdexError, Code, Unavailable, UsageError
from capdex.net.blocks import BlockDirectory
from capdex.net.gateway import Gateway
from capdex.net.kubo import Kubo
from capdex.unixfs import Assembly

__all__ = [
    "BlockDirectory",
    "Gateway",
    "Kubo",
    "Source",
    "Storage",
    "fetch",
    "fetch_file",
    "open_ipfs",
    "open_storage",
]

HEDGE_S: Final = 1.0  # a source that has a package has given it by then


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
    """The block from whoever gives it first; raises Unavailable naming what each source said.

    Sources are asked in their order: the next one when one fails, or after `HEDGE_S` as well.
    """
    said: list[str] = []
    waiting, asked = list(reversed(sources)), set[asyncio.Task[bytes]]()
    try:
        running: set[asyncio.Task[bytes]] = set()
        while waiting or running:
            if waiting:
                task = asyncio.create_task(waiting.pop().get(cid))
                asked.add(task)
                running.add(task)
            done, running = await asyncio.wait(
                running, timeout=HEDGE_S if waiting else None, return_when=FIRST_COMPLETED
            )
            for task in done:
                try:
                    return task.result()
                except CapdexError as error:
                    said.append(f"{error.message}: {error.why}".removesuffix(": "))
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    raise Unavailable(
        f"no source gave {cid}",
        Code.IPFS_UNAVAILABLE,
        why="; ".join(said) or "no source is configured",
        fix="name a source that has it with --ipfs",
    )


async def fetch_file(cid: Cid, sources: Sequence[Source]) -> bytes:
    """The file that a CID names: its one raw block, or a UnixFS file block by block (P3).

    Raises Unavailable as `fetch` does, and InvalidInput for what is no file within the limits.
    """
    if cid.codec == RAW:
        return await fetch(cid, sources)
    assembly = Assembly(cid)
    while (wanted := assembly.wanted) is not None:
        assembly.give(await fetch(wanted, sources))
    return assembly.data


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
