"""A registry that goes on growing while its readers answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import mcp
import pytest

from capdex.net.ipfs.block_store import BlockDirectory
from indexer.query.index import Index
from indexer.store import Store
from mcp_service.mcp.server import build_server
from mcp_service.queries.reader import Reader


class Growing:
    """An index with its chain, its store and the blocks of its packages."""

    def __init__(self, making: Any, folder: Path) -> None:
        self.making, self.folder = making, folder
        self.url = f"sqlite:///{folder / 'index.db'}"
        self.blocks = BlockDirectory(folder / "blocks")
        self.chain = making.Chain()
        self.store = Store.open(self.url, making.DEPLOYMENT)

    def publish(self, name: str, version: str = "1.0.0", **options: Any) -> None:
        """Announce a package on the chain; `follow` makes readers see it."""
        self.chain.publish(name, version, **options)

    def follow(self) -> None:
        """Index what the chain has, and keep its packages."""
        for data in self.chain.packages.values():
            self.blocks.write(data)
        self.making.follow(self.store, self.chain)


@pytest.fixture
def growing(making: Any, tmp_path: Path) -> Iterator[Growing]:
    """An empty registry."""
    made = Growing(making, tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def client_of(growing: Growing, read: Callable[..., Reader]) -> Iterator[Callable[..., mcp.Client]]:
    """Make in-memory clients of the growing registry."""
    opened: list[Index] = []

    def make(**options: Any) -> mcp.Client:
        opened.append(Index(growing.url))
        reader = read(opened[-1], blocks=growing.blocks)
        return mcp.Client(build_server(reader), **options)

    yield make
    for index in opened:
        index.close()


@pytest.fixture
async def growing_url(growing: Growing, serve: Callable[..., Any]) -> AsyncIterator[str]:
    """The address of a node's HTTP faces over the growing registry."""
    index = Index(growing.url)
    async with serve(index, blocks=growing.blocks.path) as url:
        yield url
    index.close()
