"""A client on the Python SDK 2.x: python2.py ERA URL, or ERA -- COMMAND… for stdio.

ERA is `legacy` (the handshake) or `auto` (2026-07-28 where the server has it).
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from contextlib import AsyncExitStack
from typing import Any

import mcp
import mcp_types as types
from lines import answer_lines
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.subscriptions import ResourceUpdated, Subscription


async def main(era: str, target: str, *command: str) -> None:
    """Connect, then answer lines until stdin closes."""
    updates: asyncio.Queue[str] = asyncio.Queue()

    async def noted(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            await updates.put(message.params.uri)
        elif isinstance(message, types.ResourceListChangedNotification):
            await updates.put("list")

    async def follow(subscription: Subscription) -> None:
        async for event in subscription:
            await updates.put(event.uri if isinstance(event, ResourceUpdated) else "list")

    stdio = StdioServerParameters(command=command[0], args=list(command[1:])) if command else None
    async with AsyncExitStack() as parts:
        handler = noted if era == "legacy" else None
        client = await parts.enter_async_context(
            mcp.Client(stdio_client(stdio) if stdio else target, mode=era, message_handler=handler)
        )
        following: list[asyncio.Task[None]] = []

        async def version() -> str:
            return client.protocol_version

        async def tools() -> Any:
            return (await client.list_tools()).tools

        async def call(tool: str, given: dict[str, Any]) -> Any:
            return await client.call_tool(tool, given)

        async def read(uri: str) -> Any:
            return (await client.read_resource(uri)).contents

        async def subscribe(uri: str | None = None) -> None:
            if era == "legacy":
                with warnings.catch_warnings(action="ignore"):  # gone in 2026-07-28
                    await client.subscribe_resource(str(uri))
                return
            opened = client.listen(
                resource_subscriptions=[uri] if uri else [], resources_list_changed=uri is None
            )
            subscription = await parts.enter_async_context(opened)
            following.append(asyncio.create_task(follow(subscription)))

        await answer_lines(
            {
                "version": version,
                "tools": tools,
                "call": call,
                "read": read,
                "subscribe": subscribe,
                "update": updates.get,
            }
        )
        for task in following:
            task.cancel()


asyncio.run(main(*sys.argv[1:]))
