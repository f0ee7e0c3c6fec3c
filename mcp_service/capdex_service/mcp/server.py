"""The MCP server over a reader, with errors as P16 specifies.

It uses the SDK's low-level server, because error texts, compact JSON and the strict check of
arguments are the product's own (docs/adr/0004).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar

import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from typing_extensions import override

from capdex import __version__
from capdex_service.mcp import completion, faults, prompts, resources
from capdex_service.mcp.calls import call
from capdex_service.mcp.resources import FOREVER_MS
from capdex_service.mcp.subscriptions.feed import Feed
from capdex_service.mcp.subscriptions.methods import Subscriptions
from capdex_service.mcp.tools import CAPABILITIES, PROFILES, TOOLS, Profile
from capdex_service.queries.reader import Reader

Context: TypeAlias = ServerRequestContext[Any]

T = TypeVar("T")

DEFAULT: Final = PROFILES["default"]
_FIXED: Final = types.ServerCapabilities.model_validate(CAPABILITIES)
_NO_PROMPTS: Final = types.ListPromptsResult(prompts=[], ttl_ms=FOREVER_MS, cache_scope="public")


class RegistryServer(Server[Any]):
    """The SDK's server, with capabilities true in both protocols: the lists never change."""

    @override
    def get_capabilities(self, *given: Any, **named: Any) -> types.ServerCapabilities:
        """Return the capabilities in one revision of the protocol."""
        fixed = {x: getattr(_FIXED, x) for x in _FIXED.model_fields_set}
        return super().get_capabilities(*given, **named).model_copy(update=fixed)


def build_server(
    reader: Reader, profile: Profile = DEFAULT, subscriptions: Subscriptions | None = None
) -> Server[Any]:
    """Return the MCP server over `reader`, with the tools of a profile.

    Without `subscriptions` it is for one connection.
    """
    names, said = profile.names, profile.introduction
    listed = types.ListToolsResult.model_validate({"tools": profile.tools})
    followed = subscriptions or Subscriptions(Feed(reader))

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in names:
            here = ", ".join(tool["name"] for tool in profile.tools)
            words = f"no tool {params.name[:64]!r} here, but {here}"
            raise MCPError(types.INVALID_PARAMS, words)
        result = await call(reader, params.name, params.arguments or {})
        text = types.TextContent(type="text", text=orjson.loads(result.text_json))
        return types.CallToolResult(
            content=[text],
            structured_content=orjson.loads(result.body),
            is_error=result.failed,
        )

    async def read_resource(
        ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        work = resources.read_resource(reader, params.uri)
        return await faults.answer(work, ctx.method, ctx.protocol_version, params.uri)

    async def get_prompt(
        ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        work = prompts.get_prompt(reader, params.name, params.arguments or {})
        return await faults.answer(work, ctx.method, ctx.protocol_version)

    async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        work = completion.complete(reader, params)
        return await faults.answer(work, ctx.method, ctx.protocol_version)

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await followed.close()

    return RegistryServer(
        said.name,
        version=__version__,
        title=said.title,
        instructions=said.instructions,
        get_tool_input_schema=lambda name: TOOLS[name]["inputSchema"] if name in names else None,
        on_list_tools=_always(listed),
        on_call_tool=call_tool,
        on_list_resources=_always(resources.RESOURCES),
        on_list_resource_templates=_always(resources.TEMPLATES),
        on_read_resource=read_resource,
        on_list_prompts=_always(_NO_PROMPTS),
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscribe_resource=followed.subscribe,
        on_unsubscribe_resource=followed.unsubscribe,
        on_subscriptions_listen=followed.listen,
        lifespan=lifespan,
    )


def _always(result: T) -> Callable[[Context, types.PaginatedRequestParams | None], Awaitable[T]]:
    """Return the method of a list that never changes."""

    async def answer(_: Context, __: types.PaginatedRequestParams | None) -> T:
        return result

    return answer
