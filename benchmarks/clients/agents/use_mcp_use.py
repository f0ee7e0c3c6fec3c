"""An agent of mcp-use, which stands on LangChain."""

from __future__ import annotations

import asyncio
from typing import Any

from given import CALLS, MODEL, WISH, given
from langchain_openai import ChatOpenAI
from mcp_use import MCPAgent, MCPClient


async def main() -> None:
    """Run it."""
    use = given()
    if use.url:
        server: dict[str, Any] = {"url": use.url}
    else:
        server = {"command": use.command, "args": list(use.args), "env": use.env}
    client = MCPClient({"mcpServers": {"capdex": server}})
    model = ChatOpenAI(model=MODEL, base_url=use.model, api_key="key")
    agent = MCPAgent(llm=model, client=client, max_steps=CALLS)
    print(await agent.run(WISH))
    await client.close_all_sessions()


asyncio.run(main())
