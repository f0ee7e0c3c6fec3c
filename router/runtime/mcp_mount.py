"""A foreign MCP server as a source: its tools beside those of packages, by the same pipeline.

The user names the server, so its command is trusted to start; its texts and results are not. Its
own requests (elicitation, sampling, roots) are refused: a person is asked by the router alone.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
import orjson
import structlog
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters

from capdex.errors import (
    CapdexError,
    Code,
    ExecutionFailed,
    InvalidInput,
    Refused,
    Unavailable,
    untrusted_text,
)
from capdex.version import VERSION
from router.model.capability import NO_INPUT, Annotations, Capability, Owner
from router.model.refs import CapabilityRef, Json
from router.model.requests import Request, ServiceRequest
from router.policy.consent import clean
from router.runtime.catalog import Fixed
from router.runtime.invoke import Limits

MAX_TOOLS: Final = 1_000
MAX_PAGES: Final = 20
CONNECT_S: Final = 30.0
LIMITS: Final = Limits()

log = structlog.get_logger(part="router")


@asynccontextmanager
async def mounted(name: str, server: StdioServerParameters | Any) -> AsyncIterator[Mounted]:
    """Connect to an MCP server and give its tools as `mcp:<name>#<tool>` for as long as it runs.

    Raises Unavailable NODE_UNAVAILABLE if it does not start or answer, InvalidInput for an endless
    list of tools.
    """
    try:
        client = Client(server)
        async with asyncio.timeout(CONNECT_S):
            await client.__aenter__()
    except (OSError, MCPError, TimeoutError) as error:
        raise Unavailable(
            f"the MCP server {name} does not answer", Code.NODE_UNAVAILABLE, why=str(error)[:200]
        ) from None
    try:
        tools = await _all(client.list_tools, "tools")
        yield Mounted(name, client, _capabilities(name, client, tools))
    finally:
        await client.__aexit__(None, None, None)


@dataclass(frozen=True, slots=True)
class MountedTool:
    """A tool of a mounted server."""

    server: str
    tool: str
    client: Client

    def requests(self, arguments: Json) -> Sequence[Request]:
        """Return the one call that a run makes."""
        return [ServiceRequest(self.server, self.tool)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Call the tool; return its structured content, else its texts.

        Raises ExecutionFailed if it reports an error, Refused if it asks for something.
        """
        try:
            result = await self.client.session.call_tool(
                self.tool,
                arguments,
                read_timeout_seconds=timeout_s,
                allow_input_required=True,
            )
        except MCPError as error:
            raise _fault(self.server, error) from None
        if isinstance(result, types.InputRequiredResult):
            raise Refused(
                f"the MCP server {self.server} asks for input", Code.PERMISSION_DENIED,
                why="a person is asked by the router alone",
            )  # fmt: skip
        texts = [x.text for x in result.content if isinstance(x, types.TextContent)]
        if result.is_error:
            raise ExecutionFailed("the tool failed", why=untrusted_text("\n".join(texts)))
        if isinstance(result.structured_content, dict):
            return dict(result.structured_content)
        if len(texts) == len(result.content):
            return {"text": "\n".join(texts)}
        return {
            "content": [
                x.model_dump(mode="json", by_alias=True, exclude_none=True) for x in result.content
            ]
        }


async def _all(pages: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    found: list[Any] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await pages(cursor=cursor)
        found += getattr(page, what)
        cursor = page.next_cursor
        if cursor is None and len(found) <= MAX_TOOLS:
            return found
    raise InvalidInput(f"the server lists more than {MAX_TOOLS} {what} or {MAX_PAGES} pages")


def _capabilities(name: str, client: Client, tools: list[types.Tool]) -> Iterator[Capability]:
    info = client.server_info
    version = info.version if info is not None else ""
    version = version if VERSION.fullmatch(version) else "0.0.0"
    for tool in tools:
        # A changed definition has another digest, and what was granted for it is gone.
        definition = orjson.dumps(
            [tool.name, tool.description, tool.input_schema], option=orjson.OPT_SORT_KEYS
        )
        hints = tool.annotations
        reads = hints is not None and hints.read_only_hint is True
        yield Capability(
            CapabilityRef(f"mcp:{name}#{tool.name}", version),
            "tool",
            tool.name,
            tool.description or "",
            tool.input_schema or NO_INPUT,
            Owner("mcp", f"mcp:{name}", hashlib.sha256(definition).hexdigest()),
            output_schema=tool.output_schema,
            annotations=Annotations(
                read_only=reads,
                destructive=not reads and (hints is None or hints.destructive_hint is not False),
                idempotent=hints is not None and hints.idempotent_hint is True,
            ),
            executor=MountedTool(f"mcp:{name}", tool.name, client),
        )


def _fault(name: str, error: MCPError) -> Exception:
    why = untrusted_text(error.error.message)
    if error.error.code == types.INVALID_PARAMS:
        return InvalidInput(f"the MCP server {name} refuses the input", why=why)
    if error.error.code == types.REQUEST_TIMEOUT:
        return Unavailable(f"the MCP server {name} did not answer in time", why=why)
    return ExecutionFailed(f"the MCP server {name} reports an error", why=why)


class Mounted(Fixed):
    """The tools of a server; its resources are asked for whenever they are wanted."""

    def __init__(self, name: str, client: Client, tools: Iterable[Capability]) -> None:
        super().__init__(tools, domain="mcp")
        self.name, self._client = name, client

    async def resources(self) -> list[types.Resource]:
        """Return what the server lists, its texts cleaned; nothing if it does not answer."""
        if self._client.server_capabilities.resources is None:
            return []
        try:
            async with asyncio.timeout(CONNECT_S):
                found = await _all(self._client.list_resources, "resources")
        except (CapdexError, MCPError, TimeoutError) as error:
            log.warning("resources left out", server=self.name, why=untrusted_text(str(error)))
            return []
        return [
            types.Resource(
                uri=x.uri, name=clean(x.name), description=clean(x.description or "") or None,
                mime_type=clean(x.mime_type or "") or None,
            )
            for x in found if clean(x.uri, 2_000) == x.uri
        ]  # fmt: skip

    async def read(self, uri: str) -> types.ReadResourceResult:
        """Return what a listed resource holds, within the bounds of a call.

        Another URI may be a model's own and carry words to the server: it is NOT_FOUND.
        """
        if uri not in {x.uri for x in await self.resources()}:
            raise InvalidInput(f"{self.name} has no resource {uri[:128]!r}", Code.NOT_FOUND)
        try:
            async with asyncio.timeout(LIMITS.deadline_s):
                found = await self._client.session.read_resource(uri, allow_input_required=True)
        except TimeoutError:
            raise Unavailable(f"{self.name} did not answer in time", Code.TIMEOUT) from None
        except MCPError as error:
            raise _fault(self.name, error) from None
        if isinstance(found, types.InputRequiredResult):
            raise Refused(f"{self.name} asks for input", Code.PERMISSION_DENIED)
        if len(found.model_dump_json()) > LIMITS.output_bytes:
            raise ExecutionFailed("the resource is too large", Code.OUTPUT_INVALID)
        return found
