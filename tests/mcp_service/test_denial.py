"""What this node's operator refuses, on every face of the readers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import mcp
import pytest

from capdex_indexer.query.index import Index
from capdex_indexer.store import Operator
from capdex_service.mcp.server import build_server

DENIED = {"reason": "it lies", "at": 1_700_000_000}


@pytest.fixture
def index(database: str, tmp_path: Path) -> Iterator[Index]:
    """The usual index, whose operator denies a name and one release of another."""
    path = tmp_path / "index.db"
    shutil.copy(database.removeprefix("sqlite:///"), path)
    url = f"sqlite:///{path}"
    opened = Index(url)
    note = next(x for x in opened.releases("note") if x.semver == "1.1.0")
    with Operator(url, clock=lambda: 1_700_000_000.9) as operator:
        operator.deny("weather", "it lies")
        operator.deny(note.cid, "it lies")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "uri", ["did:nuwa:cap:weather", "did:nuwa:cap:weather@1.0.0", "did:nuwa:cap:note@1.1.0"]
)
async def test_resolving_what_is_denied_fails_as_not_found_and_says_by_whom(
    connect: Any, uri: str
) -> None:
    async with connect() as client:
        answer = await client.call_tool("resolve_capability", {"cap_uri": uri})
    assert answer.is_error
    said = answer.structured_content
    assert (said["code"], said["retryable"]) == ("NOT_FOUND", False)
    assert said["message"].startswith("this node's operator refuses it")
    assert said["details"]["denied"] == DENIED


async def test_search_lists_the_next_best_and_nothing_denied(connect: Any) -> None:
    async with connect() as client:
        notes = await client.call_tool("search_capabilities", {"query_string": "takes notes"})
        words = await client.call_tool("search_capabilities", {"query_string": "weather city"})
    found = [x["acp_metadata"]["id"] for x in notes.structured_content["list_of_results"]]
    assert "did:nuwa:cap:note@1.0.0" in found
    assert "did:nuwa:cap:note@1.1.0" not in found
    assert words.structured_content["list_of_results"] == []
    assert words.structured_content["total"] == 0


async def test_the_page_of_a_name_says_what_is_denied_in_a_field_of_its_own(http: Any) -> None:
    async with http.get("/c/note.json") as reply:
        releases = {x["semver"]: x for x in (await reply.json())["releases"]}
    assert {x: y["denied"] for x, y in releases.items() if y["denied"]} == {"1.1.0": DENIED}
    assert releases["1.1.0"]["acp_metadata"] is None
    assert releases["1.1.0"]["verification"]["verdict"] == "verified"  # the chain said so; it stays
    assert releases["1.1.0"]["chain"]["sequence"] > 0
    assert [x for x, y in releases.items() if y["latest"]] == ["1.0.0"]
    async with http.get("/c/weather.json") as reply:
        body = await reply.text()
        [release] = (await reply.json())["releases"]
    assert release["denied"] == DENIED
    assert "Weather of any city" not in body


async def test_nothing_is_proven_of_what_the_operator_refuses(index: Index, read: Any) -> None:
    """The chain is not the reason, and a proof of its presence would look like a lie."""

    class Prover:
        async def prove(self, *_: Any) -> Any:
            raise AssertionError("asked to prove a refusal")

    prover: Any = Prover()
    server = build_server(read(index, prover=prover))
    async with mcp.Client(server) as client:
        arguments = {"cap_uri": "did:nuwa:cap:weather", "proof": "list"}
        answer = await client.call_tool("resolve_capability", arguments)
    assert answer.is_error
    assert answer.structured_content["details"]["denied"] == DENIED


@pytest.mark.parametrize("damage", ["vanished", "garbage", "DROP TABLE denial"])
async def test_what_may_be_denied_is_not_given_while_the_index_cannot_be_read(
    damaged: Any, serve: Any, block_directory: Any, damage: str
) -> None:
    async with serve(damaged(damage)) as url, aiohttp.ClientSession(url) as http:
        for path in (f"/ipfs/{block_directory.write(b'x')}?format=raw", "/index/config.json"):
            async with http.get(path) as reply:
                assert reply.status == 503
                assert "secret" not in await reply.text()
        async with http.get("/ipfs/bafkqaaa?format=raw") as reply:
            assert reply.status == 200
