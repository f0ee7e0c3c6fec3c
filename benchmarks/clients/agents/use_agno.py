"""An agent of Agno."""

from __future__ import annotations

import asyncio
from typing import Any

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.mcp import MCPTools
from given import MODEL, PATIENCE_S, WISH, given
from mcp import StdioServerParameters


async def main() -> None:
    """Run it."""
    use = given()
    if use.url:
        server: dict[str, Any] = {"url": use.url, "transport": "streamable-http"}
    else:
        stdio = StdioServerParameters(command=use.command, args=list(use.args), env=use.env)
        server = {"server_params": stdio, "transport": "stdio"}
    model = OpenAIChat(id=MODEL, base_url=use.model, api_key="key")
    async with MCPTools(timeout_seconds=int(PATIENCE_S), **server) as tools:
        print((await Agent(model=model, tools=[tools]).arun(WISH)).content)


asyncio.run(main())
