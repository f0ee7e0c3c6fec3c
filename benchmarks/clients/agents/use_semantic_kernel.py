"""An agent of Semantic Kernel."""

from __future__ import annotations

import asyncio
from typing import Any

from given import CALLS, MODEL, PATIENCE_S, WISH, given
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin


async def main() -> None:
    """Run it."""
    use = given()
    patience = int(PATIENCE_S)
    if use.url:
        plugin: Any = MCPStreamableHttpPlugin(name="capdex", url=use.url, request_timeout=patience)
    else:
        plugin = MCPStdioPlugin(
            name="capdex",
            command=use.command,
            args=list(use.args),
            env=use.env,
            request_timeout=patience,
        )
    model = OpenAIChatCompletion(MODEL, async_client=AsyncOpenAI(base_url=use.model, api_key="key"))
    choice = FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=CALLS)
    async with plugin:
        agent = ChatCompletionAgent(
            service=model, name="agent", plugins=[plugin], function_choice_behavior=choice
        )
        print(await agent.get_response(messages=WISH))


asyncio.run(main())
