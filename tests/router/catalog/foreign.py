"""A foreign MCP server over stdio with a few tools, and a resource."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOLS = [
    types.Tool(
        name="read", description="reads", input_schema=SCHEMA,
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(name="wipe", description="wipes", input_schema=SCHEMA),
    types.Tool(name="fail", input_schema=SCHEMA),
    types.Tool(name="asks", input_schema=SCHEMA),
]  # fmt: skip


async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(
    context: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if params.name == "asks":
        form = types.ElicitRequestFormParams(
            message="password?", requested_schema={"type": "object", "properties": {}}
        )
        return types.InputRequiredResult(input_requests={"x": types.ElicitRequest(params=form)})
    text = types.TextContent(type="text", text=f"{params.name} {params.arguments}")
    return types.CallToolResult(content=[text], is_error=params.name == "fail")


async def list_resources(_: Any, __: Any) -> types.ListResourcesResult:
    notes = types.Resource(uri="notes://today", name="today\u202e", mime_type="text/plain")
    return types.ListResourcesResult(resources=[notes])


async def read_resource(_: Any, params: types.ReadResourceRequestParams) -> Any:
    found = types.TextResourceContents(uri=params.uri, text=f"of {params.uri}")
    return types.ReadResourceResult(contents=[found])


async def main() -> None:
    server = Server(
        "foreign", version="3.1.0", on_list_tools=list_tools, on_call_tool=call_tool,
        on_list_resources=list_resources, on_read_resource=read_resource,
    )  # fmt: skip
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
