"""Routing a message over HTTP and MCP (mcp_service/capdex_service/queries/route.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import mcp
import pytest
from jsonschema import Draft202012Validator

from capdex_indexer.query.index import Index
from capdex_service.answers.hit_schemas import ROUTES_SCHEMA
from capdex_service.queries.reader import Reader
from capdex_service.queries.route import route
from tests.mcp_service.conftest import VERIFIED, fill


@pytest.fixture
def reader(making: Any, tmp_path: Any) -> Iterator[Reader]:
    chain = making.Chain()
    chain.publish(
        "rain",
        description="Tells whether to take an umbrella",
        triggers=[
            {"type": "keyword", "value": "umbrella"},
            {"type": "regex", "value": r"will it (rain|snow)"},
        ],
    )
    chain.publish(
        "notes", description="Takes notes", triggers=[{"type": "keyword", "value": "jot"}]
    )
    chain.publish("shoes", description="Sells an umbrella, too", triggers=[])
    url = f"sqlite:///{tmp_path / 'index.db'}"
    fill(url, making, chain)
    index = Index(url)
    found = Reader(index, serve=VERIFIED)
    yield found
    found.close()
    index.close()


async def test_a_message_is_for_the_package_whose_trigger_it_hits(reader: Reader) -> None:
    answer = await route(reader, "Will it rain in Oslo, do I need an umbrella?")
    body = answer.to_json()
    Draft202012Validator(ROUTES_SCHEMA).validate(body)
    first, second = body["list_of_results"]
    assert first["cap_uri"] == "did:nuwa:cap:rain@1.0.0"
    assert {(x["type"], x["value"], tuple(x["span"])) for x in first["triggers"]} == {
        ("keyword", "umbrella", (35, 43)),
        ("regex", "will it (rain|snow)", (0, 12)),
    }
    assert (second["cap_uri"], second["triggers"]) == ("did:nuwa:cap:shoes@1.0.0", [])
    assert second["matched"] == ["description"]
    assert (body["total"], body["cut"], body["mode"]) == (1, False, "lexical")
    assert "matched trigger will it (rain|snow)" in answer.text


async def test_a_message_for_nothing_has_no_packages(reader: Reader) -> None:
    answer = await route(reader, "zzzz")
    assert answer.to_json()["list_of_results"] == []
    assert answer.text.startswith("No capability matches.")


async def test_http_and_mcp_give_the_same_answer(
    http: aiohttp.ClientSession, connect: Callable[..., AbstractAsyncContextManager[mcp.Client]]
) -> None:
    async with http.get("/v1/route?message=please%20take%20notes&limit=2") as reply:
        assert reply.status == 200
        by_http = await reply.json()
    asked = {"message": "please take notes", "limit": 2, "detail": "full"}
    async with connect() as client:
        result = await client.call_tool("route_message", asked)
    assert result.structured_content == by_http
    assert by_http["list_of_results"][0]["cap_uri"] == "did:nuwa:cap:note@1.1.0"


@pytest.mark.parametrize("query", ["", "message=", "message=x&limit=0", "message=x&limit=51"])
async def test_a_wrong_question_is_refused(http: aiohttp.ClientSession, query: str) -> None:
    async with http.get(f"/v1/route?{query}") as reply:
        assert reply.status == 400
        assert (await reply.json())["code"] == "INVALID_INPUT"
