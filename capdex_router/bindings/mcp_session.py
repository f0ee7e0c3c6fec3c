"""A session with an MCP server: its tools, and calls of them, within bounds whatever it sends.

A server's requests to us (elicitation, sampling, roots) are refused: a person is asked by the
router alone, in its own words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx2
import mcp_types as types
import orjson
from mcp import Client, MCPError
from pydantic import TypeAdapter, ValidationError

from capdex.errors import CapdexError, Code, ExecutionFailed, Refused, Unavailable
from capdex.json import Json, object_of
from capdex_router.bindings.egress import SENT
from capdex_router.bindings.mcp_message import REPORT, SAID, output_of
from capdex_router.bindings.mcp_transport import ENDED
from capdex_router.model.refs import SERVICE
from capdex_router.policy.quoting import quoted, said, shortened

MAX_CALLS: Final = 8  # at a time, of one server; less than the connections of a host
MAX_PAGES: Final = 50  # as an import reads
MAX_LISTED: Final = 1_000  # tools or resources
MAX_LIST_BYTES: Final = 4 * 1024 * 1024  # of all of them: tools are kept, and searched
RELIST_S: Final = 300.0  # a server may change its tools without telling
QUICK_S: Final = 0.5  # for a list; one that takes longer is not asked for again
PAUSE: Final = 10  # times as long, whatever the server tells: nobody waits for it all the time
CONNECT_S: Final = 30.0  # a program may be fetched before it starts
CLOSE_S: Final = 2.0
MAX_DATA_CHARS: Final = 4_000  # of what an error has beside its message
DRAIN_S: Final = 30.0  # for other calls of a session that is given up

_RESULT: Final[TypeAdapter[types.CallToolResult | types.InputRequiredResult]] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
BY_IT: Final = "change the input by what it says, or call another"
_BROKEN: Final = (types.CONNECTION_CLOSED, types.INTERNAL_ERROR, types.INVALID_REQUEST)


@dataclass(eq=False)
class Forgotten(Unavailable):
    """The server does not know the session any more, as after a restart (404, by the protocol)."""


class McpSession:
    """A session with one server, owned by a task of its own (anyio requires that).

    `transport` is one of the SDK; `carried` gives an error that it carries as JSON-RPC's `data`.
    """

    def __init__(self, transport: Any, carried: Callable[[Any], CapdexError | None]) -> None:
        loop = asyncio.get_running_loop()
        self.broken = False  # after an error that leaves nothing to go on with
        self.client = Client(transport, cache=None, message_handler=self._heard)
        self._carried = carried
        self._calls = asyncio.Semaphore(MAX_CALLS)
        self._users = 0
        self._unused = asyncio.Event()
        self._tools: dict[str, types.Tool] | None = None  # before the first list
        self._list_at = self._pause_end = 0.0  # when the list is asked for again, at the earliest
        self._listing = asyncio.Lock()
        self._end = asyncio.Event()
        self._opened: asyncio.Future[None] = loop.create_future()
        self._task = loop.create_task(self._hold())

    @property
    def ended(self) -> bool:
        """True if no call can be made any more."""
        return self._task.done() or self._end.is_set()

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Wait for a place, and keep the session open meanwhile."""
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
        """End the session when its calls have ended."""
        if self._users:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._unused.wait(), DRAIN_S)
        self._end.set()
        await asyncio.wait([self._task], timeout=CLOSE_S if self._opened.done() else 0)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def tools(self) -> dict[str, types.Tool]:
        """Return the server's tools by name, at most `RELIST_S` old; raises as `call`."""
        with self._faults():
            await asyncio.shield(self._opened)
            loop = asyncio.get_running_loop()
            async with self._listing:
                began = loop.time()
                if self._tools is None or began >= max(self._list_at, self._pause_end):
                    # Set before the answer: a change meanwhile is asked for again, and if the
                    # server gives no list, the old one stays and later callers do not wait.
                    self._list_at = began + RELIST_S
                    try:
                        self._tools = await self._list()
                    finally:
                        took = loop.time() - began
                        self._pause_end = loop.time() + PAUSE * max(0.0, took - QUICK_S)
                return self._tools

    async def call(self, name: str, arguments: Json) -> Json:
        """Call a tool; return its structured content, `{"text": …}` or `{"content": […]}`.

        Where other content says more than the structured, there is both, as MCP names them.
        Raises ExecutionFailed if the tool reports an error, Refused if it asks for something,
        Unavailable if the session ended.
        """
        params = types.CallToolRequestParams(name=name, arguments=arguments)
        try:
            with self._faults(calls=True):
                # Not `call_tool`: it checks the result by a schema of the server, without bounds.
                result = await self.client.session.send_request(
                    types.CallToolRequest(params=params), _RESULT
                )
        except (ExecutionFailed, Unavailable) as error:
            unsent = isinstance(error, Unavailable) and error.message != ENDED
            if unsent or isinstance(error, Forgotten) or error.details:
                raise
            raise error.with_details(**SENT) from None
        if isinstance(result, types.InputRequiredResult):
            raise _asks()
        output = output_of(result)
        if result.is_error:
            words = output.pop("text", "") if output.keys() == {"text"} else ""
            why = said(words) if words else "" if output else "its server does not say why"
            told = {"answer": _short(output)} if output else None
            raise ExecutionFailed("the tool failed", why=why, fix=BY_IT, details=told)
        return output

    async def resources(self) -> list[types.Resource]:
        """Return the server's resources; none if it does not say that it has any."""
        with self._faults():
            await asyncio.shield(self._opened)
            if self.client.server_capabilities.resources is None:
                return []
            return await self._pages(self.client.session.list_resources, "resources")

    async def read(self, uri: str) -> list[Any]:
        """Return the contents of a resource; raises as `call`."""
        with self._faults():
            answer = await self.client.session.read_resource(uri, allow_input_required=True)
        if isinstance(answer, types.InputRequiredResult):
            raise _asks()
        return list(answer.contents)

    async def _hold(self) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                await self.client.__aenter__()
            try:
                self._opened.set_result(None)
                await self._end.wait()
            finally:
                await self.client.__aexit__(None, None, None)
        except Exception as error:  # noqa: BLE001 - whatever ends a session is told to its callers
            if not self._opened.done():
                self._opened.set_exception(_first(error))
        finally:
            if not self._opened.done():
                self._opened.set_exception(RuntimeError("closed"))
            self._opened.exception()  # seen, also where nobody waits any more

    async def _heard(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._list_at = 0.0

    async def _list(self) -> dict[str, types.Tool]:
        tools: dict[str, types.Tool] = {}
        for tool in await self._pages(self._list_tools, "tools"):
            if tools.setdefault(tool.name, tool) != tool:
                raise ExecutionFailed("the MCP server has two tools of one name", fix=SERVICE)
        return tools

    async def _list_tools(self, *, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        try:
            return await self.client.session.list_tools(params=params)
        except ValidationError:  # one odd tool: the SDK refuses the whole page
            told = params.model_dump(mode="json", by_alias=True, exclude_none=True)
            asked: Json = {"method": "tools/list", "params": told}
            options: Json = {}
            session: Any = self.client.session  # whose next two have no public face
            session._stamp(asked, options)
            raw = await session._dispatcher.send_raw_request("tools/list", told, options)
            listed, cursor = raw.get("tools"), raw.get("nextCursor")
            if not isinstance(listed, list):
                raise
        tools = [_tool(x) for x in listed if isinstance(x, dict) and isinstance(x.get("name"), str)]
        return types.ListToolsResult(tools=tools, next_cursor=str(cursor) if cursor else None)

    async def _pages(self, ask: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
        entries: list[Any] = []
        cursor: str | None = None
        size = 0
        seen: list[str | None] = []
        for _ in range(MAX_PAGES):
            seen.append(cursor)
            page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
            entries += getattr(page, what)
            size += sum(len(entry.model_dump_json()) for entry in getattr(page, what))
            cursor = page.next_cursor
            if len(entries) > MAX_LISTED or size > MAX_LIST_BYTES:
                break
            if not cursor or cursor in seen:  # an empty one, too, says that there is no more
                return entries
        why = f"over {MAX_PAGES} pages, {MAX_LISTED} of them or {MAX_LIST_BYTES} bytes"
        raise ExecutionFailed(f"the MCP server lists too many {what}", why=why, fix=SERVICE)

    @contextmanager
    def _faults(self, *, calls: bool = False) -> Iterator[None]:
        try:
            yield
        except _SESSION_ERRORS as error:
            self.broken = not isinstance(error, MCPError) or error.code in _BROKEN
            fault = self._fault(error)
            if not calls:  # no input was sent
                told = {name: x for name, x in (fault.details or {}).items() if name != "sent"}
                fix = SERVICE if fault.fix == BY_IT else fault.fix
                fault = replace(fault, details=told or None, fix=fix)
            raise fault from None

    def _fault(self, error: Exception) -> CapdexError:
        if isinstance(error, CapdexError):
            return error
        if isinstance(error, MCPError):
            if (carried := self._carried(error.data)) is not None:
                return carried
            by_server = error.data == SAID
            if error.message == "Session terminated" and not by_server:  # the SDK's words for 404
                return Forgotten(ENDED, Code.SERVICE_UNAVAILABLE, fix="try again")
            if error.code != types.CONNECTION_CLOSED or by_server:
                return ExecutionFailed(
                    "the MCP server answers with an error",
                    why=said(error.message),
                    fix=BY_IT,
                    details={"jsonrpc_code": error.code}
                    | ({} if error.data in (None, "", SAID) else {"data": _short(error.data)}),
                )
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            why = quoted(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
            return ExecutionFailed("the reply of the MCP server is not MCP", why=why, fix=REPORT)
        why = error.message if isinstance(error, MCPError) else quoted(str(error) or "ended")
        if isinstance(error, TimeoutError):
            why = f"it gave no answer to the handshake in {CONNECT_S:g} s"
        return Unavailable(ENDED, Code.SERVICE_UNAVAILABLE, why, "try again")


_SESSION_ERRORS: Final = (
    *(MCPError, ValidationError, httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError),
    *(ExecutionFailed, Refused, Unavailable),
)


def _tool(entry: Json) -> types.Tool:
    """Return a tool that a server lists: of an odd one its name, description and schema."""
    with suppress(ValidationError):
        return types.Tool.model_validate(entry, by_name=False)
    description = entry.get("description")
    return types.Tool(
        name=entry["name"],
        description=description if isinstance(description, str) else None,
        input_schema=object_of(entry.get("inputSchema")),
    )


def _short(value: object) -> object:
    """Return a JSON value; of a long one its text without the middle."""
    text = orjson.dumps(value).decode()
    return value if len(text) <= MAX_DATA_CHARS else shortened(text, MAX_DATA_CHARS)


def _asks() -> Refused:
    return Refused(
        "the MCP server asks for input of a person or of a model",
        Code.PERMISSION_DENIED,
        why="a server that is called may not ask; the router alone does",
        fix="give all input as arguments",
    )


def _first(error: Exception) -> Exception:
    """Return the cause within the groups that task groups wrap around it."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, _SESSION_ERRORS) else RuntimeError(type(error).__name__)
