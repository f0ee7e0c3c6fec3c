"""The readers over HTTP: MCP in both protocols, releases of a name, and what is turned away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import mcp
import pytest

from capdex_indexer.query.index import Index
from capdex_service.limits.bodies import MAX_BODY_BYTES

PROBLEM = "application/problem+json"
ACCEPT = "application/json, text/event-stream"
OLD, NEW = "2025-11-25", "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
NOTE: dict[str, Any] = {"name": "resolve_capability", "arguments": {"cap_uri": "did:nuwa:cap:note"}}


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def post(http: aiohttp.ClientSession, body: Any, **headers: str) -> tuple[int, Any]:
    """One JSON-RPC call as any HTTP client makes it: status and body of the answer."""
    sent = {"Accept": ACCEPT, **{key.replace("_", "-"): x for key, x in headers.items()}}
    async with http.post("/mcp", json=body, headers=sent) as answer:
        assert answer.content_type == "application/json"
        return answer.status, await answer.json()


@pytest.mark.parametrize(("mode", "version"), [("legacy", OLD), ("auto", NEW), (NEW, NEW)])
async def test_the_sdk_speaks_both_eras_over_http(node_url: str, mode: str, version: str) -> None:
    async with mcp.Client(f"{node_url}/mcp", mode=mode) as client:
        assert client.protocol_version == version
        assert [x.name for x in (await client.list_tools()).tools] == [
            "resolve_capability",
            "search_capabilities",
            "route_message",
            "get_capability",
            "capability_list",
            "capability_describe",
            "capability_browse",
        ]
        found = await client.call_tool("resolve_capability", NOTE["arguments"])
        missing = await client.call_tool("resolve_capability", {"cap_uri": "did:nuwa:cap:nobody"})
    assert found.structured_content is not None
    assert found.structured_content["semver"] == "1.1.0"
    assert missing.structured_content is not None
    assert (missing.is_error, missing.structured_content["code"]) == (True, "NOT_FOUND")


async def test_a_client_of_2025_initializes_and_calls(http: aiohttp.ClientSession) -> None:
    hello = rpc(
        "initialize",
        protocolVersion=OLD,
        capabilities={},
        clientInfo={"name": "test", "version": "1"},
    )
    status, answer = await post(http, hello)
    assert status == 200
    assert answer["result"]["protocolVersion"] == OLD
    assert answer["result"]["serverInfo"]["name"] == "capdex"
    assert set(answer["result"]["capabilities"]) >= {"tools"}
    status, answer = await post(http, rpc("tools/call", **NOTE), MCP_Protocol_Version=OLD)
    assert status == 200
    assert answer["result"]["structuredContent"]["semver"] == "1.1.0"
    assert answer["result"]["content"][0]["text"].startswith("note 1.1.0 [verified]")


async def test_a_client_of_2025_may_notify(http: aiohttp.ClientSession) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    headers = {"Accept": ACCEPT, "MCP-Protocol-Version": OLD}
    async with http.post("/mcp", json=note, headers=headers) as answer:
        assert (answer.status, await answer.read()) == (202, b"")


async def test_a_client_of_2026_calls_at_once(http: aiohttp.ClientSession) -> None:
    headers = {"MCP_Protocol_Version": NEW, "Mcp_Method": "tools/call"}
    call = rpc("tools/call", **NOTE, _meta=META)
    status, answer = await post(http, call, **headers, Mcp_Name="resolve_capability")
    assert status == 200
    assert answer["result"]["structuredContent"]["semver"] == "1.1.0"


async def test_white_space_around_a_header_is_no_part_of_it(node_url: str) -> None:
    host, port = node_url.removeprefix("http://").split(":")
    call = json.dumps(rpc("tools/call", **NOTE, _meta=META))
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host:  {host}:{port}  ",
        f"Accept: {ACCEPT}",
        "Content-Type: application/json",
        f"Content-Length: {len(call)}",
        f"MCP-Protocol-Version: {NEW} \t",
        "Mcp-Method: tools/call",
        "Mcp-Name:   resolve_capability  ",
        "Connection: close",
    ]
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(("\r\n".join([*lines, "", call])).encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"semver":"1.1.0"' in answer


async def test_an_unknown_tool_is_a_json_rpc_error(http: aiohttp.ClientSession) -> None:
    call = rpc("tools/call", name="publish_capability", arguments={})
    _, answer = await post(http, call, MCP_Protocol_Version=OLD)
    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 20_000])
async def test_a_body_that_is_no_call_is_refused(http: aiohttp.ClientSession, body: bytes) -> None:
    for version in (OLD, NEW, "1999-01-01"):
        headers = {
            "Accept": ACCEPT,
            "Content-Type": "application/json",
            "MCP-Protocol-Version": version,
        }
        async with http.post("/mcp", data=body, headers=headers) as answer:
            assert answer.status == 400
            assert "error" in await answer.json()


async def test_lone_surrogates_in_a_call_are_no_fault_of_the_node(
    http: aiohttp.ClientSession,
) -> None:
    raw = json.dumps(
        rpc("tools/call", name="search_capabilities", arguments={"query_string": "\ud800"})
    )
    for body in (raw, raw.replace('"query_string"', '"filters": {"\\ud800": "x"}, "query_string"')):
        headers = {"Accept": ACCEPT, "Content-Type": "application/json"}
        async with http.post("/mcp", data=body, headers=headers) as answer:
            assert answer.status in (200, 400)
            assert "INTERNAL" not in await answer.text()


@pytest.mark.parametrize("method", ["PUT", "OPTIONS"])
async def test_mcp_is_spoken_by_three_methods(http: aiohttp.ClientSession, method: str) -> None:
    async with http.request(method, "/mcp", headers={"Accept": "text/event-stream"}) as answer:
        assert answer.status == 405
        assert {"GET", "POST", "DELETE"} <= set(answer.headers["Allow"].split(", "))
        assert answer.content_type == PROBLEM


@pytest.mark.parametrize("path", ["/mcp", "/c/note.json", "/health", "/nothing"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:80"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_strangers_are_turned_away_from_every_path(
    http: aiohttp.ClientSession, path: str, headers: dict[str, str], status: int
) -> None:
    for method in ("GET", "POST"):
        async with http.request(method, path, headers=headers) as answer:
            assert answer.status == status
            assert "Access-Control-Allow-Origin" not in answer.headers
            said = await answer.json(content_type="application/json" if path == "/mcp" else PROBLEM)
            told = said["error"]["message"] if path == "/mcp" else said["details"]["fix"]
            assert "--allowed-host" in told


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "LOCALHOST"},
        {"Host": "[::1]:8077"},
        {"Host": "example.org:443"},
        {"Host": "localhost:1", "Origin": "http://127.0.0.1:3000"},
        {"Origin": "https://EXAMPLE.org"},
    ],
)
async def test_our_own_names_are_answered(
    http: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    async with http.get("/c/note.json", headers=headers) as answer:
        assert answer.status == 200
    status, _ = await post(http, rpc("tools/call", **NOTE), **headers)
    assert status == 200


@pytest.mark.parametrize("path", ["/mcp", "/c/note.json", "/nothing"])
async def test_a_body_over_the_limit_is_not_read(http: aiohttp.ClientSession, path: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 4096 + 1):
            yield b" " * 4096

    for body in (b" " * (MAX_BODY_BYTES + 1), chunks()):
        async with http.post(path, data=body) as answer:
            assert answer.status == 413


async def test_a_body_at_the_limit_is_read(http: aiohttp.ClientSession) -> None:
    call = json.dumps(rpc("tools/call", **NOTE)).encode().ljust(MAX_BODY_BYTES)
    headers = {"Accept": ACCEPT, "Content-Type": "application/json"}
    async with http.post("/mcp", data=call, headers=headers) as answer:
        assert (answer.status, "result" in await answer.json()) == (200, True)


async def releases(http: aiohttp.ClientSession, name: str) -> list[dict[str, Any]]:
    async with http.get(f"/c/{name}.json") as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        body = await answer.json()
    assert set(body) == {"name", "ownership", "votes", "releases", "as_of"}
    assert body["name"] == name
    found: list[dict[str, Any]] = body["releases"]
    return found


async def test_a_name_has_all_its_releases_highest_first(http: aiohttp.ClientSession) -> None:
    found = await releases(http, "note")
    assert [x["semver"] for x in found] == ["2.0.0-rc.1", "1.1.0", "1.0.1", "1.0.0"]
    assert [x["semver"] for x in found if x["latest"]] == ["1.1.0"]
    assert [x["semver"] for x in found if x["status"]["yanked"]] == ["1.0.1"]
    assert [x["semver"] for x in found if x["status"]["deprecated"]] == ["1.0.0"]
    assert {x["verification"]["verdict"] for x in found} == {"verified"}


async def test_the_labels_of_a_release_are_shown_beside_its_problems(
    http: aiohttp.ClientSession,
) -> None:
    (found,) = await releases(http, "pushy")
    codes = {x["code"] for x in found["problems"] if x["code"].startswith("LINT_")}
    assert codes == {"LINT_OVERRIDE", "LINT_HIDDEN_MARKDOWN"}
    assert found["verification"]["lint"]["codes"] == sorted(codes)
    assert len(found["warnings"]) == 1


async def test_a_rejected_release_is_shown_with_its_verdict_and_reason(
    http: aiohttp.ClientSession,
) -> None:
    (found,) = await releases(http, "forged")
    assert found["verification"]["verdict"] == "invalid"
    assert found["verification"]["lint"] is None
    assert found["reason"] == "BAD_SIGNATURE"
    assert found["message"]
    assert not found["latest"]


async def test_a_release_whose_bytes_are_missing_is_shown_without_a_verdict(
    http: aiohttp.ClientSession,
) -> None:
    (found,) = await releases(http, "soon")
    assert found["verification"]["verdict"] is None
    assert found["verification"]["lint"] is None
    assert found["acp_metadata"] is None
    assert found["availability"] == "pending"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/c/nobody.json", 404, "NOT_FOUND"),
        ("/c/Note.json", 400, "INVALID_INPUT"),
        ("/c/n.json", 400, "INVALID_INPUT"),
        ("/c/note%00.json", 400, "INVALID_INPUT"),
        ("/c/%ff%fe.json", 400, "INVALID_INPUT"),
        ("/c/..json", 400, "INVALID_INPUT"),
        (f"/c/{'x' * 5000}.json", 400, "INVALID_INPUT"),
        ("/c/note/1.0.0", 404, "NOT_FOUND"),
        ("/c/", 404, "NOT_FOUND"),
        ("/nothing", 404, "NOT_FOUND"),
        ("/mcp/more", 404, "NOT_FOUND"),
    ],
)
async def test_what_is_not_there_is_a_problem_document(
    http: aiohttp.ClientSession, path: str, status: int, code: str
) -> None:
    async with http.get(path) as answer:
        assert (answer.status, answer.content_type) == (status, PROBLEM)
        body = await answer.json(content_type=None)
    assert (body["type"], body["status"], body["code"]) == ("about:blank", status, code)
    assert body["title"]
    assert body["retryable"] is False


@pytest.mark.parametrize("path", ["/c/note.json", "/health"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_what_can_only_be_read_says_so(
    http: aiohttp.ClientSession, path: str, method: str
) -> None:
    async with http.request(method, path) as answer:
        assert (answer.status, answer.content_type) == (405, PROBLEM)
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("page", "damage", "status", "code"),
    [
        *(
            (page, damage, 503, "DATABASE_UNAVAILABLE")
            for page in ("/c/note.json", "/status")
            for damage in ("vanished", "garbage", "ALTER TABLE release RENAME TO secret")
        ),
        (
            *("/c/note.json", "UPDATE release SET verdict = 'secret' WHERE verdict = 'verified'"),
            *(500, "INTERNAL"),
        ),
    ],
)
async def test_a_broken_index_is_the_nodes_fault_and_told_without_its_secrets(
    damaged: Callable[[str], Index],
    serve: Callable[[Index], AbstractAsyncContextManager[str]],
    page: str,
    damage: str,
    status: int,
    code: str,
) -> None:
    async with (
        serve(damaged(damage)) as url,
        aiohttp.ClientSession(url) as http,
        http.get(page) as answer,
    ):
        assert (answer.status, answer.content_type) == (status, PROBLEM)
        assert answer.headers.get("Retry-After") == ("1" if status == 503 else None)
        text = await answer.text()
    assert json.loads(text)["code"] == code
    assert "secret" not in text
    assert "sqlite" not in text
