"""Messages to other agents go only where the user says."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from capdex.did import did_key
from capdex.errors import CapdexError, Code, ExecutionFailed, InvalidInput, Refused
from capdex_router.bindings.a2a import AgentTool
from capdex_router.bindings.egress import Egress
from capdex_router.model.requests import AgentRequest

BOB = did_key(Ed25519PrivateKey.from_private_bytes(b"\x08" * 32).public_key().public_bytes_raw())
BINDING = {"type": "nuwa_a2a", "target_did": "{contact_did}", "service_method": "receive"}


@pytest.fixture
async def relay(serve: Any) -> Any:
    """A relay that keeps what it takes, and its URL."""
    taken: list[dict[str, Any]] = []

    async def take(request: web.Request) -> web.Response:
        taken.append({"path": request.path, **await request.json()})
        return web.json_response({"received": True})

    return await serve(take), taken


@pytest.fixture
def egress(stack: AsyncExitStack) -> Any:
    def make(addresses: Any = None) -> Egress:
        made = Egress(addresses=addresses)
        stack.push_async_callback(made.close)
        return made

    return make


async def test_a_message_to_a_key_goes_through_the_relay(relay: Any, egress: Any) -> None:
    url, taken = relay
    tool = AgentTool(BINDING, egress=egress({BOB: f"{url}/in"}))
    arguments = {"contact_did": BOB, "message": "hi é"}
    assert tool.requests(arguments) == [AgentRequest(BOB, "receive")]
    assert await tool.run(arguments, timeout_s=5) == {"received": True}
    message = taken[0]
    assert message.pop("path") == "/in"
    assert (message["to"], message["method"], message["params"]) == (BOB, "receive", arguments)
    assert message.keys() == {"to", "id", "created", "method", "params"}


async def test_a_did_that_the_user_gave_an_address_goes_there(relay: Any, egress: Any) -> None:
    url, taken = relay
    made = egress({"did:web:bob.example": f"{url}/bob"})
    tool = AgentTool({**BINDING, "target_did": "did:web:bob.example"}, egress=made)
    assert await tool.run({}, timeout_s=5) == {"received": True}
    assert taken[0]["path"] == "/bob"


@pytest.mark.parametrize(
    "did",
    [
        *(BOB, "did:pkh:eip155:1:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
        *("did:web:evil.example", "did:web:127.0.0.1", "did:web:good.example.evil", "did:nuwa:x"),
        "did:web:evil:good.example",
    ],
)
async def test_a_did_that_the_user_did_not_allow_is_refused(did: str, egress: Any) -> None:
    tool = AgentTool(BINDING, egress=egress())
    with pytest.raises(Refused) as refused:
        tool.requests({"contact_did": did})
    assert refused.value.code is Code.PERMISSION_DENIED
    with pytest.raises(Refused):
        await tool.run({"contact_did": did}, timeout_s=5)


@pytest.mark.parametrize(
    "did",
    [
        *("", "bob", "did:web:good.example#x", "did:web:good.example/..", "did:web:a%3A8080"),
        *("did:web:good.example\r\n", "did:web:" + "a" * 600, None, 5),
    ],
)
def test_a_text_that_is_no_did_is_refused(did: Any, egress: Any) -> None:
    with pytest.raises(InvalidInput):
        AgentTool(BINDING, egress=egress()).requests({"contact_did": did})


@pytest.mark.parametrize("location", ["/there", "https://elsewhere.example/"])
async def test_a_redirect_of_an_address_that_the_user_gave_is_for_the_user(
    location: str, serve: Any, egress: Any
) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": location})

    tool = AgentTool(BINDING, egress=egress({BOB: await serve(elsewhere)}))
    with pytest.raises(CapdexError, match=r"redirects (elsewhere|to another path)") as refused:
        await tool.run({"contact_did": BOB}, timeout_s=5)
    assert refused.value.fix == "a person can name the final URL with --at"


async def test_an_error_of_the_agent_is_a_failure(serve: Any, egress: Any) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=403, text=json.dumps({"error": "no"}))

    tool = AgentTool(BINDING, egress=egress({BOB: await serve(refuse)}))
    with pytest.raises(ExecutionFailed):
        await tool.run({"contact_did": BOB}, timeout_s=5)
