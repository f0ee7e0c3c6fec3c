"""A client on the Python SDK 1.x: python1.py URL, or -- COMMAND… for stdio."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Any

from lines import answer_lines
from mcp import ClientSession, types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main(target: str, *command: str) -> None:
    """Connect, then answer lines until stdin closes."""
    updates: asyncio.Queue[str] = asyncio.Queue()

    async def noted(message: Any) -> None:
        if isinstance(message, types.ServerNotification):
            if isinstance(message.root, types.ResourceUpdatedNotification):
                await updates.put(str(message.root.params.uri))
            elif isinstance(message.root, types.ResourceListChangedNotification):
                await updates.put("list")

    async with AsyncExitStack() as parts:
        if target == "--":
            stdio = StdioServerParameters(command=command[0], args=list(command[1:]))
            read, write = await parts.enter_async_context(stdio_client(stdio))
        else:
            opened = await parts.enter_async_context(streamable_http_client(target))
            read, write = opened[:2]
        session = await parts.enter_async_context(ClientSession(read, write, message_handler=noted))
        begun: Any = await session.initialize()

        async def version() -> str:
            return str(begun.protocolVersion)

        async def tools() -> Any:
            return (await session.list_tools()).tools

        async def call(tool: str, given: dict[str, Any]) -> Any:
            return await session.call_tool(tool, given)

        async def read_one(uri: str) -> Any:
            return (await session.read_resource(uri)).contents

        async def subscribe(uri: str) -> None:
            await session.subscribe_resource(uri)

        await answer_lines(
            {
                "version": version,
                "tools": tools,
                "call": call,
                "read": read_one,
                "subscribe": subscribe,
                "update": updates.get,
            }
        )


asyncio.run(main(*sys.argv[1:]))
