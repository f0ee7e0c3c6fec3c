"""An MCP server over stdio whose tool `show` answers with the content blocks that it is given."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SHOW = types.Tool(name="show", input_schema={"type": "object"})


async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[SHOW])


async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult.model_validate({"content": (params.arguments or {})["blocks"]})


async def main() -> None:
    server = Server("mirror", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
