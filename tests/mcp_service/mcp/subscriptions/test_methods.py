"""Subscriptions by `subscriptions/listen`, and on a connection of one client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import mcp
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from capdex_indexer.query.index import Index
from capdex_service.mcp.subscriptions.sessions import MAX_URIS

WITHIN_S = 60  # of a notification: far more than it takes
CHANGES = "capdex://registry/changes"


async def test_a_client_listens_over_http(growing: Any, growing_url: str) -> None:
    growing.publish("note")
    growing.follow()
    async with mcp.Client(f"{growing_url}/mcp") as client:
        assert client.protocol_version == "2026-07-28"
        assert client.server_capabilities.resources == types.ResourcesCapability(
            subscribe=True, list_changed=False
        )
        assert client.server_capabilities.tools == types.ToolsCapability(list_changed=False)
        wanted = ["capdex://note", "file:///etc/passwd", "capdex://weather/latest/tools", CHANGES]
        async with client.listen(
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=wanted,
        ) as changes:
            assert changes.honored == types.SubscriptionFilter(
                resource_subscriptions=[wanted[0], wanted[2], wanted[3]]
            )
            growing.publish("weather")
            growing.follow()
            expected = {
                ResourceUpdated("capdex://weather/latest/tools"),
                ResourceUpdated(CHANGES),
            }
            async with asyncio.timeout(WITHIN_S):
                while expected:
                    expected.discard(await anext(changes))
            (content,) = (await client.read_resource("capdex://weather/latest/tools")).contents
    assert content.text == '{"tools":[],"tool_bindings":{}}'


async def test_listeners_hear_only_of_what_they_asked_for(growing: Any, growing_url: str) -> None:
    async with (
        mcp.Client(f"{growing_url}/mcp") as client,
        client.listen(resource_subscriptions=["capdex://note"]) as changes,
    ):
        growing.publish("weather")
        growing.follow()
        growing.publish("note")
        growing.follow()
        async with asyncio.timeout(WITHIN_S):
            assert await anext(changes) == ResourceUpdated("capdex://note")


async def test_a_listener_is_refused_without_a_stream(one_stream: None, growing_url: str) -> None:
    async with (
        mcp.Client(f"{growing_url}/mcp") as client,
        client.listen(resource_subscriptions=[CHANGES]),
    ):
        with pytest.raises(MCPError) as refused:
            async with client.listen(resource_subscriptions=[CHANGES]):
                pass
        error = refused.value.error
        assert (error.code, error.data["code"], error.data["retryable"]) == (
            types.INTERNAL_ERROR,
            "RATE_LIMITED",
            True,
        )
        too_many = [f"capdex://n-{i}" for i in range(MAX_URIS + 1)]
        with pytest.raises(MCPError) as refused:
            async with client.listen(resource_subscriptions=too_many):
                pass
        assert refused.value.error.code == types.INVALID_PARAMS


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_connection_of_one_client_is_told_by_the_handshake(
    growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(message: Any) -> None:
        heard.put_nowait(message)

    async with client_of(mode="legacy", message_handler=hear) as client:
        await client.subscribe_resource("capdex://note")
        await client.subscribe_resource("capdex://weather")
        await client.unsubscribe_resource("capdex://weather")
        with pytest.raises(MCPError):
            await client.subscribe_resource("note")
        growing.publish("weather")
        growing.publish("note")
        growing.follow()
        async with asyncio.timeout(WITHIN_S):
            message = await heard.get()
    assert message.method == "notifications/resources/updated"
    assert message.params.uri == "capdex://note"


async def test_a_stopping_node_ends_its_streams(growing: Any, serve: Any) -> None:
    index = Index(growing.url)
    node = serve(index, blocks=growing.blocks.path)
    url = await node.__aenter__()
    async with (
        mcp.Client(f"{url}/mcp") as client,
        client.listen(resource_subscriptions=[CHANGES]) as changes,
    ):
        await node.__aexit__(None, None, None)
        async with asyncio.timeout(WITHIN_S):
            assert [x async for x in changes] == []
    index.close()
