"""What a model's context pays for the tools and for their answers, in tokens of o200k."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mcp
import pytest

from capdex.net.ipfs.block_store import BlockDirectory
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_service.answers.cmp import LEVELS
from capdex_service.mcp.server import build_server
from capdex_service.mcp.tools import INSTRUCTIONS, PROFILES
from capdex_service.queries.reader import Reader

Count = Callable[[str], int]


def written(value: Any) -> str:
    """A structure as a host hands it on."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.fixture
def readers(examples: str, database: str, read: Any) -> Iterator[list[Reader]]:
    """Readers of real packages, and of those of the tests."""
    indexes = [Index(examples), Index(database)]
    folders = (Path(x.removeprefix("sqlite:///")).parent / "blocks" for x in (examples, database))
    blocks = map(BlockDirectory, folders)
    yield [read(index, blocks=x) for index, x in zip(indexes, blocks, strict=True)]
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
        head, *hits, after = answer.content[0].text.splitlines()
        assert count_tokens(head) <= 20
        assert count_tokens(after) <= 40
        assert all(count_tokens(hit) <= 60 for hit in hits), hits
        shown = map(written, answer.structured_content["list_of_results"])
        assert [hit for hit in shown if count_tokens(hit) > 100] == []


async def test_a_resolved_release_costs_at_most_150_tokens_and_as_structure_200(
    readers: list[Reader], count_tokens: Count
) -> None:
    for reader in readers:
        async with mcp.Client(build_server(reader)) as client:
            asked = {"query_string": "", "limit": 50}
            found: Any = await client.call_tool("search_capabilities", asked)
            for hit in found.structured_content["list_of_results"]:
                uri = {"cap_uri": hit["acp_metadata"]["id"]}
                answer: Any = await client.call_tool("resolve_capability", uri)
                assert count_tokens(answer.content[0].text) <= 150, answer.content[0].text
                assert count_tokens(written(answer.structured_content)) <= 200


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_capability", {"cap_uri": "did:nuwa:cap:city-weather"}),
        ("route_message", {"message": "what is the weather like"}),
        ("capability_list", {}),
        ("capability_describe", {"capability_id": "did:nuwa:cap:city-weather"}),
        *(("capability_browse", {"level": x, "of": "city-weather"}) for x in LEVELS[2:]),
        ("capability_browse", {"level": "domains"}),
        ("capability_browse", {"level": "manifests", "of": "weather"}),
    ],
)
async def test_the_structure_is_about_as_long_as_the_text_and_both_say_what_is_next(
    tool: str, arguments: dict[str, Any], readers: list[Reader], count_tokens: Count
) -> None:
    async with mcp.Client(build_server(readers[0])) as client:
        answer: Any = await client.call_tool(tool, arguments)
        text, structure = answer.content[0].text, answer.structured_content
        hits = len(structure.get("list_of_results", ()))
        # A member of an item has a name, which a line of text has not.
        assert count_tokens(written(structure)) <= 1.5 * count_tokens(text) + 60 * (1 + hits)
        assert text.splitlines()[-1] == f"next: {structure['next']}"
        name, _, given = structure["next"].partition(" ")
        after: Any = await client.call_tool(name, json.loads(given))
        assert not after.is_error


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
    assert count_tokens(release.content[0].text) <= 2 * named + 200
    (hit,) = page.structured_content["list_of_results"]
    assert count_tokens(written(hit)) <= named + 150
    assert count_tokens(written(release.structured_content)) <= 4 * named + 250
