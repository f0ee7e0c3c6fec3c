"""`/v0.1/servers` as clients of the official MCP registry read it, by the registry's own schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from jsonschema import Draft7Validator

VECTORS = Path(__file__).parents[2] / "vectors" / "mcp-registry"
SERVER = Draft7Validator(
    json.loads((VECTORS / "server.schema.json").read_text("utf-8")),
    format_checker=Draft7Validator.FORMAT_CHECKER,
)
OFFICIAL = "io.modelcontextprotocol.registry/official"
GUIDE = "/v0.1/servers/did.nuwa.cap%2Fguide/versions"


async def get(http: aiohttp.ClientSession, path: str) -> tuple[int, Any]:
    """Status and JSON of a page, whose servers are all valid."""
    async with http.get(path) as answer:
        body = await answer.json(content_type=None)
        if answer.status == 200:
            assert answer.content_type == "application/json"
            for one in body.get("servers", [body]):
                SERVER.validate(one["server"])
                assert one["_meta"][OFFICIAL].keys() - {"statusMessage"} == {
                    *("status", "statusChangedAt", "publishedAt", "updatedAt", "isLatest"),
                }
        return answer.status, body


def names(page: Any) -> list[str]:
    servers = [x["server"] for x in page["servers"]]
    assert page["metadata"]["count"] == len(servers)
    return [f"{x['name'].removeprefix('did.nuwa.cap/')} {x['version']}" for x in servers]


EVERY = ["eyes 1.0.0", "far-away 1.0.0", "guide 1.0.0", "guide 1.10.0", "now-bound 1.1.0"]


async def test_a_server_is_an_entry_with_its_release(tools_http: aiohttp.ClientSession) -> None:
    _, entry = await get(tools_http, f"{GUIDE}/latest")
    assert entry["server"] == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "did.nuwa.cap/guide",
        "title": "Guide",
        "description": "Knows every place",
        "version": "1.10.0",
        "remotes": [{"type": "streamable-http", "url": "https://maps.example.org/mcp"}],
        "repository": {"url": "https://github.com/example/guide", "source": "github"},
    }
    assert entry["_meta"][OFFICIAL]["isLatest"]
    assert entry["_meta"][OFFICIAL]["status"] == "active"
    release = entry["_meta"]["did.nuwa.cap/release"]
    assert (release["cap_uri"], release["verdict"]) == ("did:nuwa:cap:guide@1.10.0", "verified")


async def test_the_list_has_every_version_in_the_order_of_their_texts(
    tools_http: aiohttp.ClientSession,
) -> None:
    _, page = await get(tools_http, "/v0.1/servers")
    assert names(page) == EVERY
    assert "nextCursor" not in page["metadata"]
    _, page = await get(tools_http, "/v0.1/servers?version=latest")
    assert names(page) == ["eyes 1.0.0", "far-away 1.0.0", "guide 1.10.0", "now-bound 1.1.0"]
    _, page = await get(tools_http, "/v0.1/servers?version=1.1.0")
    assert names(page) == ["now-bound 1.1.0"]


@pytest.mark.parametrize("limit", [1, 2, 4])
async def test_pages_lead_through_the_whole_list(
    tools_http: aiohttp.ClientSession, limit: int
) -> None:
    path, found = f"/v0.1/servers?limit={limit}", []
    following = ""
    while True:
        _, page = await get(tools_http, path + following)
        found += names(page)
        if "nextCursor" not in page["metadata"]:
            break
        following = f"&cursor={page['metadata']['nextCursor']}"
    assert found == EVERY


@pytest.mark.parametrize(
    ("search", "found"),
    [("GUI", 2), ("did.nuwa.cap/far", 1), ("nuwa", 5), ("%25", 0), ("nothing", 0)],
)
async def test_names_are_searched(
    tools_http: aiohttp.ClientSession, search: str, found: int
) -> None:
    _, page = await get(tools_http, f"/v0.1/servers?search={search}")
    assert len(page["servers"]) == found


async def test_a_follower_learns_of_changes_and_of_what_is_deleted(
    tools_http: aiohttp.ClientSession,
) -> None:
    _, page = await get(tools_http, "/v0.1/servers?include_deleted=true")
    assert names(page) == [*EVERY[:4], "guide 1.2.0", EVERY[4]]
    meta = {x["server"]["version"]: x["_meta"][OFFICIAL] for x in page["servers"][2:5]}
    assert (meta["1.2.0"]["status"], meta["1.2.0"]["statusMessage"]) == ("deleted", "gets lost")
    assert (meta["1.0.0"]["status"], meta["1.0.0"]["statusMessage"]) == ("deprecated", "use 1.10.0")
    assert meta["1.2.0"]["updatedAt"] > meta["1.2.0"]["publishedAt"]
    since = meta["1.2.0"]["updatedAt"]
    _, page = await get(tools_http, f"/v0.1/servers?updated_since={since}")
    assert names(page) == ["eyes 1.0.0", "guide 1.0.0", "guide 1.2.0"]


async def test_a_name_that_its_owner_gave_up_names_its_successor(
    tools_http: aiohttp.ClientSession,
) -> None:
    _, entry = await get(tools_http, "/v0.1/servers/did.nuwa.cap%2Feyes/versions/1.0.0")
    official = entry["_meta"][OFFICIAL]
    assert official["status"] == "deprecated"
    assert official["statusMessage"] == "look elsewhere; use did.nuwa.cap/guide"
    assert len(entry["server"]["title"]) == 100
    assert len(entry["server"]["description"]) <= 100


async def test_a_service_named_by_a_did_is_no_remote(tools_http: aiohttp.ClientSession) -> None:
    _, entry = await get(tools_http, "/v0.1/servers/did.nuwa.cap%2Ffar-away/versions/latest")
    assert "remotes" not in entry["server"]


async def test_a_blank_title_is_no_title(tools_http: aiohttp.ClientSession) -> None:
    _, entry = await get(tools_http, "/v0.1/servers/did.nuwa.cap%2Ffar-away/versions/latest")
    assert entry["server"]["title"] == "far-away"


async def test_versions_are_listed_newest_first(tools_http: aiohttp.ClientSession) -> None:
    _, page = await get(tools_http, GUIDE)
    assert names(page) == ["guide 1.10.0", "guide 1.0.0"]
    assert [x["_meta"][OFFICIAL]["isLatest"] for x in page["servers"]] == [True, False]
    _, page = await get(tools_http, f"{GUIDE}?include_deleted=true")
    assert names(page) == ["guide 1.10.0", "guide 1.2.0", "guide 1.0.0"]
    _, page = await get(tools_http, "/v0.1/servers/did.nuwa.cap/was-bound/versions")
    assert names(page) == ["was-bound 1.0.0"]  # the path may also be written without %2F


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{GUIDE}/9.9.9", 404),
        (f"{GUIDE}/1.2.0", 404),
        (f"{GUIDE}/1.2.0?include_deleted=true", 200),
        (f"{GUIDE}/^1", 404),
        ("/v0.1/servers/did.nuwa.cap%2Fplain/versions/latest", 404),
        ("/v0.1/servers/did.nuwa.cap%2Fplain/versions", 404),
        ("/v0.1/servers/did.nuwa.cap%2Fnobody/versions", 404),
        ("/v0.1/servers/io.github.example%2Fguide/versions/latest", 404),
        ("/v0.1/servers/x/versions", 404),
        ("/v0.1/servers/did.nuwa.cap%2Fguide", 404),
        ("/v0.1/servers?limit=0", 400),
        ("/v0.1/servers?limit=101", 400),
        ("/v0.1/servers?cursor=x", 400),
        ("/v0.1/servers?include_deleted=yes", 400),
        ("/v0.1/servers?updated_since=yesterday", 400),
        ("/v0.1/servers?updated_since=2026-01-01", 400),
        ("/v0.1/servers?updated_since=2026-01-01T00:00:00Z&include_deleted=false", 400),
    ],
)
async def test_what_is_not_there_is_a_problem(
    tools_http: aiohttp.ClientSession, path: str, status: int
) -> None:
    answered, body = await get(tools_http, path)
    assert answered == status
    assert status == 200 or body["status"] == status


async def test_an_index_without_such_packages_lists_none(serve: Any, index: Any) -> None:
    async with serve(index) as url, aiohttp.ClientSession(url) as http:
        _, page = await get(http, "/v0.1/servers")
        assert page == {"servers": [], "metadata": {"count": 0}}
