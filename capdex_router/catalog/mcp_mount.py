"""A foreign MCP server as a source: its tools beside those of packages, by the same pipeline.

The user names the server, so its command is trusted to start; its texts and results are not.
"""

from __future__ import annotations

import asyncio
import hashlib
import shlex
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
import orjson
from mcp.client.stdio import StdioServerParameters

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.json import Json
from capdex.version import VERSION
from capdex_router.bindings.mcp_message import Replies
from capdex_router.bindings.mcp_session import McpSession
from capdex_router.bindings.mcp_transport import McpProgram
from capdex_router.catalog.catalog import Fixed
from capdex_router.model.capability import NO_INPUT, Capability, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef
from capdex_router.model.requests import ProcessRequest, Request, ServiceRequest
from capdex_router.policy.consent import clean
from capdex_router.policy.proposal import Access, Proposal, accessed
from capdex_router.policy.quoting import escaped, quoted

LIST_S: Final = 40.0  # to start, and to list its tools
MAX_URI_CHARS: Final = 2_048
_SILENT: Final = "look at what the server prints: its stdout is for answers of MCP alone"


@asynccontextmanager
async def mounted(name: str, server: StdioServerParameters) -> AsyncIterator[Mounted]:
    """Connect to an MCP server and give its tools as `mcp:<name>#<tool>` for as long as it runs.

    Raises Unavailable NODE_UNAVAILABLE if it does not start, or list its tools.
    """
    program = McpProgram(server)
    session = McpSession(program.connected(), program.fault)
    try:
        try:
            async with asyncio.timeout(LIST_S):
                tools = await session.tools()
        except (CapdexError, TimeoutError) as error:
            why = error.line if isinstance(error, CapdexError) else f"no list in {LIST_S:g} s"
            why += f"; it sent {program.replies.stray}" if program.replies.stray else ""
            raise Unavailable(
                f"the MCP server {name} does not answer", Code.NODE_UNAVAILABLE, why=why
            ) from None
        yield Mounted(name, session, _capabilities(name, session, program.replies, tools.values()))
    finally:
        await session.close()


class Mounted(Fixed):
    """The tools of a server, and its resources, which are asked for whenever they are wanted."""

    def __init__(self, name: str, session: McpSession, tools: Iterable[Capability]) -> None:
        super().__init__(tools, domain="mcp")
        self.name, self._session = name, session

    async def resources(self) -> list[types.Resource]:
        """Return what the server lists; nothing if it has none, or does not answer in time."""
        with suppress(CapdexError, TimeoutError):
            async with asyncio.timeout(LIST_S):
                found = await self._session.resources()
                return [x for x in found if clean(x.uri, MAX_URI_CHARS) == x.uri]
        return []

    async def read(self, uri: str) -> list[Any]:
        """Return the contents of a listed resource; raises as `McpSession.read`, and TIMEOUT.

        Another URI may be a model's own and carry words to the server: it is NOT_FOUND.
        """
        if uri not in {x.uri for x in await self.resources()}:
            raise InvalidInput(f"{self.name} has no resource {uri[:128]!r}", Code.NOT_FOUND)
        try:
            async with asyncio.timeout(LIST_S):
                return await self._session.read(uri)
        except TimeoutError:
            raise Unavailable(f"{self.name} did not answer in time", Code.TIMEOUT) from None


def mount_proposal(name: str, server: StdioServerParameters, source: Fixed) -> Proposal:
    """Return what mounting a server does: the program that runs, and the tools that it offers."""
    tools = [source.load(listed.ref) for listed in source.listed()]
    digests = "".join(sorted(tool.owner.digest for tool in tools))
    program = ProcessRequest((server.command, *server.args))
    return Proposal(
        "mount",
        f"Mount the MCP server {escaped(name)}?",
        f"mcp:{name}",
        tools[0].ref.version if tools else "0.0.0",
        hashlib.sha256(digests.encode()).hexdigest(),
        ("capdex", "router", "--mcp", f"{name}={shlex.join(program.argv)}"),
        accesses=(accessed(program), *(Access("", (quoted(tool.name),)) for tool in tools)),
    )


@dataclass(frozen=True, slots=True)
class MountedTool:
    """A tool of a mounted server."""

    server: str
    tool: str
    session: McpSession
    replies: Replies

    def requests(self, arguments: Json) -> Sequence[Request]:
        """Return the one call that a run makes."""
        return [ServiceRequest(self.server, self.tool)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Call the tool; return its output and raise as `McpSession.call` does."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self.session.call(self.tool, arguments)
        except TimeoutError:
            stray = self.replies.stray
            raise Unavailable(
                f"the MCP server {self.server} did not answer within {timeout_s:.3g} s",
                why=f"it sent {stray}" if stray else "",
                fix=_SILENT if stray else "try again",
            ) from None


def _capabilities(
    name: str, session: Any, replies: Replies, tools: Iterable[types.Tool]
) -> Iterator[Capability]:
    info = session.server_info
    version = info.version if info is not None else ""
    version = version if VERSION.fullmatch(version) else "0.0.0"
    for tool in tools:
        hints = tool.annotations or types.ToolAnnotations()
        # A changed definition has another digest, and what was granted for it is gone.
        definition = orjson.dumps(
            [
                tool.name,
                tool.description,
                tool.input_schema,
                tool.output_schema,
                hints.model_dump(),
            ],
            option=orjson.OPT_SORT_KEYS,
        )
        reads = hints.read_only_hint is True
        yield Capability(
            CapabilityRef(f"mcp:{name}#{tool.name}", version),
            "tool",
            tool.name,
            tool.description or "",
            tool.input_schema or NO_INPUT,
            Owner("mcp", f"mcp:{name}", hashlib.sha256(definition).hexdigest()),
            output_schema=tool.output_schema,
            annotations=ToolHints(
                read_only=reads,
                destructive=not reads and hints.destructive_hint is not False,
                idempotent=hints.idempotent_hint is True,
            ),
            executor=MountedTool(f"mcp:{name}", tool.name, session, replies),
        )
