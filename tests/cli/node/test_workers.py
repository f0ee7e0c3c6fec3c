"""What the node and its workers say to each other over their sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from capdex.errors import Code, Unavailable
from capdex.net.tasks import end
from capdex.problems import Verdict
from capdex_cli.node.explorer import build_explorer
from capdex_cli.node.worker import NodeLink
from capdex_cli.node.workers import Serving, WorkerOptions, Workers
from capdex_indexer.http.status import Surface
from capdex_indexer.options import NodeOptions
from capdex_service.queries.reader import Reader


@asynccontextmanager
async def linked(surface: Surface) -> AsyncIterator[NodeLink]:
    """A worker's side of the sockets to a node that shows `surface`."""
    node = NodeOptions((), 0, "", "", Path("blocks"), (), frozenset({Verdict.VERIFIED}))
    options = WorkerOptions(2, 0, "json", Serving(()), node)
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    answering = asyncio.create_task(Workers(surface)._answer(reader, writer, options))
    link, sent = await NodeLink.open(theirs)
    assert sent == options
    reading = asyncio.create_task(link.read())
    try:
        async with asyncio.timeout(20):
            yield link
    finally:
        writer.close()
        await end([answering, reading])


def break_database(surface: Surface, tmp_path: Path) -> None:
    """Put a directory in the place of the database."""
    surface.index.close()
    for path in tmp_path.glob("index.db*"):
        path.unlink()
    (tmp_path / "index.db").mkdir()


async def test_a_worker_is_answered_again_after_the_database_was_away(
    surface: Surface, tmp_path: Path
) -> None:
    async with linked(surface) as link:
        assert (await link.ask("/status", None)).status_code == 200
        break_database(surface, tmp_path)
        refused = await link.ask("/status", None)
        assert refused.status_code == 503
        assert refused.headers["content-type"] == "application/problem+json"
        assert orjson.loads(refused.body)["code"] == Code.DATABASE_UNAVAILABLE
        assert (await link.ask("/health", None)).status_code == 200


async def test_pages_of_a_worker_say_that_the_node_cannot_read_its_index(
    surface: Surface, tmp_path: Path
) -> None:
    reader = Reader(surface.index, serve=frozenset({Verdict.VERIFIED}))
    async with linked(surface) as link:
        explorer = build_explorer(reader, surface, link.ask)
        assert (await explorer.site.status())["chain"]["chain_id"] == 1
        break_database(surface, tmp_path)
        with pytest.raises(Unavailable) as refused:
            await explorer.site.status()
        assert refused.value.code is Code.DATABASE_UNAVAILABLE
    reader.close()
