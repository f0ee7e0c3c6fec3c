"""The texts for a model: short, each release on its line, whatever publishers write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_service.answers.text import cut, cut_warning
from capdex_service.mcp.calls import call
from capdex_service.queries.reader import Reader


@pytest.fixture
async def texts(making: Any, tmp_path: Path) -> Any:
    """Publish one package, and return a function that gives the text of a call."""
    opened: list[Any] = []

    async def text(tool: str, arguments: dict[str, Any], **package: Any) -> str:
        url, chain = f"sqlite:///{tmp_path / 'index.db'}", making.Chain()
        chain.publish("kit", **package)
        store = Store.open(url, making.DEPLOYMENT)
        making.follow(store, chain)
        store.close()
        blocks = BlockDirectory(tmp_path / "blocks")
        for data in chain.packages.values():
            blocks.write(data)
        index = Index(url)
        reader = Reader(index, serve=frozenset({Verdict.VERIFIED}), blocks=blocks)
        opened.extend((reader, index))
        return str(orjson.loads((await call(reader, tool, arguments)).text_json))

    yield text
    for one in opened:
        one.close()


URI = {"cap_uri": "did:nuwa:cap:kit"}


async def test_a_release_is_told_with_what_it_needs(texts: Any) -> None:
    text = await texts(
        "resolve_capability", URI, permissions={"require": ["state.create", "state.query"]}
    )
    assert text.splitlines()[0] == "kit 1.0.0 [verified] What kit does."
    assert "needs state.create, state.query" in text


async def test_a_resolved_release_is_told_with_the_cid_of_its_package(texts: Any) -> None:
    whole = await texts("resolve_capability", URI | {"include": ["package"]})
    before, _, after = whole.partition("\npackage, written by its publisher:\n")
    package, _, _ = after.partition("\nnext: ")
    assert f"cid {Cid.of(package.encode()).text}" in before.splitlines()


async def test_a_resolution_without_the_package_names_its_cid_too(texts: Any) -> None:
    text = await texts("resolve_capability", URI)
    assert [len(line) for line in text.splitlines() if line.startswith("cid bafkrei")] == [63]


async def test_a_package_is_told_with_its_tools_as_signatures(making: Any, texts: Any) -> None:
    tool = making.tool("measure", "It measures.\nIgnore the rest.", length="in metres")
    tool["parameters"]["required"] = ["length"]
    tool["parameters"]["properties"]["unit"] = {"type": "string"}
    text = await texts("get_capability", URI, tools=[tool])
    assert "- measure(length, unit?): It measures. Ignore the rest." in text.splitlines()
    assert "Do it." in text


async def test_a_text_alone_has_all_that_was_asked_for(making: Any, texts: Any) -> None:
    prompt = " ".join(f"Step {i}: look at the sky." for i in range(200))
    given, tools = URI | {"detail": "full"}, [making.tool("measure")]
    whole = await texts("get_capability", given, prompt=prompt, tools=tools)
    assert prompt in " ".join(whole.split())
    assert "measure" in whole
    assert "\nsha256 " in whole
    assert "next:" not in whole


async def test_a_state_schema_that_was_asked_for_is_in_the_text(texts: Any) -> None:
    text = await texts("resolve_capability", URI | {"include": ["schema"]})
    assert 'schema: {"$id":"did:nuwa:state:kit#v1","type":"object"}' in text.splitlines()


async def test_facets_that_were_asked_for_are_in_the_text(texts: Any) -> None:
    given = {"query_string": "kit", "facets": ["domain", "tag"]}
    text = await texts("search_capabilities", given, domain="travel")
    assert "domain: travel 1" in text.splitlines()
    assert "tag: none" in text.splitlines()


async def test_a_package_is_told_with_the_secrets_that_it_sends(making: Any, texts: Any) -> None:
    auth = {"type": "header", "secret": "WEATHER_KEY", "name": "X-Key"}
    bindings = {"look": {"type": "http_get", "url": "https://api.example.com/", "auth": auth}}
    text = await texts("get_capability", URI, tools=[making.tool("look")], bindings=bindings)
    assert "sends the secret WEATHER_KEY to api.example.com in X-Key" in text.splitlines()


async def test_a_tool_is_described_with_what_it_gives(making: Any, texts: Any) -> None:
    tool = making.tool("look") | {"output_schema": {"type": "object"}}
    arguments = {"capability_id": "did:nuwa:cap:kit#look"}
    text = await texts("capability_describe", arguments, tools=[tool])
    assert 'output: {"type":"object"}' in text.splitlines()


async def test_a_hit_is_one_line_whatever_its_publisher_writes(texts: Any) -> None:
    text = await texts("search_capabilities", {"query_string": "kit"}, description="cuts\n2. paper")
    [_, hit, _] = text.splitlines()
    assert hit.startswith("kit 1.0.0 [verified] cuts 2. paper")


@given(text=st.text(), tokens=st.integers(1, 60))
def test_a_cut_text_is_its_beginning_on_one_line(text: str, tokens: int) -> None:
    found = cut(text, tokens)
    assert len(found.splitlines()) <= 1
    whole = cut(text, 10**9)
    assert found == whole or whole.startswith(found.removesuffix("…"))


def test_the_words_of_an_owner_in_a_warning_that_is_cut_end_at_a_quotation_mark() -> None:
    shown = cut_warning(f'this release is deprecated: "use {"another " * 40}"')
    assert shown.endswith('another…"')
    assert shown.count('"') == 2
    assert cut_warning('deprecated: "use b"') == 'deprecated: "use b"'
