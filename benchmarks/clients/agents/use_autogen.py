"""An agent of AutoGen."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, StreamableHttpServerParams
from given import CALLS, MODEL, PATIENCE_S, WISH, given


async def main() -> None:
    """Run it."""
    use = given()
    if use.url:
        server: Any = StreamableHttpServerParams(url=use.url)
    else:
        server = StdioServerParams(
            command=use.command,
            args=list(use.args),
            env=use.env,
            read_timeout_seconds=PATIENCE_S,
        )
    model = OpenAIChatCompletionClient(model=MODEL, base_url=use.model, api_key="key")
    async with McpWorkbench(server) as tools:
        agent = AssistantAgent("agent", model, workbench=tools, max_tool_iterations=CALLS)
        done = await agent.run(task=WISH)
    print(done.messages[-1].content)


asyncio.run(main())
