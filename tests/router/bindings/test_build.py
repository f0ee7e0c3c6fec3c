"""Tools of a verified package run by their bindings."""

from __future__ import annotations

import hashlib
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
import yaml
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from capdex import did, signing
from capdex.errors import InvalidInput, Refused
from capdex.ipld.cid import Cid
from capdex.manifest.bindings.binding import FIELDS
from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex_router.bindings.a2a import AgentTool
from capdex_router.bindings.build import Wiring, bound, executor, moved, moving
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.http import HttpTool
from capdex_router.bindings.mcp import McpServices, McpTool
from capdex_router.policy.secrets import Secrets

KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
PUBLISHER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
URI = "did:nuwa:cap:weather-reporter@1.0.0"
BINDINGS = {
    "get": {"type": "http_get", "url": "https://api.weather.example/v1/{city}"},
    "post": {"type": "http_post", "url": "https://api.weather.example/v1"},
    "mcp": {"type": "mcp_service", "service_uri": "did:nuwa:mcp:w", "mcp_action": "forecast"},
    "agent": {"type": "nuwa_a2a", "target_did": "{city}", "service_method": "receive"},
    "odd": {"type": "carrier_pigeon", "to": "Oslo"},
}


@pytest.fixture(scope="module")
def package() -> VerifiedPackage:
    def tool(name: str) -> Any:
        parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
        return {"name": name, "description": "It answers.", "parameters": parameters}

    document = {
        "metadata": {"id": URI, "name": "Weather", "description": "The weather."},
        "schema": json.dumps({"$id": "did:nuwa:state:weather#v1", "type": "object"}),
        "prompt": "Report.",
        "tools": [{"type": "function", "function": tool(x)} for x in [*BINDINGS, "unbound"]],
        "tool_bindings": BINDINGS,
    }
    author = did.did_url(did.did_key(KEY.public_key().public_bytes_raw()))
    account = did.caip10(31337, PUBLISHER)
    text = yaml.safe_dump(document, sort_keys=False).encode()
    prepared = signing.prepare(text, author=author, publisher=account)
    signature = signing.sign_ed25519(KEY, signing.signing_input(prepared, URI))
    data = signing.attach(prepared, signature)
    digest = hashlib.sha256(data).digest()
    return verify(Announcement(31337, PUBLISHER, URI, "1.0.0", str(Cid.of(data)), digest), data)


@pytest.fixture
async def wire(stack: AsyncExitStack, secrets: Secrets) -> Any:
    def make(**addresses: str) -> Wiring:
        egress = Egress(addresses={"https://api.weather.example": addresses.get("api", "http://x")})
        wiring = Wiring(egress, secrets, McpServices(egress))
        stack.push_async_callback(wiring.close)
        return wiring

    return make


@pytest.mark.parametrize("type_", FIELDS)
async def test_each_type_of_binding_has_what_runs_it(type_: str, wire: Any) -> None:
    written = {name: x for each in BINDINGS.values() for name, x in each.items()}
    binding = {"method": "GET"} | written | {"type": type_}
    assert bound(binding, capability="weather-reporter", wiring=wire()) is not None


@pytest.mark.parametrize(
    ("tool", "kind"),
    [("get", HttpTool), ("post", HttpTool), ("mcp", McpTool), ("agent", AgentTool)],
)
def test_each_binding_type_has_an_executor(
    tool: str, kind: type, package: VerifiedPackage, wire: Any
) -> None:
    assert isinstance(executor(package, tool, wiring=wire()), kind)


@pytest.mark.parametrize("tool", ["odd", "unbound", "absent"])
def test_a_tool_of_another_kind_has_none(tool: str, package: VerifiedPackage, wire: Any) -> None:
    assert executor(package, tool, wiring=wire()) is None


async def test_a_binding_that_cannot_be_used_says_so_when_it_is_called(wire: Any) -> None:
    bad = {"type": "http_get", "url": "https://a.example/../b"}
    tool = bound(bad, capability="weather-reporter", wiring=wire())
    assert tool is not None
    with pytest.raises(InvalidInput, match="cannot be used"):
        tool.requests({})
    with pytest.raises(InvalidInput, match="cannot be used"):
        await tool.run({}, timeout_s=5)


async def test_a_tool_of_a_package_runs_against_a_service_that_the_user_runs(
    package: VerifiedPackage, wire: Any, serve: Any
) -> None:
    async def sunny(request: web.Request) -> web.Response:
        return web.json_response({"path": request.path, "sky": "clear"})

    tool = executor(package, "get", wiring=wire(api=await serve(sunny)))
    assert tool is not None
    assert [x.host for x in tool.requests({"city": "Oslo"})] == ["api.weather.example"]
    assert await tool.run({"city": "Oslo"}, timeout_s=5) == {"path": "/v1/Oslo", "sky": "clear"}


AT = {"https://api.weather.example": "http://127.0.0.1:9/base/", "did:nuwa:mcp:w": "http://[::1]:9"}


@pytest.mark.parametrize(
    ("value", "moved_to"),
    [
        (
            {"url": "https://api.weather.example/v1/{city}"},
            {"url": "http://127.0.0.1:9/base/v1/{city}"},
        ),
        ({"url": "https://API.weather.example:443?q=1"}, {"url": "http://127.0.0.1:9/base?q=1"}),
        ({"service_uri": "did:nuwa:mcp:w"}, {"service_uri": "http://[::1]:9"}),
        (
            {"auth": [{"token_url": "https://api.weather.example/t"}]},
            {"auth": [{"token_url": "http://127.0.0.1:9/base/t"}]},
        ),
        ({"url": "https://api.weather.example.org/"}, None),
        ({"url": "https://api.weather.example:8443/"}, None),
        ({"headers": {"Referer": "https://api.weather.example/"}}, None),
    ],
)
def test_the_urls_of_an_origin_are_moved_and_no_others(value: Any, moved_to: Any) -> None:
    assert moved(value, AT) == (moved_to or value)


async def test_an_agent_is_reached_where_this_call_says(
    package: VerifiedPackage, stack: AsyncExitStack, secrets: Secrets, serve: Any
) -> None:
    async def take(request: web.Request) -> web.Response:
        return web.json_response({"path": request.path})

    at = {"did:web:bob.example": f"{await serve(take)}/in"}
    egress = moving(at)
    wiring = Wiring(egress, secrets, McpServices(egress), at)
    stack.push_async_callback(wiring.close)
    tool = executor(package, "agent", wiring=wiring)
    assert tool is not None
    assert await tool.run({"city": "did:web:bob.example"}, timeout_s=5) == {"path": "/in"}
    with pytest.raises(Refused):
        tool.requests({"city": "did:web:eve.example"})
