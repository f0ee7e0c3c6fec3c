"""The constant answers of both programs, compared with those of the SDK's server."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from capdex.net import envelope
from capdex.net.introduction import HANDSHAKE_VERSIONS, MODERN_VERSION, Introduction
from capdex_router.faces.server import build_server as build_router
from capdex_router.faces.tools import INTRODUCTION
from capdex_service.mcp.server import build_server as build_registry
from capdex_service.mcp.tools import PROFILES

Json = dict[str, Any]
NO_ONE: Any = None  # none of these messages reaches what a server is over
SERVERS: dict[str, tuple[Introduction, Callable[[], Server[Any]]]] = {
    "router": (INTRODUCTION, lambda: build_router(NO_ONE)),
    **{
        name: (one.introduction, partial(build_registry, NO_ONE, one))
        for name, one in PROFILES.items()
    },
}
META = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{META}protocolVersion": MODERN_VERSION,
    f"{META}clientCapabilities": {"elicitation": {"form": {}}},
    f"{META}clientInfo": {"name": "a client", "version": "1"},
}
CLIENT = {
    "name": "a client",
    "version": "1",
    "title": "A client",
    "description": "for tests",
    "websiteUrl": "https://example.org",
    "icons": [
        {"src": "https://example.org/i", "mimeType": "image/png", "sizes": ["any"], "theme": "dark"}
    ],
}
CAPABILITIES = {
    "roots": {"listChanged": True},
    "sampling": {"context": {}, "tools": {}},
    "elicitation": {"form": {"applyDefaults": True}, "url": {}},
    "experimental": {"x": {"y": 1}},
    "extensions": {"io.example/ui": {}},
    "tasks": {"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}},
}


def hello(version: str = "2025-11-25", **more: Any) -> Json:
    params = {"protocolVersion": version, "capabilities": CAPABILITIES, "clientInfo": CLIENT}
    return request("initialize", params | more)


def request(method: str, params: Json | None = None, id_: Any = 1) -> Json:
    found = {"jsonrpc": "2.0", "id": id_, "method": method}
    return found if params is None else found | {"params": params}


async def sdk(server: Server[Any], *messages: Json) -> list[Json]:
    """Return what the SDK answers to requests, one after the other."""
    into, read = anyio.create_memory_object_stream[Any](0)
    write, out = anyio.create_memory_object_stream[Any](0)
    found = []
    async with anyio.create_task_group() as group, into, out:
        group.start_soon(server.run, read, write, server.create_initialization_options())
        for message in messages:
            parsed = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
            await into.send(SessionMessage(parsed))
            said = (await out.receive()).message
            found.append(json.loads(said.model_dump_json(by_alias=True, exclude_unset=True)))
        group.cancel_scope.cancel()
    return found


def ours(said: Introduction, message: Json, *, greeted: bool = False) -> Json | None:
    found = envelope.read(json.dumps(message).encode())
    assert isinstance(found, envelope.JsonRpcMessage)
    answer = said.answer(found, greeted)
    return None if answer is None else json.loads(answer)


def test_the_versions_are_those_of_the_sdk() -> None:
    assert HANDSHAKE_VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert (MODERN_VERSION,) == MODERN_PROTOCOL_VERSIONS


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, "2099-01-01", MODERN_VERSION, ""])
async def test_answers_to_a_handshake_are_those_of_the_sdk(name: str, version: str) -> None:
    said, build = SERVERS[name]
    messages = [hello(version), request("tools/list"), request("ping", {}), request("tools/list")]
    messages += [request("tools/list", {"cursor": "x", "_meta": {"progressToken": 7}}, "an id")]
    expected = await sdk(build(), *messages)
    assert [ours(said, x, greeted=i > 0) for i, x in enumerate(messages)] == expected
    assert ours(said, request("ping")) == (await sdk(build(), request("ping")))[0]


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_answers_without_a_handshake_are_those_of_the_sdk(name: str, method: str) -> None:
    said, build = SERVERS[name]
    message = request(method, {"_meta": ENVELOPE}, 10**15)
    assert [ours(said, message)] == await sdk(build(), message)


def spoilt(chance: random.Random, value: Any) -> Any:
    """Return a JSON value with one change somewhere."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        kept = {k: x for k, x in value.items() if k != key}
        return kept if chance.random() < 0.2 else kept | {key: spoilt(chance, value[key])}
    return chance.choice([None, 5, 1.5, True, "x", "", [], {}, [{}], {"a": {}}, {"a": 1}, ["a"]])


@pytest.mark.parametrize("seed", range(12))
async def test_what_the_sdk_would_refuse_is_left_to_it(seed: int) -> None:
    said, build = SERVERS["router"]
    chance, answered = random.Random(seed), 0  # noqa: S311
    for _ in range(40):
        method = chance.choice(["server/discover", "tools/list", "ping"])
        first = spoilt(chance, hello()["params"])
        message = chance.choice(
            [
                request("initialize", first if isinstance(first, dict) else {}),
                request(method, {"_meta": spoilt(chance, ENVELOPE)}),
                request(method, {"_meta": {"progressToken": spoilt(chance, 1)}, "cursor": None}),
            ]
        )
        found = ours(said, message)
        if found is not None:
            answered += 1
            assert [found] == await sdk(build(), message), message
    assert answered
