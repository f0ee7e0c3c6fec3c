"""Each of the official clients calls every tool, reads a resource and follows a name.

Each does so over HTTP and stdio.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from capdex_indexer.query.index import Index
from tests.e2e.forks import Warm

from .calls import CALLS
from .conftest import MODERN

pytestmark = pytest.mark.real

NOTE = "did:nuwa:cap:note"


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_client_calls_every_tool_reads_a_resource_and_follows_a_name(
    client: str, transport: str, start: Any, growing: Any, serve: Any, warm: Warm
) -> None:
    growing.publish("copy")
    growing.publish("note", "1.0.0", description="Takes notes")
    growing.follow()
    index = Index(growing.url)
    (first,) = index.releases("note")
    stdio = ("--", warm.capdex, "mcp", "--db", growing.url)
    blocks = growing.folder / "blocks"
    async with serve(index, blocks=blocks) as url:
        over_stdio = (*stdio, "--blocks", str(blocks))
        async with start(client, *((f"{url}/mcp",) if transport == "http" else over_stdio)) as ask:
            if (client, transport) != ("typescript-1", "stdio"):  # its transport does not know
                assert await ask("version") == ("2026-07-28" if client in MODERN else "2025-11-25")
            assert {tool["name"] for tool in await ask("tools")} == set(CALLS)
            assert (await text(ask, "resolve_capability", cap_uri=NOTE)).startswith("note 1.0.0")
            (contents,) = await ask("read", uri="capdex://note/1.0.0/package")
            assert hashlib.sha256(contents["text"].encode()).hexdigest() == first.sha256
            await ask("subscribe", uri="capdex://note")
            growing.publish("weather", "1.0.0")  # another name: not told of
            growing.publish("note", "1.1.0", description="Takes notes")
            growing.follow()
            assert await ask("update") == "capdex://note"
            for tool, (given, word) in CALLS.items():
                assert word in await text(ask, tool, **given)
    index.close()


async def text(ask: Any, tool: str, **given: Any) -> str:
    """The text of a tool's answer, which is no error."""
    answer = await ask("call", tool=tool, given=given)
    assert not answer.get("isError")
    return str(answer["content"][0]["text"])
