"""An agent with one tool server, the router, and any OpenAI-compatible model.

    OPENAI_API_KEY=… python examples/agent.py https://api.example.com/v1 MODEL "Plan my day."

The router's five tools are all that the model sees, however many capabilities there are.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import aiohttp
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters

MAX_STEPS = 10
ROUTER = StdioServerParameters(
    command=os.environ.get("CAPDEX", "capdex"), args=["router"], env=dict(os.environ)
)


async def consent(_context: Any, params: Any) -> types.ElicitResult:
    """Ask the person at the terminal; only a typed yes is one."""
    print(params.message, "Allow this? Type yes:", sep="\n", file=sys.stderr)
    answer = await asyncio.to_thread(sys.stdin.readline)  # none at the end of the input
    return types.ElicitResult(action="accept" if answer.strip() == "yes" else "decline")


async def run(url: str, model: str, message: str) -> str:
    """Return the model's answer to a message, after the tools that it called."""
    key = os.environ.get("OPENAI_API_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        Client(ROUTER, elicitation_callback=consent) as router,
        aiohttp.ClientSession(headers=headers) as http,
    ):
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                },
            }
            for tool in (await router.list_tools()).tools
        ]
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": router.instructions or ""},
            {"role": "user", "content": message},
        ]
        for _ in range(MAX_STEPS):
            asked = {"model": model, "messages": messages, "tools": tools}
            async with http.post(f"{url}/chat/completions", json=asked) as reply:
                reply.raise_for_status()
                said = (await reply.json())["choices"][0]["message"]
            messages.append(said)
            if not said.get("tool_calls"):
                return str(said.get("content") or "")
            for call in said["tool_calls"]:
                function = call["function"]
                result = await router.call_tool(
                    function["name"], json.loads(function["arguments"] or "{}")
                )
                text = "".join(x.text for x in result.content if isinstance(x, types.TextContent))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    return "The model did not come to an end."


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(asyncio.run(run(*sys.argv[1:])))
