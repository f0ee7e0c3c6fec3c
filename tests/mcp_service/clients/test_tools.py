"""Every tool, listed and called by each of the official clients, over HTTP and stdio."""

from __future__ import annotations

from typing import Any

import pytest

from .calls import CALLS
from .conftest import MODERN

pytestmark = pytest.mark.real


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_client_lists_and_calls_every_tool(
    client: str, transport: str, start: Any, node_url: str, stdio: tuple[str, ...]
) -> None:
    server = (f"{node_url}/mcp",) if transport == "http" else ("--", *stdio)
    async with start(client, *server) as ask:
        if (client, transport) != ("typescript-1", "stdio"):  # its transport does not know
            assert await ask("version") == ("2026-07-28" if client in MODERN else "2025-11-25")
        assert {tool["name"] for tool in await ask("tools")} == set(CALLS)
        for tool, (given, word) in CALLS.items():
            answer = await ask("call", tool=tool, given=given)
            assert not answer.get("isError")
            assert word in answer["content"][0]["text"]
