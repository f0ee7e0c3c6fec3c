"""Hostile requests to a node's MCP endpoint, in both protocols: typed errors and no effect."""

from __future__ import annotations

import io
from typing import Any

import aiohttp
import pytest

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(params=["handshake", "no handshake"])
def call(request: Any, http: aiohttp.ClientSession) -> Any:
    """Call a tool; returns the result of the response."""

    async def send(name: str, arguments: Any) -> Any:
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        headers = dict(HEADERS)
        if request.param == "no handshake":
            params["_meta"] = META
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call"}
            headers["Mcp-Name"] = name
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with http.post("/mcp", json=body, headers=headers) as reply:
            assert reply.status == 200
            return (await reply.json())["result"]

    return send


def code_of(result: Any) -> str | None:
    return result["structuredContent"]["code"] if result["isError"] else None


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "https://localhost.evil.example", 403),
        ("Host", "evil.example", 421),
        ("Host", "localhost.evil.example", 421),
        ("Host", "", 421),
    ],
)
async def test_another_site_or_name_is_refused(
    http: aiohttp.ClientSession, header: str, value: str, status: int
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with http.post("/mcp", json=body, headers=HEADERS | {header: value}) as reply:
        assert reply.status == status


async def test_a_body_of_ten_megabytes_is_too_large(http: aiohttp.ClientSession) -> None:
    try:
        async with http.post("/mcp", data=io.BytesIO(b" " * 10_000_000), headers=HEADERS) as reply:
            assert reply.status == 413
    except aiohttp.ClientConnectionError:
        pass  # the connection was closed before all of it was sent
    async with http.get("/health") as reply:
        assert reply.status == 200


@pytest.mark.parametrize(
    "query",
    [
        *("x" * 100_000, "note " * 20_000, '"unbalanced', "NEAR(", "NEAR(a b, 99999999999)", "*"),
        *("'; DROP TABLE release; --", "note' OR 1=1", "{name}: x", "a AND", "-", "^", "\x00note"),
        *("", " ", "\u202enote", "\ud7ff\U0010ffff", "NOT NOT NOT", "(" * 1000, "col:x OR y*"),
    ],
)
async def test_a_query_of_any_text_is_words_and_never_a_command(call: Any, query: str) -> None:
    result = await call("search_capabilities", {"query_string": query})
    assert code_of(result) in (None, "INVALID_INPUT", "TOO_LARGE")
    after = await call("search_capabilities", {"query_string": "takes notes"})
    names = [x["acp_metadata"]["id"] for x in after["structuredContent"]["list_of_results"]]
    assert "did:nuwa:cap:note@1.1.0" in names


async def test_an_empty_query_lists_by_name(call: Any) -> None:
    answer = (await call("search_capabilities", {"query_string": ""}))["structuredContent"]
    names = [x["acp_metadata"]["id"].split("@")[0] for x in answer["list_of_results"]]
    assert names == sorted(names)
    assert answer["total"] >= len(names) > 0


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("did:nuwa:cap:nobody", "NOT_FOUND"),
        ("did:nuwa:cap:nobody@1.0.0", "NOT_FOUND"),
        ("did:nuwa:cap:n\u043ete", "INVALID_INPUT"),  # a Cyrillic o
        ("did:nuwa:cap:../../etc/passwd", "INVALID_INPUT"),
        ("did:nuwa:cap:note@" + "9" * 10_000, "INVALID_INPUT"),
        ("did:nuwa:cap:note@>=0 <" + "1." * 10_000, "INVALID_INPUT"),
        ("x" * 200_000, "INVALID_INPUT"),
        ("", "INVALID_INPUT"),
        (None, "INVALID_INPUT"),
        (["did:nuwa:cap:note"], "INVALID_INPUT"),
        ({"$ne": 1}, "INVALID_INPUT"),
    ],
)
async def test_a_uri_that_means_nothing_is_a_typed_error(call: Any, uri: Any, code: str) -> None:
    assert code_of(await call("resolve_capability", {"cap_uri": uri})) == code
