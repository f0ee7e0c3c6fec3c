"""Each client reads a resource and is told when its name has a new release, over HTTP and stdio."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import pytest

from capdex_indexer.query import Index

pytestmark = pytest.mark.real

NOTE = "did:nuwa:cap:note"


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_client_resolves_searches_reads_a_resource_and_follows_a_name(
    client: str, transport: str, start: Any, growing: Any, serve: Any
) -> None:
    growing.publish("note", "1.0.0")
    growing.follow()
    index = Index(growing.url)
    (first,) = index.releases("note")
    stdio = ("--", sys.executable, "-m", "capdex", "mcp", "--db", growing.url)
    blocks = growing.folder / "blocks"
    async with serve(index, blocks=blocks) as url:
        over_stdio = (*stdio, "--blocks", str(blocks))
        async with start(client, *((f"{url}/mcp",) if transport == "http" else over_stdio)) as ask:
            assert (await text(ask, "resolve_capability", cap_uri=NOTE)).startswith("note 1.0.0")
            (contents,) = await ask("read", uri="capdex://note/1.0.0/package")
            assert hashlib.sha256(contents["text"].encode()).hexdigest() == first.sha256
            await ask("subscribe", uri="capdex://note")
            growing.publish("weather", "1.0.0")  # another name: not told of
            growing.publish("note", "1.1.0")
            growing.follow()
            assert await ask("update") == "capdex://note"
            assert (await text(ask, "resolve_capability", cap_uri=NOTE)).startswith("note 1.1.0")
            assert "note 1.1.0" in await text(ask, "search_capabilities", query_string="note")
    index.close()


async def text(ask: Any, tool: str, **given: Any) -> str:
    """The text of a tool's answer."""
    answer = await ask("call", tool=tool, given=given)
    return str(answer["content"][0]["text"])
