"""A foreign MCP server as a source: its tools beside those of packages, by the same pipeline.

The user names the server, so its command is trusted to start; its texts and results are not.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import mcp_types as types
import structlog
from mcp.client.stdio import StdioServerParameters

from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.json import Json
from capdex.version import VERSION
from capdex_router.bindings.mcp_session import McpSession
from capdex_router.bindings.mcp_transport import McpProgram
from capdex_router.catalog.catalog import Fixed
from capdex_router.model.capability import NO_INPUT, Capability, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef
from capdex_router.model.requests import MountedRequest, ProcessRequest, Request
from capdex_router.policy.consent import clean
from capdex_router.policy.proposal import Access, Proposal, accessed, sorted_json
from capdex_router.policy.quoting import escaped, quoted

log = structlog.get_logger(part="router")

LIST_S: Final = 40.0  # to start, and to list its tools
RESOURCES_S: Final = 10.0  # to list or read them: a host waits for all servers
START_S: Final = 10.0  # that the start of the router waits for its servers: hosts give up later
AWAKE_S: Final = 5.0  # that a search waits for a server that is started
RETRY_S: Final = 30.0  # between two starts of a server that ends
MAX_RETRY_S: Final = 960.0
MAX_URI_CHARS: Final = 2_048
_SILENT: Final = "look at what the server prints: its stdout is for answers of MCP alone"


class Mounted(Fixed):
    """A server: its tools, `mcp:<name>#<tool>`, and its resources, asked for when they are wanted.

    One that does not run is started at its next use, at most once in RETRY_S, and half as often
    each time that it ends soon after. `noted` is called at each start and each change of its list.
    """

    def __init__(
        self,
        name: str,
        server: StdioServerParameters,
        noted: Callable[[Mounted], None] = lambda _: None,
    ) -> None:
        super().__init__(domain="mcp")
        self.name, self.server, self._noted = name, server, noted
        self.runs = ProcessRequest((server.command, *server.args))
        self._program = McpProgram(server)
        self._session: McpSession | None = None
        self._tools: dict[str, types.Tool] = {}
        self._digests: dict[str, str] = {}
        message = f"the MCP server {name} does not answer"
        self._error: CapdexError = Unavailable(message, Code.NODE_UNAVAILABLE)
        self._starting: asyncio.Task[None] | None = None
        self._pause_s, self._next = 0.0, asyncio.get_running_loop().time()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the server."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        if self._session is not None:
            await self._session.close()

    @property
    def down(self) -> CapdexError | None:
        """Why the server does not run, and when it is started again; None if it runs."""
        if self._session is not None and not (self._session.ended or self._program.ended):
            return None
        wait = math.ceil(self._next - asyncio.get_running_loop().time())
        when = f", {wait} s from now or later" if wait > 0 else ""
        fix = f"it is started again at its next use{when}"
        if self._starting is not None:
            fix = "it is just being started: try again in some seconds"
        return replace((self._session and self._program.fault(None)) or self._error, fix=fix)

    async def awake(self, wait_s: float = AWAKE_S) -> None:
        """Start the server if it does not run and its time has come, and wait for it so long."""
        with suppress(CapdexError, TimeoutError):
            if self._starting is None:
                async with asyncio.timeout(wait_s):
                    await self.session()

    async def session(self) -> McpSession:
        """Return the session with the server, which is started if its time has come.

        A list of tools that changed replaces them. Raises `down`, and as `McpSession.tools`.
        """
        loop = asyncio.get_running_loop()
        if self._starting is None and self.down and loop.time() >= self._next:
            self._starting = loop.create_task(self._start())
        if self._starting is not None:  # a caller whose time is over leaves it to the next one
            await asyncio.shield(self._starting)
        session, error = self._session, self.down
        if session is None or error is not None:
            raise error or self._error
        try:
            await self._listed(session)
        except CapdexError as fault:
            raise self.down or fault from None
        return session

    async def _start(self) -> None:
        now = asyncio.get_running_loop().time()
        self._pause_s = next_pause(self._pause_s, now - self._next)
        self._next = now + self._pause_s
        if self._session is not None:
            await self._session.close()
        self._program, self._session = McpProgram(self.server), None
        session = McpSession(self._program.connected(), self._program.fault)
        try:
            async with asyncio.timeout(LIST_S):
                await self._listed(session)
            self._session = session
        except (CapdexError, TimeoutError) as error:
            why = error.line if isinstance(error, CapdexError) else f"no list in {LIST_S:g} s"
            stray = self._program.replies.stray
            why += f"; it sent {stray}" if stray else ""
            self._error = replace(self._error, why=why)
            log.warning("not mounted", server=self.name, why=why)  # the other tools go on
        finally:
            self._starting = None
            if self._session is None:
                await session.close()

    async def _listed(self, session: McpSession) -> None:
        tools = await session.tools()
        before, self._tools = self._tools, tools
        if session is not self._session or tools != before:
            self.put(_capabilities(self, session.client.server_info, tools.values()))
            self._digests = {x.name: x.owner.digest for x in self._by_ref.values()}
            self._noted(self)

    async def call(self, tool: str, digest: str, arguments: Json) -> Json:
        """Call the tool with this definition; raises as `McpSession.call`, and Refused."""
        session = await self.session()
        if self._digests.get(tool) != digest:
            raise Refused(
                f"the tool {tool[:64]!r} of the MCP server {self.name} changed meanwhile",
                Code.PERMISSION_DENIED,
                fix="look at it with describe, and call it again",
            )
        try:
            return await session.call(tool, arguments)
        except CapdexError as error:
            raise replace(self.down or error, details=error.details) from None

    async def resources(self) -> list[types.Resource]:
        """Return what the server lists; nothing if it has none, or does not answer in time."""
        with suppress(CapdexError):
            async with self._asked() as session:
                return await self._resources(session)
        return []

    async def read(self, uri: str) -> list[Any]:
        """Return the contents of a listed resource; raises as `McpSession.read`, and TIMEOUT.

        Another URI may be a model's own and carry words to the server: it is NOT_FOUND.
        """
        async with self._asked() as session:
            if uri not in {x.uri for x in await self._resources(session)}:
                what = f"{self.name} has no resource {uri[:128]!r}"
                raise InvalidInput(what, Code.NOT_FOUND, fix="resources/list has what is there")
            return await session.read(uri)

    async def _resources(self, session: McpSession) -> list[types.Resource]:
        return [x for x in await session.resources() if clean(x.uri, MAX_URI_CHARS) == x.uri]

    @asynccontextmanager
    async def _asked(self) -> AsyncIterator[McpSession]:
        try:
            async with asyncio.timeout(RESOURCES_S):
                yield await self.session()
        except TimeoutError:
            raise self.late(RESOURCES_S) from None

    def late(self, timeout_s: float) -> Unavailable:
        """Return the error for an answer that did not come in time, with what came instead."""
        stray = self._program.replies.stray
        return Unavailable(
            f"the MCP server {self.name} did not answer within {timeout_s:.3g} s",
            why=f"it sent {stray}" if stray else "",
            fix=_SILENT if stray else "try again",
        )


def next_pause(pause_s: float, idle_s: float) -> float:
    """Return how long no start follows on one that came `idle_s` after it was allowed."""
    return RETRY_S if idle_s >= pause_s else min(2 * pause_s, MAX_RETRY_S)


def mount_proposal(source: Mounted) -> Proposal:
    """Return what mounting a server does: the program that runs, and the tools that it offers."""
    tools = [source.load(listed.ref) for listed in source.listed()]
    digests = "".join(sorted(tool.owner.digest for tool in tools))
    return Proposal(
        "mount",
        f"Mount the MCP server {escaped(source.name)}?",
        f"mcp:{source.name}",
        tools[0].ref.version if tools else "0.0.0",
        hashlib.sha256(digests.encode()).hexdigest(),
        ("capdex", "router", "--mcp", f"{source.name}={shlex.join(source.runs.argv)}"),
        accesses=(accessed(source.runs), *(Access("", (quoted(tool.name),)) for tool in tools)),
    )


@dataclass(frozen=True, slots=True)
class MountedTool:
    """A tool of a mounted server."""

    mount: Mounted
    tool: str
    digest: str

    def requests(self, arguments: Json) -> Sequence[Request]:
        """Return the one call that a run makes."""
        return [MountedRequest(f"mcp:{self.mount.name}", self.tool, self.mount.runs.argv)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Call the tool; return its output as `McpSession.call`, and raise as `Mounted.call`."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self.mount.call(self.tool, self.digest, arguments)
        except TimeoutError:
            raise self.mount.late(timeout_s) from None


def _capabilities(
    mount: Mounted, info: types.Implementation | None, tools: Iterable[types.Tool]
) -> Iterator[Capability]:
    owner = f"mcp:{mount.name}"
    version = info.version if info is not None and VERSION.fullmatch(info.version) else "0.0.0"
    for tool in tools:
        hints = tool.annotations or types.ToolAnnotations()
        # A changed definition has another digest, and what was granted for it is gone.
        definition = [
            owner,  # `effects` for one server is none for another that copies its tool
            *accessed(mount.runs).lines,  # nor for another program with its name
            tool.name,
            tool.description,
            tool.input_schema,
            tool.output_schema,
            hints.model_dump(),
        ]
        digest = hashlib.sha256(sorted_json(definition)).hexdigest()
        reads = hints.read_only_hint is True
        yield Capability(
            CapabilityRef(f"{owner}#{tool.name}", version),
            "tool",
            tool.name,
            tool.description or "",
            tool.input_schema or NO_INPUT,
            Owner("mcp", owner, digest),
            output_schema=tool.output_schema,
            annotations=ToolHints(
                read_only=reads,
                destructive=not reads and hints.destructive_hint is not False,
                idempotent=hints.idempotent_hint is True,
            ),
            executor=MountedTool(mount, tool.name, digest),
        )
