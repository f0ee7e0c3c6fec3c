"""The client of FastMCP in a loop by hand: it hands the texts of an answer to the model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from given import MODEL, PATIENCE_S, WISH, given
from openai import AsyncOpenAI


async def agree(message: str, response_type: Any, params: Any, context: Any) -> Any:
    """A person's yes."""
    return ElicitResult(action="accept", content={})


async def main() -> None:
    """Run it."""
    use = given()
    server = use.url or StdioTransport(use.command, list(use.args), env=use.env)
    handler = agree if use.person else None
    model = AsyncOpenAI(base_url=use.model, api_key="key")
    messages: list[Any] = [{"role": "user", "content": WISH}]
    async with Client(server, elicitation_handler=handler, timeout=PATIENCE_S) as client:
        tools: list[Any] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.model_dump(by_alias=True)["inputSchema"],
                },
            }
            for tool in await client.list_tools()
        ]
        while True:
            said = await model.chat.completions.create(model=MODEL, messages=messages, tools=tools)
            message = said.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                wanted = json.loads(call.function.arguments)
                done = await client.call_tool(call.function.name, wanted, raise_on_error=False)
                text = "".join(block.text for block in done.content)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    print(message.content)  # noqa: T201


asyncio.run(main())
