"""An agent of the OpenAI Agents SDK, which asks no person."""

from __future__ import annotations

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from given import CALLS, MODEL, PATIENCE_S, WISH, given
from openai import AsyncOpenAI


async def main() -> None:
    """Run it."""
    use = given()
    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel(MODEL, AsyncOpenAI(base_url=use.model, api_key="key"))
    options = {"client_session_timeout_seconds": PATIENCE_S}
    if use.url:
        server = MCPServerStreamableHttp({"url": use.url}, **options)
    else:
        start = {"command": use.command, "args": list(use.args), "env": use.env}
        server = MCPServerStdio(start, **options)
    async with server:
        agent = Agent(name="agent", model=model, mcp_servers=[server])
        done = await Runner.run(agent, WISH, max_turns=CALLS)
    print(done.final_output)  # noqa: T201


asyncio.run(main())
