"""An agent of LangChain, with its adapters for MCP."""

from __future__ import annotations

import asyncio
from typing import Any

from given import CALLS, MODEL, WISH, given
from langchain.agents import create_agent
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from mcp.types import ElicitResult


async def agree(mcp_context: Any, params: Any, context: Any) -> ElicitResult:
    """A person's yes."""
    return ElicitResult(action="accept", content={})


async def main() -> None:
    """Run it, over one session: by default each call has a session and a process of its own."""
    use = given()
    if use.url:
        server: Any = {"transport": "streamable_http", "url": use.url}
    else:
        stdio = {"command": use.command, "args": list(use.args), "env": use.env}
        server = {"transport": "stdio", **stdio}
    callbacks = Callbacks(on_elicitation=agree if use.person else None)
    client = MultiServerMCPClient({"server": server}, callbacks=callbacks)
    async with client.session("server") as session:
        tools = await load_mcp_tools(session)
        model = ChatOpenAI(model=MODEL, base_url=use.model, api_key="key")
        agent = create_agent(model, tools)
        wish = {"messages": [{"role": "user", "content": WISH}]}
        done = await agent.ainvoke(wish, {"recursion_limit": 3 * CALLS})
    print(done["messages"][-1].content)  # noqa: T201


asyncio.run(main())
