"""`mcp_service`: a tool call as a call of another MCP server (NIP-7, Tool Bindings).

A server's requests to us (elicitation, sampling, roots) are refused: a person is asked by the
router alone, in its own words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from pydantic import TypeAdapter, ValidationError
from yarl import URL

from capdex.errors import (
    CapdexError,
    Code,
    ExecutionFailed,
    InvalidInput,
    Refused,
    Unavailable,
    untrusted_text,
)
from router.bindings.egress import MAX_BODY_BYTES, Egress
from router.bindings.mcp_transport import GuardedTransport
from router.bindings.pins import Pins, fingerprint
from router.model.refs import Json
from router.model.requests import ServiceRequest

MAX_SESSIONS: Final = 16
MAX_CALLS: Final = 8  # at a time, of one service; less than the connections of a host
MAX_PAGES: Final = 20
MAX_TOOLS: Final = 1_000
RELIST_S: Final = 300.0  # a service may change its tools without telling
CONNECT_S: Final = 15.0
CLOSE_S: Final = 2.0
DRAIN_S: Final = 30.0  # for other calls of a session that is given up

_ENDED: Final = "the session with the MCP service ended"
_RESULT: Final[TypeAdapter[types.CallToolResult | types.InputRequiredResult]] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class McpTool:
    """A tool bound to an action of an MCP service; `capability` is the name that its pin has."""

    def __init__(
        self, binding: Mapping[str, Any], *, capability: str, services: McpServices
    ) -> None:
        self._request = ServiceRequest(binding["service_uri"], binding["mcp_action"])
        self._capability = capability
        self._services = services

    def requests(self, arguments: Json) -> Sequence[ServiceRequest]:
        """Return the one call that a run makes, whatever the arguments."""
        return [self._request]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Call the action; return its structured content, else `{"text": …}` or `{"content": […]}`.

        Raises ExecutionFailed if the tool reports an error, Refused if its definition changed or it
        asks for something, Unavailable if the service is down or late.
        """
        result = await self._services.call(self._capability, self._request, arguments, timeout_s)
        if result.is_error:
            text = "\n".join(_texts(result))
            raise ExecutionFailed("the service reports an error", why=untrusted_text(text))
        if result.structured_content is not None:
            return dict(result.structured_content)
        texts = _texts(result)
        if len(texts) == len(result.content):
            return {"text": "\n".join(texts)}
        blocks = [
            x.model_dump(mode="json", by_alias=True, exclude_none=True) for x in result.content
        ]
        return {"content": blocks}


class McpServices:
    """Sessions with MCP services, opened at first use and kept; close it after use."""

    def __init__(self, egress: Egress, pins: Pins) -> None:
        self._egress = egress
        self._pins = pins
        self._sessions: dict[str, _Session] = {}
        self._closing: dict[asyncio.Task[None], _Session] = {}

    async def close(self) -> None:
        """End all sessions."""
        for uri in list(self._sessions):
            self._drop(uri, self._sessions[uri])
        for session in self._closing.values():
            session.hurry()
        await asyncio.gather(*self._closing)

    async def call(
        self, capability: str, request: ServiceRequest, arguments: Json, timeout_s: float
    ) -> types.CallToolResult:
        """Call an action of a service whose definition is the pinned one.

        Raises InvalidInput NOT_FOUND for an unknown service or action, else as `McpTool.run`.
        """
        uri = request.service_uri
        session = self._session(uri)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                try:
                    return await self._once(session, capability, request, arguments)
                except _Forgotten:  # the service did not act: the call is made again, once
                    session = self._session(uri)
                    return await self._once(session, capability, request, arguments)
        self._drop(uri, session)  # what a late service still sends is for nobody
        raise Unavailable(
            "the MCP service did not answer in time",
            why=f"{uri[:200]} had {timeout_s:g} s",
            fix="try again later",
        )

    async def _once(
        self, session: _Session, capability: str, request: ServiceRequest, arguments: Json
    ) -> types.CallToolResult:
        uri, action = request.service_uri, request.action
        async with session.used():
            found = await self._definition(session, uri, action)
            self._pins.check(capability, uri, action, found)
            return await self._answer(session, uri, action, arguments)

    async def _definition(self, session: _Session, uri: str, action: str) -> str:
        try:
            found = (await session.definitions()).get(action)
        except _SESSION_ERRORS as error:
            self._drop(uri, session)
            raise _fault(session, error) from None
        if found is None:
            raise InvalidInput(
                f"the MCP service has no tool {action[:64]!r}", Code.NOT_FOUND, why=uri[:200]
            )
        return found

    async def _answer(
        self, session: _Session, uri: str, action: str, arguments: Json
    ) -> types.CallToolResult:
        params = types.CallToolRequestParams(name=action, arguments=arguments)
        try:
            # Not `call_tool`: it checks the result by a schema of the service, without bounds.
            result = await session.client.session.send_request(
                types.CallToolRequest(params=params), _RESULT
            )
        except _SESSION_ERRORS as error:
            if not isinstance(error, MCPError) or error.code in (
                types.CONNECTION_CLOSED,
                types.INTERNAL_ERROR,
                types.INVALID_REQUEST,
            ):
                self._drop(uri, session)
            raise _fault(session, error) from None
        if isinstance(result, types.InputRequiredResult):
            raise Refused(
                "the MCP service asks for input of a person or of a model",
                Code.PERMISSION_DENIED,
                why="a service that a tool calls may not ask; the router alone does",
                fix="give all input as arguments",
            )
        return result

    def _session(self, uri: str) -> _Session:
        session = self._sessions.pop(uri, None)
        if session is None or session.ended:
            url = self._egress.located(uri)
            if url is None:
                raise InvalidInput(
                    f"the address of {uri[:200]} is not known",
                    Code.NOT_FOUND,
                    why="a DID of a service says nothing about its URL",
                    fix="name its URL in the router's configuration, under addresses",
                )
            session = _Session(self._egress, url)
        self._sessions[uri] = session  # the last one used is the last to go
        while len(self._sessions) > MAX_SESSIONS:
            oldest = next(iter(self._sessions))
            self._drop(oldest, self._sessions[oldest])
        return session

    def _drop(self, uri: str, session: _Session) -> None:
        if self._sessions.get(uri) is session:
            del self._sessions[uri]
        closing = asyncio.get_running_loop().create_task(session.close())
        self._closing[closing] = session
        closing.add_done_callback(self._closing.pop)


@dataclass(eq=False)
class _Forgotten(Unavailable):
    """The service does not know the session any more, as after a restart (404, by the protocol)."""


class _Session:
    """A session with one service, owned by a task of its own (anyio requires that)."""

    def __init__(self, egress: Egress, url: URL) -> None:
        loop = asyncio.get_running_loop()
        self._calls = asyncio.Semaphore(MAX_CALLS)
        self._users = 0
        self._unused = asyncio.Event()
        self.transport = GuardedTransport(egress, url)
        self.client: Client
        self._url = url
        self._definitions: dict[str, str] = {}
        self._listed_at = -RELIST_S
        self._listing = asyncio.Lock()
        self._end = asyncio.Event()
        self._opened: asyncio.Future[None] = loop.create_future()
        self._task = loop.create_task(self._hold())

    @property
    def ended(self) -> bool:
        return self._task.done() or self._end.is_set()

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        self._users += 1
        self._unused.clear()
        try:
            async with self._calls:
                yield
        finally:
            self._users -= 1
            if self._users == 0:
                self._unused.set()

    def hurry(self) -> None:
        """End the wait for calls of a session that is being closed."""
        self._unused.set()

    async def close(self) -> None:
        if self._users:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._unused.wait(), DRAIN_S)
        self._end.set()
        await asyncio.wait([self._task], timeout=CLOSE_S)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def definitions(self) -> dict[str, str]:
        """Return the fingerprints of the service's tools by name, at most `RELIST_S` old."""
        await asyncio.shield(self._opened)
        loop = asyncio.get_running_loop()
        async with self._listing:
            if loop.time() - self._listed_at >= RELIST_S:
                self._definitions = await self._list()
                self._listed_at = loop.time()
        return self._definitions

    async def _hold(self) -> None:
        try:
            async with httpx2.AsyncClient(transport=self.transport) as http:
                opened = streamable_http_client(
                    str(self._url), http_client=http, max_sse_event_size=MAX_BODY_BYTES
                )
                client = Client(opened, cache=None, message_handler=self._heard)
                async with asyncio.timeout(CONNECT_S):
                    await client.__aenter__()
                try:
                    self.client = client
                    self._opened.set_result(None)
                    await self._end.wait()
                finally:
                    await client.__aexit__(None, None, None)
        except Exception as error:  # noqa: BLE001 - whatever ends a session is told to its callers
            if not self._opened.done():
                self._opened.set_exception(_first(error))
        finally:
            if not self._opened.done():
                self._opened.set_exception(RuntimeError("closed"))
            self._opened.exception()  # seen, also where nobody waits any more

    async def _heard(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._listed_at = -RELIST_S

    async def _list(self) -> dict[str, str]:
        found: dict[str, str] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self.client.session.list_tools(
                params=types.PaginatedRequestParams(cursor=cursor)
            )
            for tool in page.tools:
                digest = fingerprint(tool.name, tool.description, tool.input_schema)
                if found.setdefault(tool.name, digest) != digest:
                    raise ExecutionFailed("the MCP service has two tools of one name")
            cursor = page.next_cursor
            if cursor is None and len(found) <= MAX_TOOLS:
                return found
            if len(found) > MAX_TOOLS:
                break
        raise ExecutionFailed(
            "the MCP service lists too many tools",
            why=f"over {MAX_PAGES} pages or {MAX_TOOLS} tools",
        )


_SESSION_ERRORS: Final = (
    *(MCPError, ValidationError, httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError),
    *(ExecutionFailed, Refused, Unavailable),
)


def _first(error: Exception) -> Exception:
    """Return the cause within the groups that task groups wrap around it."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, _SESSION_ERRORS) else RuntimeError(type(error).__name__)


def _fault(session: _Session, error: Exception) -> CapdexError:
    if isinstance(error, CapdexError):
        return error
    if isinstance(error, MCPError):
        if (carried := session.transport.fault(error.data)) is not None:
            return carried
        if error.message == "Session terminated":  # the SDK's words for 404
            return _Forgotten(_ENDED, Code.SERVICE_UNAVAILABLE, fix="try again")
        if error.code != types.CONNECTION_CLOSED:
            why = untrusted_text(error.message)
            details = {"jsonrpc_code": error.code}
            return ExecutionFailed(
                "the MCP service answers with an error", why=why, details=details
            )
    if isinstance(error, ValidationError):
        return ExecutionFailed("the reply of the MCP service is not MCP")
    why = type(error).__name__
    return Unavailable(_ENDED, Code.SERVICE_UNAVAILABLE, why=why, fix="try again")


def _texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]
