"""Our gateway beside Kubo's, the reference: the same blocks, status and type for the same request.

But for `entity-bytes`, where Kubo sends more than is needed, and 200 where nothing is left to send.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from capdex.encoding.multiformats import read_varint
from capdex.ipld.car import write_car
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index

pytestmark = pytest.mark.real

CARS = Path(__file__).parents[2] / "vectors" / "car" / "gateway-conformance"
FILE = "bafybeigcisqd7m5nf3qmuvjdbakl5bdnh4ocrmacaqkpuh77qjvggmt2sa"  # four leaves of 256, one of 2
LEAF = "bafkreie5noke3mb7hqxukzcy73nl23k6lxszxi5w3dtmuwz62wnvkpsscm"
QUERIES = [
    *("format=raw", "format=car", "format=car&dag-scope=block", "format=car&dag-scope=entity"),
    *("format=car&dag-scope=all", "format=car&entity-bytes=0:*", "format=car&entity-bytes=0:255"),
    *("format=car&entity-bytes=255:256", "format=car&entity-bytes=-1:*"),
    *("format=car&entity-bytes=200:999999", "format=car&entity-bytes=120:-100"),
    *("format=car&dag-scope=tree", "format=car&entity-bytes=x"),
]


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'index.db'}"


@pytest.fixture
async def node(
    search_index: Index, block_directory: BlockDirectory, serving: Any
) -> AsyncIterator[Any]:
    async with serving.serve(Surface(search_index, block_directory, Health())) as node:
        yield node


def sections(car: bytes) -> list[bytes]:
    """The sections of a CAR behind its header."""
    size, at = read_varint(car, 0)
    at += size
    found = []
    while at < len(car):
        size, at = read_varint(car, at)
        found.append(car[at : at + size])
        at += size
    return found


async def test_the_same_request_gets_the_same_blocks_as_from_kubo(node: Any, kubo: Any) -> None:
    [fixture] = CARS.glob("*dir-with-duplicate-files.car")
    data = fixture.read_bytes()
    for section in sections(data):
        node.surface.blocks.keep(Cid.from_bytes(section[:36]), section[36:])
    async with aiohttp.ClientSession() as session:
        await upload(session, kubo, data)
        for cid in (FILE, LEAF, "bafkqaaa"):
            for query in QUERIES:
                ours = await node(f"/ipfs/{cid}?{query}")
                async with session.get(f"{kubo.gateway}/ipfs/{cid}?{query}") as reply:
                    theirs = await reply.read()
                    assert (ours.status, cid, query) == (reply.status, cid, query)
                    if reply.status != 200:
                        continue
                    if query == "format=raw":
                        assert ours.body == theirs
                    elif "entity-bytes" in query:  # of these Kubo sends some more than are needed
                        assert set(sections(ours.body)) <= set(sections(theirs))
                    elif cid != "bafkqaaa":  # whose block may be left out
                        assert sections(ours.body) == sections(theirs)
                    for name in ("Content-Type", "Cache-Control"):
                        assert ours.headers[name] == reply.headers[name]


async def test_kubo_takes_our_cars(node: Any, kubo: Any) -> None:
    blocks = {Cid.of(x): x for x in (b"a package of ours", b"and another one")}
    for cid, block in blocks.items():
        node.surface.blocks.keep(cid, block)
        car = (await node(f"/ipfs/{cid}?format=car")).body
        assert car == write_car(cid.to_bytes(), [(cid, block)])
        async with aiohttp.ClientSession() as session:
            await upload(session, kubo, car)
            async with session.get(f"{kubo.gateway}/ipfs/{cid}?format=raw") as reply:
                assert await reply.read() == block


async def upload(session: aiohttp.ClientSession, kubo: Any, car: bytes) -> None:
    form = aiohttp.FormData()
    form.add_field("file", car, filename="blocks.car")
    async with session.post(f"{kubo.api}/api/v0/dag/import?pin-roots=false", data=form) as reply:
        assert reply.status == 200, await reply.text()
