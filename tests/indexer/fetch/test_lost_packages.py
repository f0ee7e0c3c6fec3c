"""A node whose block directory lacks packages of verified releases fetches them again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex_indexer.fetch import lost_packages
from capdex_indexer.fetch.lost_packages import LostPackages
from capdex_indexer.store import Operator, Store


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a background task is about to bring about."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - files on disk are no event
            await asyncio.sleep(0.005)


async def test_packages_that_are_not_held_are_fetched_unless_they_are_denied(
    making: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lost_packages, "LOOK_S", 0.01)
    url, chain = f"sqlite:///{tmp_path / 'index.db'}", making.Chain()
    source, blocks = (BlockDirectory(tmp_path / x) for x in ("source", "blocks"))
    packages = {name: making.package_bytes(name) for name in ("denied", "late", "lost")}
    for name, data in packages.items():
        chain.publish(name, data=data)
    making.fill(url, chain, tmp_path / "unused")
    with Operator(url) as operator:
        operator.deny("denied")
    cids = {name: Cid.of(data) for name, data in packages.items()}
    source.write(packages["lost"])
    source.write(packages["denied"])
    store = Store.open(url, making.DEPLOYMENT)
    looking = asyncio.create_task(LostPackages(store, [source], blocks).run())
    try:
        await until(lambda: blocks.holds(cids["lost"]))
        assert blocks.read(cids["lost"]) == packages["lost"]
        source.write(packages["late"])  # no source had it at first
        await until(lambda: blocks.holds(cids["late"]))
        assert not blocks.holds(cids["denied"])
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        store.close()
