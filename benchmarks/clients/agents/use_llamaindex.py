"""An agent of LlamaIndex, whose client starts a server on stdio for each call."""

from __future__ import annotations

import asyncio

from given import CALLS, PATIENCE_S, WISH, given
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def main() -> None:
    """Run it."""
    use = given()
    patience = int(PATIENCE_S)
    client = BasicMCPClient(use.url or use.command, list(use.args), use.env, timeout=patience)
    tools = await McpToolSpec(client=client).to_tool_list_async()
    model = OpenAILike(
        model="scripted",
        api_base=use.model,
        api_key="key",
        is_chat_model=True,
        is_function_calling_model=True,
    )
    agent = FunctionAgent(tools=tools, llm=model, streaming=False)
    print(await agent.run(WISH, max_iterations=CALLS))


asyncio.run(main())
