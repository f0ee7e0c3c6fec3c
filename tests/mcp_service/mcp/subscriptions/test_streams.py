"""Sessions over HTTP: their ids, and the stream of notifications that a GET opens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import mcp
import mcp_types as types
import pytest

from capdex_service.mcp.subscriptions.sessions import Sessions

WITHIN_S = 60  # of a notification: far more than it takes
ACCEPT = {"Accept": "application/json, text/event-stream"}
CLIENT = {"name": "test", "version": "1"}


class Client:
    """A bare client of one session."""

    def __init__(self, http: aiohttp.ClientSession, version: str = "2025-11-25") -> None:
        self.http, self.version = http, version
        self.headers = dict(ACCEPT)

    async def start(self) -> str:
        parameters = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": CLIENT}
        async with self.post("initialize", parameters) as answer:
            assert answer.status == 200
            session = answer.headers["Mcp-Session-Id"]
        self.headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": self.version}
        return session

    def post(self, method: str, params: dict[str, Any]) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.http.post("/mcp", json=message, headers=self.headers)

    async def call(self, method: str, **params: Any) -> Any:
        async with self.post(method, params) as answer:
            assert answer.status == 200
            return await answer.json()

    @asynccontextmanager
    async def stream(self, **headers: str) -> AsyncIterator[AsyncIterator[dict[str, str]]]:
        given = self.headers | {"Accept": "text/event-stream"} | headers
        async with self.http.get("/mcp", headers=given) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.content_type == "text/event-stream"
            yield _events(answer)


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, str]]:
    event: dict[str, str] = {}
    async for line in answer.content:
        text = line.decode().rstrip("\n")
        if text:
            key, _, value = text.partition(":")
            event[key] = value.strip()
        else:
            yield event
            event = {}


async def notified(events: AsyncIterator[dict[str, str]], method: str) -> dict[str, Any]:
    """The next notification of a method, with the id of its event."""
    async with asyncio.timeout(WITHIN_S):
        async for event in events:
            data = event.get("data")
            message = json.loads(data) if data else {}
            if message.get("method") == f"notifications/{method}":
                return {**message, "event": event["id"]}
    raise AssertionError("the stream has ended")


@pytest.fixture
async def http(growing_url: str) -> AsyncIterator[aiohttp.ClientSession]:
    """A plain HTTP client of a node over the growing registry."""
    async with aiohttp.ClientSession(growing_url) as session:
        yield session


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_client_follows_a_name(
    version: str, growing: Any, http: aiohttp.ClientSession
) -> None:
    growing.publish("note")
    growing.publish("other")
    growing.follow()
    client = Client(http, version)
    await client.start()
    assert "result" in await client.call("resources/subscribe", uri="capdex://note")
    async with client.stream() as events:
        first = await anext(events)
        assert ("id" in first) is (version == "2025-11-25")
        growing.publish("other", "1.1.0")
        growing.publish("note", "1.1.0")
        growing.follow()
        updated = await notified(events, "resources/updated")
    assert updated["params"] == {"uri": "capdex://note"}


async def test_a_client_follows_everything_new(growing: Any, http: aiohttp.ClientSession) -> None:
    client = Client(http)
    await client.start()
    assert "result" in await client.call("resources/subscribe", uri="capdex://registry/changes")
    async with client.stream() as events:
        growing.publish("note")
        growing.follow()
        updated = await notified(events, "resources/updated")
    assert updated["params"] == {"uri": "capdex://registry/changes"}


async def test_a_returning_client_is_told_what_it_missed(
    growing: Any, http: aiohttp.ClientSession
) -> None:
    growing.publish("early")
    growing.publish("note")
    growing.follow()
    client = Client(http)
    await client.start()
    await client.call("resources/subscribe", uri="capdex://early")
    await client.call("resources/subscribe", uri="capdex://note/latest/package")
    growing.publish("note", "1.1.0")  # before it has a stream
    growing.follow()
    async with client.stream() as events:
        first = await notified(events, "resources/updated")
        growing.publish("early", "1.1.0")
        growing.follow()
        second = await notified(events, "resources/updated")
    growing.publish("note", "1.2.0")  # between two streams
    growing.follow()
    async with client.stream(**{"Last-Event-ID": second["event"]}) as events:
        third = await notified(events, "resources/updated")
        while third["params"]["uri"] == "capdex://early":  # two commits: announced, then judged
            third = await notified(events, "resources/updated")
    names = [x["params"]["uri"] for x in (first, second, third)]
    package = "capdex://note/latest/package"
    assert names == [package, "capdex://early", package]


async def test_the_end_of_a_subscription_is_heeded(
    growing: Any, http: aiohttp.ClientSession
) -> None:
    client = Client(http)
    await client.start()
    for uri in ("capdex://note", "capdex://weather"):
        await client.call("resources/subscribe", uri=uri)
    async with client.stream() as events:
        assert "result" in await client.call("resources/unsubscribe", uri="capdex://note")
        assert "result" in await client.call("resources/unsubscribe", uri="capdex://never")
        growing.publish("note")
        growing.publish("weather")
        growing.follow()
        updated = await notified(events, "resources/updated")
    assert updated["params"]["uri"] == "capdex://weather"


async def test_a_session_can_be_ended(http: aiohttp.ClientSession) -> None:
    client = Client(http)
    await client.start()
    async with client.stream() as events:
        async with http.delete("/mcp", headers=client.headers) as answer:
            assert answer.status == 204
        async with asyncio.timeout(WITHIN_S):
            assert [x async for x in events if x.get("data")] == []
    for method in ("GET", "DELETE"):
        async with http.request(method, "/mcp", headers=client.headers) as answer:
            assert answer.status == 404
    async with client.post("tools/list", {}) as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == -32600


async def test_unknown_sessions_are_not_found(http: aiohttp.ClientSession) -> None:
    for session in ("x", "A" * 38, "../../etc/passwd", "é"):
        headers = ACCEPT | {"Mcp-Session-Id": session}
        for method in ("GET", "POST", "DELETE"):
            async with http.request(method, "/mcp", json={}, headers=headers) as answer:
                assert answer.status == 404, (method, session)
    async with http.get("/mcp", headers=ACCEPT) as answer:
        assert answer.status == 400
    modern = ACCEPT | {"MCP-Protocol-Version": "2026-07-28"}
    async with http.get("/mcp", headers=modern) as answer:
        assert answer.status == 405
        assert "POST" in answer.headers["Allow"]


async def test_calls_of_another_nodes_session_are_answered(http: aiohttp.ClientSession) -> None:
    elsewhere = Sessions()
    session = elsewhere.issue()
    elsewhere.close()
    client = Client(http)
    client.headers["Mcp-Session-Id"] = session
    assert "result" in await client.call("tools/list")
    refused = await client.call("resources/subscribe", uri="capdex://note")
    assert refused["error"]["code"] == -32600
    async with http.get("/mcp", headers=client.headers) as answer:
        assert answer.status == 404


async def test_subscriptions_need_a_session_and_a_uri_of_ours(
    http: aiohttp.ClientSession,
) -> None:
    client = Client(http)
    refused = await client.call("resources/subscribe", uri="capdex://note")
    assert refused["error"]["code"] == -32600
    await client.start()
    refused = await client.call("resources/subscribe", uri="file:///etc/passwd")
    assert (refused["error"]["code"], refused["error"]["data"]["code"]) == (-32002, "NOT_FOUND")


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_a_client_without_accept_is_answered_and_gets_its_stream(
    version: str, growing_url: str
) -> None:
    async with aiohttp.ClientSession(growing_url, skip_auto_headers=["Accept"]) as http:
        client = Client(http, version)
        del client.headers["Accept"]
        await client.start()
        assert "result" in await client.call("tools/list")
        async with http.get("/mcp", headers=client.headers) as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream")
        for kind in ("text/html", "image/*"):
            client.headers["Accept"] = kind
            async with client.post("tools/list", {}) as answer:
                assert answer.status == 406


@pytest.mark.parametrize("in_session", [True, False])
async def test_pings_and_answers_to_pings_are_taken(
    in_session: bool, http: aiohttp.ClientSession
) -> None:
    client = Client(http)
    if in_session:
        await client.start()
    assert (await client.call("ping"))["result"] == {}
    for message in ({"id": 7, "result": {}}, {"method": "notifications/cancelled", "params": {}}):
        body = {"jsonrpc": "2.0", **message}
        async with http.post("/mcp", json=body, headers=client.headers) as answer:
            assert answer.status == 202


async def test_a_second_stream_takes_the_place_of_the_first(http: aiohttp.ClientSession) -> None:
    client = Client(http)
    await client.start()
    async with client.stream() as first, client.stream() as second:
        await anext(second)
        async with asyncio.timeout(WITHIN_S):
            assert [x async for x in first if x.get("data")] == []


async def test_streams_are_bounded(one_stream: None, http: aiohttp.ClientSession) -> None:
    one, two = Client(http), Client(http)
    await one.start()
    await two.start()
    async with one.stream() as events:
        await anext(events)
        accept = {"Accept": "text/event-stream"}
        async with http.get("/mcp", headers=two.headers | accept) as answer:
            assert answer.status == 429
            assert "Retry-After" in answer.headers
        assert "result" in await two.call("tools/list")


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_the_sdks_client_follows_by_the_handshake(growing: Any, growing_url: str) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(message: Any) -> None:
        heard.put_nowait(message)

    growing.publish("note")
    growing.follow()
    async with mcp.Client(f"{growing_url}/mcp", mode="legacy", message_handler=hear) as client:
        assert client.server_capabilities.resources == types.ResourcesCapability(
            subscribe=True, list_changed=False
        )
        assert client.server_capabilities.prompts == types.PromptsCapability(list_changed=False)
        assert client.server_capabilities.tools == types.ToolsCapability(list_changed=False)
        await client.subscribe_resource("capdex://note")
        growing.publish("note", "1.1.0")
        growing.follow()
        async with asyncio.timeout(WITHIN_S):
            while not isinstance(found := await heard.get(), types.ResourceUpdatedNotification):
                pass
        (content,) = (await client.read_resource("capdex://note")).contents
    assert found.params.uri == "capdex://note"
    assert json.loads(content.text)["semver"] == "1.1.0"
