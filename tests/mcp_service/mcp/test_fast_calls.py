"""`FastCalls` gives the answers of the SDK's transport, whatever the message."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp

from capdex_service.limits.bodies import WholeBody
from capdex_service.limits.client_faults import ClientFaults
from capdex_service.mcp.fast_calls import FastCalls
from capdex_service.mcp.server import build_server
from capdex_service.mcp.tools import PROFILES, TOOLS, Profile
from capdex_service.queries.reader import Reader

COUNT = 1000
OLD, NEW = "2025-11-25", "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
URIS = ("note", "note@1.0.0", "note@^1", "gone", "soon", "forged", "nobody", "note@^9", "é", "")
ARGUMENTS: list[Any] = [
    *({"cap_uri": f"did:nuwa:cap:{uri}"} for uri in URIS),
    *({"query_string": words} for words in ("note", "weather of a city", "", "\u0000", "日本")),
    {"query_string": "note", "limit": 1, "detail": "full", "facets": ["tag"]},
    {"query_string": "note", "filters": {"tag": "text"}},
    {"cap_uri": "did:nuwa:cap:note", "include": ["package", "tools", "prompt", "schema"]},
    {"cap_uri": "did:nuwa:cap:note", "include": ["history"]},
    {"cap_uri": "did:nuwa:cap:note", "include": "tools"},
    {"cap_uri": 7},
    {"cap_uri": "did:nuwa:cap:note", "proof": "list", "proof_block": 2**70},
    {},
    None,
    [],
    "text",
]
CAPABILITIES, INFO = (f"io.modelcontextprotocol/client{x}" for x in ("Capabilities", "Info"))
METAS: list[dict[str, Any]] = [  # of hosts in use, and malformed ones
    {"progressToken": 7},
    {"progressToken": "a"},
    {"progressToken": None},
    {"progressToken": True},
    {"progressToken": [1]},
    {"claudecode/toolUseId": "toolu_1", "traceparent": "00-1-1-01"},
    {CAPABILITIES: {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}}}},
    {CAPABILITIES: {"roots": 5}},
    {CAPABILITIES: {"roots": {"listChanged": "x"}, "unknown": [1]}},
    {CAPABILITIES: []},
    {CAPABILITIES: None},
    {
        INFO: {
            "name": "host",
            "version": "1",
            "title": "Host",
            "icons": [],
            "websiteUrl": "https://x",
        }
    },
    {INFO: {"name": "host"}},
    {INFO: None},
    {INFO: 5},
]
IDS: list[Any] = [1, 0, -7, 2**53, 2**70, "a", "", "é", 'q"', None, 1.5, True, {}, [1]]


class Reply:
    """The HTTP response of an ASGI application."""

    def __init__(self) -> None:
        self.status, self.body = 0, b""
        self.headers: dict[bytes, bytes] = {}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = dict(message.get("headers", ()))
        else:
            self.body += message.get("body", b"")

    def shown(self) -> Any:
        kind = self.headers.get(b"content-type", b"")
        is_json = kind.startswith(b"application/json")
        return self.status, kind, json.loads(self.body) if is_json and self.body else self.body


async def post(app: ASGIApp, body: bytes, headers: list[tuple[bytes, bytes]]) -> Any:
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
    }
    # In two pieces, as a body may arrive.
    pieces = [body[: len(body) // 2], body[len(body) // 2 :]]
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": piece, "more_body": piece is pieces[0]} for piece in pieces
    ]
    reply = Reply()

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    await app(scope, receive, reply.send)
    return reply.shown()


def message(chance: random.Random) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """A call as a client makes it, most often; with something odd about it otherwise."""
    modern = chance.random() < 0.5
    name = chance.choice([*TOOLS, *TOOLS, "publish", ""])
    params: dict[str, Any] = {"name": name, "arguments": chance.choice(ARGUMENTS)}
    if chance.random() < 0.1:
        del params["arguments"]
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "host": "localhost",
    }
    if modern:
        params["_meta"] = dict(META)
        headers |= {"mcp-protocol-version": NEW, "mcp-method": "tools/call", "mcp-name": name}
    elif chance.random() < 0.8:
        headers["mcp-protocol-version"] = chance.choice([OLD, "2025-03-26", "2024-11-05"])
    call: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": chance.choice(IDS) if chance.random() < 0.3 else chance.randrange(1000),
        "method": "tools/call",
        "params": params,
    }
    pairs = [(key.encode(), value.encode("latin-1", "replace")) for key, value in headers.items()]
    body = json.dumps(call, ensure_ascii=chance.random() < 0.5).encode()
    if chance.random() < 0.3:
        extra = chance.choice(METAS)
        params["_meta"] = {**params.get("_meta", {}), **extra}
        body = json.dumps(call).encode()
    if chance.random() < 0.5:
        return body, pairs
    odd = chance.randrange(14)
    if odd == 0:
        pairs = [(k, chance.choice([b"*/*", b"text/html", b"", v])) for k, v in pairs]
    elif odd == 1:
        pairs = [x for x in pairs if x[0] != chance.choice(pairs)[0]]
    elif odd == 2:
        pairs.append(chance.choice(pairs))
    elif odd == 3:
        pairs.append((b"mcp-param-region", b"eu"))
    elif odd == 4:
        body = body[: chance.randrange(len(body))]
    elif odd == 5:
        call["method"] = chance.choice(["tools/list", "ping", "initialize", "nonsense", 7])
    elif odd == 6:
        del call[chance.choice(list(call))]
    elif odd == 7:
        call[chance.choice(["extra", "params", "jsonrpc"])] = chance.choice([1, None, {}, "2.0"])
    elif odd == 8:
        params["_meta"] = chance.choice([{}, None, META | {"progressToken": 1}, 5])
    elif odd == 9:
        params["_meta"] = META | {
            "io.modelcontextprotocol/protocolVersion": chance.choice([OLD, 1])
        }
    elif odd == 10:
        body = b"[" + body + b"]"
    elif odd == 11:
        pairs = [(k, b"1999-01-01" if k == b"mcp-protocol-version" else v) for k, v in pairs]
    elif odd == 12:
        body = body.replace(b'"2.0"', b"NaN") if chance.random() < 0.5 else b"\xef\xbb\xbf" + body
    else:
        body = body.replace(b'"name"', b'"name": "x", "name"')
    if odd in range(5, 10):
        body = json.dumps(call).encode()
    return body, pairs


@asynccontextmanager
async def both(
    reader: Reader, profile: Profile
) -> AsyncIterator[tuple[ASGIApp, ASGIApp, list[int]]]:
    """`FastCalls` behind whole bodies, the SDK's transport, and how often it got a message."""
    server = build_server(reader, profile)
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    passed: list[int] = []

    async def transport(scope: Any, receive: Any, send: Any) -> None:
        passed.append(1)
        await manager.asgi_app(scope, receive, send)

    async with manager.run():
        calls = FastCalls(reader, server, profile, transport)
        yield WholeBody(calls, faults=ClientFaults()), manager.asgi_app, passed


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_thousand_messages_are_answered_as_the_sdk_answers_them(
    reader: Reader, profile: str
) -> None:
    chance = random.Random(17)  # noqa: S311 - the same messages each time
    async with both(reader, PROFILES[profile]) as (fast, sdk, passed):
        for _ in range(COUNT):
            body, headers = message(chance)
            assert await post(fast, body, headers) == await post(sdk, body, headers), body
    assert COUNT / 20 < COUNT - len(passed) < COUNT, "the fast took none of the messages, or all"
