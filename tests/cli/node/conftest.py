"""Parts of a node for its tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capdex.net.ipfs.block_store import BlockDirectory
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index
from capdex_indexer.store import Deployment, Store


@pytest.fixture
def surface(tmp_path: Path) -> Iterator[Surface]:
    """What a node on an empty index shows."""
    url = f"sqlite:///{tmp_path / 'index.db'}"
    Store.open(url, Deployment(1, "0x" + "00" * 20, 0, bytes(32))).close()
    index = Index(url)
    yield Surface(index, BlockDirectory(tmp_path / "blocks"), Health())
    index.close()
