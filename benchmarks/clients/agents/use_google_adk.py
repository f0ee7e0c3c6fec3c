"""An agent of Google's Agent Development Kit."""

from __future__ import annotations

import asyncio
from typing import Any

from given import MODEL, PATIENCE_S, WISH, given
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset
from google.adk.tools.mcp_tool.mcp_session_manager import (
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.genai import types
from mcp import StdioServerParameters


async def main() -> None:
    """Run it."""
    use = given()
    if use.url:
        server: Any = StreamableHTTPConnectionParams(url=use.url, timeout=PATIENCE_S)
    else:
        stdio = StdioServerParameters(command=use.command, args=list(use.args), env=use.env)
        server = StdioConnectionParams(server_params=stdio, timeout=PATIENCE_S)
    tools = McpToolset(connection_params=server)
    model = LiteLlm(model=f"openai/{MODEL}", api_base=use.model, api_key="key")
    runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[tools]), app_name="app")
    await runner.session_service.create_session(app_name="app", user_id="me", session_id="one")
    wish = types.Content(role="user", parts=[types.Part(text=WISH)])
    async for event in runner.run_async(user_id="me", session_id="one", new_message=wish):
        for part in (event.content and event.content.parts) or []:
            if part.text:
                print(part.text)
    await tools.close()


asyncio.run(main())
