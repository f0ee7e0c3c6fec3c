"""Packages from the cache, verified whenever they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdex.errors import Unavailable
from capdex.ipld.cid import Cid
from capdex_router.home.config import Config
from capdex_router.install.fetch import Cache, open_gateways
from tests.router.simulated import SimulatedNode, weather


async def test_a_gateway_that_has_nothing_is_one_error(node: SimulatedNode) -> None:
    async with open_gateways(Config(nodes=(node.address, node.address))) as files:
        with pytest.raises(Unavailable):
            await files.file(Cid.of(weather()))
    assert node.requests == ["block"]


def test_the_cache_gives_what_it_was_given_or_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "blocks")
    one, two = weather(), weather("2.0.0")
    cache.put([one, two])
    digest = Cid.of(one).digest
    assert (cache.get(digest), cache.holds(digest)) == (one, True)
    for block in (tmp_path / "blocks").glob("*/*"):
        block.write_bytes(block.read_bytes()[:-1])
    assert (cache.get(digest), cache.holds(digest)) == (None, True)
    assert cache.get(b"\0" * 32) is None
