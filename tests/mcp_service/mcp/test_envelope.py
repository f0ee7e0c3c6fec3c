"""Envelopes of messages, judged as JSON-RPC 2.0 and MCP say, over HTTP in both protocols."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from capdex.net.envelope import Fault, JsonRpcMessage, read

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602


def ping(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"} | members).encode()


def with_id(text: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % text.encode("latin-1")


IDS = ("null", "1.5", "{}", "[]", "true", "false", "1.0", "1e2", "1e400", "9" * 5000)
NOT_JSON = (
    *(
        b"",
        b"[",
        b"{",
        b"NaN",
        b"{'a':1}",
        b"hello",
        b"1 2",
        with_id('"\\ud800"'),
        with_id('"\xff"'),
    ),
    *(b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 99_999),
)
NOT_ONE = (b"[]", b"null", b"1", b'"x"', b"{}", b"[" + ping() + b"]")
# Message: code, and the id of the answer.
BAD: dict[bytes, tuple[int, Any]] = {
    **{with_id(x): (INVALID_REQUEST, None) for x in IDS},
    **dict.fromkeys(NOT_JSON, (PARSE_ERROR, None)),
    **dict.fromkeys(NOT_ONE, (INVALID_REQUEST, None)),
    ping(jsonrpc="1.0"): (INVALID_REQUEST, 1),
    ping(jsonrpc="1.0", id=10**40): (INVALID_REQUEST, 10**40),
    ping(jsonrpc=2.0, id="a"): (INVALID_REQUEST, "a"),
    ping(method=5): (INVALID_REQUEST, 1),
    ping(method=None): (INVALID_REQUEST, 1),
    ping(params=[]): (INVALID_REQUEST, 1),
    ping(params="x"): (INVALID_REQUEST, 1),
    ping(params={"wish": "\ud800"}): (PARSE_ERROR, 1),
    ping(params={"arguments": []}): (INVALID_PARAMS, 1),
    ping(params={"arguments": "{}"}): (INVALID_PARAMS, 1),
    b'{"jsonrpc":"2.0","id":7}': (INVALID_REQUEST, 7),
    b'{"jsonrpc":"2.0"}': (INVALID_REQUEST, None),
}
GOOD = [
    *(with_id(x) for x in ("0", "-1", '"a"', '""', '"\\u00e9"', "99999999999999999999")),
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
    ping(params={}),
    ping(params=None),
    ping(params={"arguments": None}),
    ping(params={"arguments": {"a": 1}}),
    ping(method="nobody knows it"),
]
NAMES = [repr(x[:40]) for x in BAD]


@pytest.mark.parametrize("message", BAD, ids=NAMES)
def test_what_is_no_message_is_an_error(message: bytes) -> None:
    found = read(message)
    assert isinstance(found, Fault)
    assert (found.code, found.id) == BAD[message]


@pytest.mark.parametrize("message", GOOD)
def test_a_message_passes(message: bytes) -> None:
    assert isinstance(read(message), JsonRpcMessage)


@pytest.mark.parametrize("version", [None, "2025-11-25", "2026-07-28"])
async def test_over_http_each_is_answered_400_with_its_code(
    http: aiohttp.ClientSession, version: str | None
) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if version is not None:
        headers["MCP-Protocol-Version"] = version
    for message, expected in BAD.items():
        if len(message) > 256 * 1024:
            continue  # too large, whatever it is
        async with http.post("/mcp", data=message, headers=headers) as reply:
            said = await reply.json()
        assert (reply.status, said["error"]["code"], said["id"]) == (400, *expected), message[:80]
        assert set(said) == {"jsonrpc", "id", "error"}


@pytest.mark.parametrize("key", ["name", "cap_uri", "arguments"])
async def test_a_tool_call_that_is_no_utf_8_is_not_json(
    http: aiohttp.ClientSession, key: str
) -> None:
    call = {"name": "resolve_capability", "arguments": {"cap_uri": "did:nuwa:cap:note"}}
    body = ping(method="tools/call", params=call).replace(key.encode(), b"\xc0" + key.encode())
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    async with http.post("/mcp", data=body, headers=headers) as reply:
        assert (reply.status, (await reply.json())["error"]["code"]) == (400, PARSE_ERROR)


@pytest.mark.parametrize("version", ["1999-01-01", "2027-01-01", "x", ""])
async def test_a_version_that_no_revision_has_is_answered_with_those_that_there_are(
    http: aiohttp.ClientSession, version: str
) -> None:
    headers = {"Accept": "application/json", "MCP-Protocol-Version": version}
    async with http.post("/mcp", json=json.loads(ping()), headers=headers) as reply:
        said = await reply.json()
    assert (reply.status, said["id"]) == (400, 1)
    assert "none of 2024-11-05, 2025-03-26, " in said["error"]["message"]
