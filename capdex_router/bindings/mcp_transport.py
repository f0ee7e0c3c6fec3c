"""The transports of MCP sessions: HTTP through the egress guard, and the stdio of a program.

Both bound what a server sends before the SDK reads it. A transport has `connected`, as the SDK
wants it, and `fault`, which gives the error of ours behind one of the SDK.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from typing import Any, Final

import aiohttp
import anyio
import httpx2
import mcp_types as types
import orjson
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from typing_extensions import override
from yarl import URL

from capdex.errors import CapdexError, Code, ExecutionFailed, Refused, Unavailable
from capdex.json import Json
from capdex.net import envelope
from capdex.net.json_reply import parse
from capdex_router.bindings.egress import MAX_BODY_BYTES, Egress
from capdex_router.bindings.http import LONG_BYTES, MIN_VALUE_BYTES

MAX_LINE_BYTES: Final = 4 * 1024 * 1024  # of a program, as of a reply over HTTP
MAX_UNREAD: Final = 64  # answers to what a program asks
MAX_UNASKED_BYTES: Final = 64 * 1024 * 1024  # that it sends after one request, and at this rate:
UNASKED_BYTES_S: Final = 256 * 1024  # a tenth of a core reads it
END_S: Final = 0.5  # to end by itself, and by SIGTERM: a host gives the router two seconds
# The SDK compares a part of a message with every shape that it may have: a part that fits none
# takes 20 µs and 4 KB, so that a MiB of `{},` stopped the router for eight seconds.
MAX_PARTS: Final = 20_000
SAID: Final = "said by the server"  # data of an error whose code the SDK has for ends of a session
_SDK_CODES: Final = (types.CONNECTION_CLOSED, types.INVALID_REQUEST)
_FAULT: Final = -32099  # a code of JSON-RPC's range for implementations
_MAX_FAULTS: Final = 64
_JSON: Final = "application/json"
_OVER: Final = (
    f"it sent a line of over {MAX_LINE_BYTES} bytes, or far more than it was asked, "
    "or reads no answers"
)
_KEPT_HEADERS: Final = ("content-type", "mcp-session-id")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of an MCP session through the egress guard, to one origin only.

    An exception here would end the whole session, so that an error becomes a JSON-RPC error of
    which `fault` gives the original back.
    """

    def __init__(self, egress: Egress, url: URL) -> None:
        self._egress = egress
        self._url = url
        self._faults: dict[str, CapdexError] = {}

    def fault(self, data: object) -> CapdexError | None:
        """Return the error that the `data` of a JSON-RPC error stands for, if it is one of ours."""
        return self._faults.pop(data, None) if isinstance(data, str) else None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        """Connect as the SDK does."""
        async with (
            httpx2.AsyncClient(transport=self) as http,
            streamable_http_client(
                str(self._url), http_client=http, max_sse_event_size=MAX_BODY_BYTES
            ) as streams,
        ):
            yield streams

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = URL(str(request.url), encoded=True)
        try:
            if url.origin() != self._url.origin():
                raise Refused("the service redirects to another host", Code.PERMISSION_DENIED)
            headers = {
                name: value
                for name, value in request.headers.items()
                if name not in ("host", "connection", "content-length", "user-agent")
            }
            headers["accept-encoding"] = "identity"
            return await self._send(request, url, headers)
        except CapdexError as error:
            return self._carried(request, error)

    async def _send(
        self, request: httpx2.Request, url: URL, headers: dict[str, str]
    ) -> httpx2.Response:
        body = await request.aread()
        async with AsyncExitStack() as stack:
            response = await stack.enter_async_context(
                self._egress.open(request.method, url, headers, body or None)
            )
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise ExecutionFailed("the service compresses its reply, which was not asked for")
            _check_redirect(response)
            kept = [(x, y) for x, y in response.headers.items() if x.lower() in _KEPT_HEADERS]
            if "event-stream" in response.headers.get("Content-Type", ""):
                events = _Events(response, stack.pop_all())
                return httpx2.Response(response.status, headers=kept, stream=events)
            if response.status >= 500:
                raise Unavailable(
                    f"{url.host} answered with status {response.status}",
                    Code.SERVICE_UNAVAILABLE,
                    fix="try again later",
                )
            if response.status in (401, 403):
                raise ExecutionFailed(f"{url.host} answered with status {response.status}")
            content = bytearray()
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) > MAX_BODY_BYTES:
                    raise ExecutionFailed("the reply of the service is too large")
            # Of 404 the SDK believes the body, which each server words otherwise.
            forgot = response.status == 404 and "mcp-session-id" in headers
            data = b"" if forgot else bytes(content)
            if data and response.headers.get("Content-Type", "").lower().startswith(_JSON):
                try:
                    data = orjson.dumps(read_message(data))
                except ValueError as error:
                    if response.status < 400:
                        raise ExecutionFailed(f"the reply of the service is {error}") from None
                    data = b""  # the status says enough
            return httpx2.Response(response.status, headers=kept, content=data)

    def _carried(self, request: httpx2.Request, error: CapdexError) -> httpx2.Response:
        token = secrets.token_hex(16)  # a server that repeats one cannot know the next
        while len(self._faults) >= _MAX_FAULTS:  # those of notifications are never asked for
            del self._faults[next(iter(self._faults))]
        self._faults[token] = error
        body = {"code": _FAULT, "message": "refused by the router", "data": token}
        answer = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": body})
        headers = {"content-type": "application/json"}
        return httpx2.Response(502, headers=headers, content=answer, request=request)


class McpProgram:
    """A program that speaks MCP on its stdin and stdout, each message a line within bounds."""

    def __init__(self, server: StdioServerParameters) -> None:
        self._server = server
        self._fault: CapdexError | None = None

    def fault(self, _: object) -> CapdexError | None:
        """Return why the session was ended, if the program gave a reason for it."""
        return self._fault

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        """Start the program, and end it with its whole process group; raises OSError."""
        # A socket, as Node.js gives it: its end does not wait for others that hold it, as a pipe's.
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=MAX_LINE_BYTES)
        with theirs, closing(writer):
            process = await asyncio.create_subprocess_exec(
                *(self._server.command, *self._server.args),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                env=get_default_environment() | (self._server.env or {}),
                cwd=self._server.cwd,
                start_new_session=True,
            )
            theirs.close()
            incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

            clock, unasked, then = asyncio.get_running_loop().time, 0.0, 0.0

            async def hear() -> None:
                nonlocal unasked, then
                try:
                    async with incoming:
                        while write.statistics().tasks_waiting_send <= MAX_UNREAD:
                            await asyncio.sleep(0)  # many lines are there at once
                            line, now = await reader.readuntil(), clock()
                            unasked = max(0.0, unasked - (now - then) * UNASKED_BYTES_S) + len(line)
                            then = now
                            if unasked > MAX_UNASKED_BYTES:
                                break
                            if message := _message(line):
                                await incoming.send(SessionMessage(message))
                        raise asyncio.LimitOverrunError("", 0)
                except asyncio.LimitOverrunError:
                    self._fault = ExecutionFailed("the MCP server was ended", why=_OVER)
                except (asyncio.IncompleteReadError, OSError, anyio.BrokenResourceError):
                    pass  # one of both sides has ended the session
                finally:
                    writer.transport.abort()
                    with anyio.CancelScope(shield=True):
                        await _end(process)

            async def tell() -> None:
                nonlocal unasked
                with suppress(OSError):
                    async for item in outgoing:
                        if isinstance(item.message, types.JSONRPCRequest):
                            unasked = 0.0
                        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                        writer.write(text.encode() + b"\n")
                        await writer.drain()

            async with read, write, outgoing, anyio.create_task_group() as group:
                group.start_soon(hear)
                group.start_soon(tell)
                try:
                    yield read, write
                finally:
                    group.cancel_scope.cancel()


class _Events(httpx2.AsyncByteStream):
    """The body of a reply that is a stream of events, bounded in bytes."""

    def __init__(self, response: aiohttp.ClientResponse, stack: AsyncExitStack) -> None:
        self._response = response
        self._stack = stack

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        read, rest = 0, bytearray()
        try:
            async for chunk in self._response.content.iter_any():
                read += len(chunk)
                if read > MAX_BODY_BYTES:
                    raise ValueError("too long")
                rest += chunk.replace(b"\r", b"")
                if b"\n\n" in rest[-len(chunk) - 1 :]:
                    *events, rest = rest.split(b"\n\n")
                    yield b"".join(map(_read_event, filter(None, events)))
        except aiohttp.ClientError:
            raise httpx2.StreamError("the service closed its stream") from None
        except ValueError as error:
            raise httpx2.StreamError(f"the stream of the service is {error}") from None

    @override
    async def aclose(self) -> None:
        self._response.close()  # an endless stream is not read to its end
        await self._stack.aclose()


async def _end(process: asyncio.subprocess.Process) -> None:
    for number in (0, signal.SIGTERM, signal.SIGKILL):  # 0 only waits
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with anyio.move_on_after(END_S):
            await process.wait()


def _message(line: bytes) -> types.JSONRPCMessage | None:
    """Return the message in a line; None for what a program logs.

    An answer that is none of MCP is an error, so that its call does not wait for another one.
    """
    try:
        return types.jsonrpc_message_adapter.validate_python(read_message(line))
    except ValueError:
        found = envelope.read(line)
    if found.id is None or b'"jsonrpc"' not in line or getattr(found, "method", None):
        return None
    error = types.ErrorData(code=types.PARSE_ERROR, message="the answer is none of MCP")
    return types.JSONRPCError(jsonrpc="2.0", id=found.id, error=error)


def read_message(data: bytes) -> Json:
    """Return a message of a server as the SDK may read it, empty for a notification without use.

    What a server asks or tells loses its parameters, since nothing of them is used, and a response
    of too many parts becomes an error. Raises ValueError in words that complete "it is …".
    """
    found = parse(data, long_bytes=LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES)
    if not isinstance(found, dict):
        raise ValueError("no message of JSON-RPC")
    if "method" in found:
        used = "id" in found or found["method"] == "notifications/tools/list_changed"
        found = {x: found[x] for x in ("jsonrpc", "id", "method") if used and x in found}
    if isinstance(found.get("error"), dict) and found["error"].get("code") in _SDK_CODES:
        found["error"] |= {"data": SAID}
    result, typed = found.get("result"), found
    if isinstance(result, dict):  # of which the SDK takes the structured content as it is
        typed = {**found, "result": {**result, "structuredContent": None}}
    if _parts(typed) > MAX_PARTS:
        error = {"code": types.INTERNAL_ERROR, "message": "the response has too many parts"}
        found = {"jsonrpc": "2.0", "id": found.get("id"), "error": error}
    return found


def _parts(value: object) -> int:
    """Return how many values a JSON value has, or more than MAX_PARTS."""
    count, rest = 0, [value]
    while rest and count <= MAX_PARTS:
        one = rest.pop()
        count += 1
        if isinstance(one, dict | list):
            rest += one.values() if isinstance(one, dict) else one
    return count


def _read_event(event: bytearray) -> bytes:
    """Return an event of a stream with its message as the SDK may read it; raises ValueError."""
    parts = [line.partition(b":") for line in bytes(event).split(b"\n")]
    fields = [(name, value.strip()) for name, _, value in parts]
    data = b"\n".join(value for name, value in fields if name == b"data")
    if dict(fields).get(b"event", b"message") != b"message":
        return b""
    told = [b"%s:%s\n" % field for field in fields if field[0] in (b"id", b"retry")]
    message = read_message(data) if data else {}
    return b"%sdata:%s\n\n" % (b"".join(told), orjson.dumps(message) if message else b"")


def _check_redirect(response: aiohttp.ClientResponse) -> None:
    if not 300 <= response.status < 400:
        return
    raise Refused(
        "the service redirects",
        Code.PERMISSION_DENIED,
        why="redirects of MCP services are not followed",
        fix="name the final URL of the service",
    )
