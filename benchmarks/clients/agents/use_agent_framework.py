"""An agent of the Microsoft Agent Framework."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Agent, MCPStdioTool, MCPStreamableHTTPTool
from agent_framework.openai import OpenAIChatCompletionClient
from given import CALLS, MODEL, PATIENCE_S, WISH, given


async def main() -> None:
    """Run it."""
    use = given()
    patience = int(PATIENCE_S)
    if use.url:
        tool: Any = MCPStreamableHTTPTool("capdex", use.url, request_timeout=patience)
    else:
        tool = MCPStdioTool(
            "capdex", use.command, args=list(use.args), env=use.env, request_timeout=patience
        )
    model = OpenAIChatCompletionClient(
        MODEL,
        base_url=use.model,
        api_key="key",
        function_invocation_configuration={"max_iterations": CALLS},
    )
    async with tool:
        print(await Agent(model, tools=tool).run(WISH))


asyncio.run(main())
