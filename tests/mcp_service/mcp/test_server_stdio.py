"""MCP over stdin and stdout, as a host starts it: one process (test_stdio.py starts it by exec)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import mcp
import mcp_types as types
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.subscriptions import ResourceUpdated

from tests.e2e.forks import Warm


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_starts_it_and_asks(
    database: str, tmp_path: Path, warm: Warm, mode: str
) -> None:
    command = StdioServerParameters(
        command=warm.capdex, args=["mcp", "--db", database], cwd=tmp_path
    )
    with (tmp_path / "stderr").open("w") as errors:
        async with mcp.Client(stdio_client(command, errlog=errors), mode=mode) as client:
            assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
            assert len((await client.list_tools()).tools) == 7
            newest = await client.call_tool(
                "resolve_capability", {"cap_uri": "did:nuwa:cap:note@^1"}
            )
            large = await client.call_tool(
                "search_capabilities", {"query_string": "large", "limit": 50}
            )
            wrong = await client.call_tool("resolve_capability", {"cap_uri": "note"})
    assert newest.structured_content is not None
    assert newest.structured_content["semver"] == "1.1.0"
    assert large.structured_content is not None
    assert large.structured_content["total"] == 8
    assert wrong.structured_content is not None
    assert (wrong.is_error, wrong.structured_content["code"]) == (True, "INVALID_INPUT")
    assert (tmp_path / "stderr").read_text() == ""


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_reads_and_follows_packages(
    growing: Any, tmp_path: Path, warm: Warm, mode: str
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.put_nowait(message.params.uri)

    growing.publish("note", prompt="Write {{what}}.")
    growing.follow()
    uri = "capdex://note/latest/package"
    arguments = ["--db", growing.url, "--blocks", str(growing.blocks.path)]
    command = StdioServerParameters(command=warm.capdex, args=["mcp", *arguments], cwd=tmp_path)
    async with AsyncExitStack() as stack:
        errors = stack.enter_context((tmp_path / "stderr").open("w"))
        transport = stdio_client(command, errlog=errors)
        client = await stack.enter_async_context(
            mcp.Client(transport, mode=mode, message_handler=hear)
        )
        prompt = await client.get_prompt("note", {"what": "a list"})
        content = prompt.messages[0].content
        assert isinstance(content, types.TextContent)
        assert content.text.endswith("\n\nWrite a list.")
        if mode == "legacy":
            await client.subscribe_resource(uri)
            next_uri = heard.get
        else:
            changes = await stack.enter_async_context(client.listen(resource_subscriptions=[uri]))

            async def next_uri() -> str:
                event = await anext(changes)
                assert isinstance(event, ResourceUpdated)
                return event.uri

        growing.publish("note", "1.1.0")
        growing.follow()
        async with asyncio.timeout(60):
            assert await next_uri() == uri
        (resource,) = (await client.read_resource(uri)).contents
        assert isinstance(resource, types.TextResourceContents)
        assert "did:nuwa:cap:note@1.1.0" in resource.text
    assert (tmp_path / "stderr").read_text() == ""


def test_a_wrong_database_is_told_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "capdex", "mcp", "--db", f"sqlite:///{tmp_path / 'none.db'}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "none.db cannot be opened" in done.stderr
    assert not (tmp_path / "none.db").exists()
