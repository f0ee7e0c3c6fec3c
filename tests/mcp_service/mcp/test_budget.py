"""What a model's context pays for the tools and for their answers, in tokens of o200k."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mcp
import pytest

from indexer.query import Index
from indexer.store import Store
from mcp_service.mcp.server import build_server
from mcp_service.mcp.tools import INSTRUCTIONS, PROFILES
from mcp_service.queries.reader import Reader

Count = Callable[[str], int]


@pytest.fixture
def readers(examples: str, database: str, read: Any) -> Iterator[list[Reader]]:
    """Readers of real packages, and of those of the tests."""
    indexes = [Index(examples), Index(database)]
    yield [read(index) for index in indexes]
    for index in indexes:
        index.close()


@pytest.mark.parametrize(("profile", "most"), [("default", 600), ("minimal", 350)])
def test_the_tools_of_a_profile_cost_few_tokens(
    profile: str, most: int, count_tokens: Count
) -> None:
    spent = count_tokens(INSTRUCTIONS)
    for tool in PROFILES[profile].tools:
        schema = json.dumps(tool["inputSchema"], separators=(",", ":"))
        spent += sum(map(count_tokens, (tool["name"], tool["description"], schema)))
    assert spent <= most


@pytest.mark.parametrize("query", ["", "weather in a city", "takes notes", "汇率", "large"])
async def test_a_hit_costs_at_most_60_tokens(
    readers: list[Reader], query: str, count_tokens: Count
) -> None:
    for reader in readers:
        async with mcp.Client(build_server(reader)) as client:
            asked = {"query_string": query, "limit": 50}
            answer: Any = await client.call_tool("search_capabilities", asked)
        head, *hits = answer.content[0].text.splitlines()
        assert count_tokens(head) <= 20
        assert all(count_tokens(hit) <= 60 for hit in hits), hits


async def test_a_resolved_release_costs_at_most_150_tokens(
    readers: list[Reader], count_tokens: Count
) -> None:
    for reader in readers:
        async with mcp.Client(build_server(reader)) as client:
            asked = {"query_string": "", "limit": 50}
            found: Any = await client.call_tool("search_capabilities", asked)
            for hit in found.structured_content["list_of_results"]:
                uri = {"cap_uri": hit["cap_uri"]}
                answer: Any = await client.call_tool("resolve_capability", uri)
                assert count_tokens(answer.content[0].text) <= 150, answer.content[0].text


async def test_a_greedy_publisher_gets_little_more(
    making: Any, read: Any, tmp_path: Path, count_tokens: Count
) -> None:
    """Each field is at its limit, in characters that cost most; name and version are never cut."""
    name, version = "z9q7x8k2-" * 7 + "w", f"999999999999999.0.0-{'x1.y2.' * 7}z"
    tools = [making.tool(f"Zq{i:02}_xK7-vB3" * 5) for i in range(40)]
    chain = making.Chain()
    chain.publish(name, version, summary="𒀀" * 120, description="𒀀 " * 400, tools=tools)
    url = f"sqlite:///{tmp_path / 'index.db'}"
    store = Store.open(url, making.DEPLOYMENT)
    making.follow(store, chain)
    store.close()
    index = Index(url)
    try:
        async with mcp.Client(build_server(read(index))) as client:
            page: Any = await client.call_tool("search_capabilities", {"query_string": ""})
            uri = {"cap_uri": f"did:nuwa:cap:{name}"}
            release: Any = await client.call_tool("resolve_capability", uri)
    finally:
        index.close()
    named = count_tokens(f"{name} {version}")
    assert count_tokens(page.content[0].text.splitlines()[1]) <= named + 60
    assert count_tokens(release.content[0].text) <= 2 * named + 150
