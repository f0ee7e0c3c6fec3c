"""An agent of pydantic-ai."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from given import CALLS, PATIENCE_S, WISH, given
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def agree(message: str, response_type: Any, params: Any, context: Any) -> Any:
    """A person's yes."""
    return ElicitResult(action="accept", content={})


async def main() -> None:
    """Run it."""
    use = given()
    server = use.url or StdioTransport(use.command, list(use.args), env=use.env)
    tools = MCPToolset(
        server,
        elicitation_handler=agree if use.person else None,
        init_timeout=PATIENCE_S,
        read_timeout=PATIENCE_S,
        max_retries=CALLS,
    )
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(base_url=use.model, api_key="key"))
    agent = Agent(model, toolsets=[tools])
    done = await agent.run(WISH, usage_limits=UsageLimits(request_limit=CALLS))
    print(done.output)  # noqa: T201


asyncio.run(main())
