"""Clients of a registry that goes on growing while its readers answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import mcp
import pytest

from capdex_indexer.query.index import Index
from capdex_service.mcp.server import build_server
from capdex_service.mcp.subscriptions import feed
from capdex_service.queries.reader import Reader


@pytest.fixture
def client_of(growing: Any, read: Callable[..., Reader]) -> Iterator[Callable[..., mcp.Client]]:
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
def one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make nodes that are started from now on have one stream."""
    monkeypatch.setattr(feed, "MAX_STREAMS", 1)


@pytest.fixture
async def growing_url(growing: Any, serve: Callable[..., Any]) -> AsyncIterator[str]:
    """The address of a node's HTTP faces over the growing registry."""
    index = Index(growing.url)
    async with serve(index, blocks=growing.blocks.path) as url:
        yield url
    index.close()
