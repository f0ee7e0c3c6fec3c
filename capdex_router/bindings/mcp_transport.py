"""The transports of MCP sessions: HTTP through the egress guard, and the stdio of a program.

Both bound what a server sends before the SDK reads it. A transport has `connected`, as the SDK
wants it, and `fault`, which gives the error of ours behind one of the SDK.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
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
from capdex_router.bindings.egress import MAX_BODY_BYTES, SENT, Egress, bad_reply, read
from capdex_router.bindings.http import failure
from capdex_router.bindings.mcp_message import (
    Replies,
    answer_in,
    asked_in,
    malformed,
    read_message,
    text_of,
)
from capdex_router.model.refs import AUTHOR, SERVICE

MAX_LINE_BYTES: Final = 4 * 1024 * 1024  # of a program, as of a reply over HTTP
MAX_UNREAD: Final = 64  # answers to what a program asks
MAX_UNASKED_BYTES: Final = 64 * 1024 * 1024  # that it sends after one request, and at this rate:
UNASKED_BYTES_S: Final = 256 * 1024  # a tenth of a core reads it
PASSED_BYTES: Final = 1024  # that a message counts besides: the SDK takes so much longer for it
ENDED: Final = "the session with the MCP server ended"
END_S: Final = 0.5  # to end by itself, and by SIGTERM: a host gives the router two seconds
KILLED_S: Final = 3.0  # for the end of a killed program, which a busy machine is late to tell
EVENTS_AT_ONCE: Final = 1_000
MAX_MESSAGES: Final = 64  # of a stream: its answer, and what the SDK answers in turn
MAX_STREAMS: Final = 16  # of what nobody asked for, and one more in STREAM_S
STREAM_S: Final = 15.0
MIN_RETRY_MS: Final = 100  # before a stream that the service ended is asked for again
_GONE: Final = Code.SERVICE_UNAVAILABLE
_FAULT: Final = -32099  # a code of JSON-RPC's range for implementations
_MAX_FAULTS: Final = 64
_JSON: Final = "application/json"
_OVER: Final = (
    f"it sent a line of over {MAX_LINE_BYTES} bytes, or far more than it was asked, "
    "or reads no answers"
)
_DATA: Final = re.compile(rb"^data:(.*)$", re.MULTILINE)
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
        self._streams = self._streamed = 0.0

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
        # For the stream of what nobody asked for; one that is resumed is of a call.
        listens = request.method == "GET" and "last-event-id" not in request.headers
        if listens and self._is_tired():
            return httpx2.Response(405, request=request)
        url = URL(str(request.url), encoded=True)
        try:
            if url.origin() != self._url.origin():
                what = "the service redirects to another host"
                raise Refused(what, Code.PERMISSION_DENIED, fix=AUTHOR)
            own = ("host", "connection", "content-length", "user-agent")
            headers = {name: x for name, x in request.headers.items() if name not in own}
            headers["accept-encoding"] = "identity"
            return await self._send(request, url, headers, listens)
        except CapdexError as error:
            content, headers = self._standing_for(error), {"content-type": _JSON}
            return httpx2.Response(502, headers=headers, content=content, request=request)

    async def _send(
        self, request: httpx2.Request, url: URL, headers: dict[str, str], listens: bool
    ) -> httpx2.Response:
        body = await request.aread()
        asked = asked_in(body)
        async with AsyncExitStack() as stack:
            response = await stack.enter_async_context(
                self._egress.open(request.method, url, headers, body or None)
            )
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise bad_reply("is compressed, which was not asked for")
            if 300 <= response.status < 400:
                why = "redirects of MCP services are not followed"
                fix = "name the final URL of the service"
                raise Refused("the service redirects", Code.PERMISSION_DENIED, why, fix)
            kept = {
                name: value.encode("ascii", "replace").decode()  # httpx writes no other letters
                for name, value in response.headers.items()
                if name.lower() in _KEPT_HEADERS
            }
            if "event-stream" in response.headers.get("Content-Type", ""):
                events = _Events(response, stack.pop_all(), asked, self._standing_for, listens)
                return httpx2.Response(response.status, headers=kept, stream=events)
            if response.status >= 500 or response.status in (401, 403, 429):
                fault = failure(url.raw_host or "", response.status)
                raise fault if isinstance(fault, Unavailable) else replace(fault, fix=SERVICE)
            content = await read(response, MAX_BODY_BYTES)
            # The reference servers answer 400, not 404, for a session that they do not know.
            forgot = response.status == 400 and b"session" in content.lower()
            status = 404 if forgot else response.status
            kind, data = response.headers.get("Content-Type", ""), b""
            if status < 400 and asked is not None:
                if not kind.lower().startswith(_JSON):
                    why = f"it has the status {status} and the content type {kind[:80]!r}"
                    raise malformed(why)
                data = answer_in(asked, content)
                if asked.waits:
                    raise malformed("it is no answer")
            # Of 404 the SDK believes the body, which each server words otherwise.
            elif status != 404 or "mcp-session-id" not in headers:
                with suppress(ValueError):  # else the status says enough
                    data = orjson.dumps({"id": None, **read_message(content)})
            return httpx2.Response(status, headers=kept, content=data)

    def _is_tired(self) -> bool:
        """Return True if the stream of what nobody asked for is not opened any more."""
        now = asyncio.get_running_loop().time()
        self._streams = max(0.0, self._streams - (now - self._streamed) / STREAM_S) + 1
        self._streamed = now
        return self._streams > MAX_STREAMS

    def _standing_for(self, error: CapdexError) -> bytes:
        """Return an answer that stands for an error of ours, which `fault` gives back."""
        token = secrets.token_hex(16)  # a server that repeats one cannot know the next
        while len(self._faults) >= _MAX_FAULTS:  # those of notifications are never asked for
            del self._faults[next(iter(self._faults))]
        self._faults[token] = error
        body = {"code": _FAULT, "message": "refused by the router", "data": token}
        return orjson.dumps({"jsonrpc": "2.0", "id": None, "error": body})


class McpProgram:
    """A program that speaks MCP on its stdin and stdout, each message a line within bounds."""

    def __init__(self, server: StdioServerParameters) -> None:
        self.replies = Replies()
        self.ended = False
        self._server = server
        self._fault: CapdexError | None = None

    def fault(self, data: object) -> CapdexError | None:
        """Return the error of ours in the `data` of an error, else why the session was ended."""
        return data if isinstance(data, CapdexError) else self._fault

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        """Start the program, and end it with its whole process group; raises Unavailable."""
        # A socket, as Node.js gives it: its end does not wait for others that hold it, as a pipe's.
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=MAX_LINE_BYTES)
        with theirs, closing(writer):
            try:
                process = await asyncio.create_subprocess_exec(
                    *(self._server.command, *self._server.args),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    env=get_default_environment() | (self._server.env or {}),
                    cwd=self._server.cwd,
                    start_new_session=True,
                )
            except OSError as error:
                why = f"{self._server.command}: {error.strerror}"
                fix = "a person must install it, or correct its command"
                raise Unavailable("its program does not start", _GONE, why, fix) from None
            theirs.close()
            incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

            clock, unasked, then = asyncio.get_running_loop().time, 0.0, 0.0

            async def hear() -> None:
                nonlocal unasked, then
                async with incoming:  # whose end is told when it is known how the program ended
                    try:
                        while write.statistics().tasks_waiting_send <= MAX_UNREAD:
                            await asyncio.sleep(0)  # many lines are there at once
                            line, now = await reader.readuntil(), clock()
                            unasked = max(0.0, unasked - (now - then) * UNASKED_BYTES_S) + len(line)
                            then = now
                            if unasked > MAX_UNASKED_BYTES:
                                break
                            if message := self.replies.read(line):
                                unasked += PASSED_BYTES
                                await incoming.send(SessionMessage(message))
                        raise asyncio.LimitOverrunError("", 0)
                    except asyncio.LimitOverrunError:
                        what = "the MCP server was ended"
                        self._fault = ExecutionFailed(what, why=_OVER, fix=SERVICE)
                    except (asyncio.IncompleteReadError, OSError, anyio.BrokenResourceError):
                        pass  # one of both sides has ended the session
                    finally:
                        writer.transport.abort()
                        with anyio.CancelScope(shield=True):
                            why = await _end(process)
                        self._fault = self._fault or Unavailable(ENDED, _GONE, why, "try again")
                        self.ended = True

            async def outlive() -> None:
                await process.wait()  # others may hold its socket, as a child that it left behind
                await asyncio.sleep(END_S)  # what it sent before is still read
                writer.transport.abort()

            async def tell() -> None:
                nonlocal unasked
                with suppress(OSError):
                    async for item in outgoing:
                        if isinstance(item.message, types.JSONRPCRequest):
                            unasked = 0.0
                            self.replies.asked(item.message.id)
                        writer.write(text_of(item.message) + b"\n")
                        await writer.drain()

            async with read, write, outgoing, anyio.create_task_group() as group:
                for task in (hear, tell, outlive):
                    group.start_soon(task)
                try:
                    yield read, write
                finally:
                    group.cancel_scope.cancel()


@dataclass(eq=False)
class _Events(httpx2.AsyncByteStream):
    """The body of a reply that is a stream of events, bounded in bytes."""

    response: aiohttp.ClientResponse
    stack: AsyncExitStack
    asked: Replies | None
    carried: Callable[[CapdexError], bytes]
    listens: bool = False  # to what nobody asked for, which is begun anew and not resumed
    messages: int = 0  # for the SDK, so far

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        read, rest = 0, bytearray()
        try:
            async for chunk in self.response.content.iter_any():
                read += len(chunk)
                if read > MAX_BODY_BYTES:
                    large = bad_reply("is too large", f"it is over {MAX_BODY_BYTES} bytes")
                    yield b"data:%s\n\n" % self.carried(large)
                    return
                rest += chunk.replace(b"\r", b"")
                if b"\n\n" in rest[-len(chunk) - 1 :]:
                    *events, rest = rest.split(b"\n\n")
                    for start in range(0, len(events), EVENTS_AT_ONCE):
                        await asyncio.sleep(0)  # the SDK reads all that it is given in one turn
                        told: list[bytes] = []
                        try:
                            some = events[start : start + EVENTS_AT_ONCE]
                            told.extend(map(self._read, filter(None, some)))
                        except CapdexError as error:  # of which the first one ends the stream
                            yield b"".join([*told, b"data:%s\n\n" % self.carried(error)])
                            return
                        yield b"".join(told)
        except aiohttp.ClientError:
            raise httpx2.StreamError("the service closed its stream") from None
        except ValueError as error:
            raise httpx2.StreamError(f"the stream of the service is {error}") from None

    @override
    async def aclose(self) -> None:
        self.response.close()  # an endless stream is not read to its end
        await self.stack.aclose()

    def _read(self, event: bytearray) -> bytes:
        """Return an event as the SDK may read it; raises ValueError, and what fails its call."""
        lines = b"\n%s\n" % event
        if _last(lines, b"event") not in (None, b"", b"message"):
            return b""
        data = b"\n".join(map(bytes.strip, _DATA.findall(lines)))
        id_, retry = _last(lines, b"id"), _last(lines, b"retry")
        told = [b"id:%s\n" % id_] if id_ is not None and not self.listens else []
        if retry and retry.isdigit():
            told.append(b"retry:%d\n" % max(int(retry[:9]), MIN_RETRY_MS))
        if not data and not told:
            return b""
        if self.asked is not None:
            data = answer_in(self.asked, data)
        elif data:
            data = orjson.dumps(message) if (message := read_message(data)) else b""
        self.messages += bool(data)
        if self.messages > MAX_MESSAGES:
            what = "the MCP service sends far more than it was asked"
            raise ExecutionFailed(what, fix=SERVICE, details=SENT)
        return b"%sdata:%s\n\n" % (b"".join(told), data)


def _last(lines: bytes, name: bytes) -> bytes | None:
    """Return the last value that the lines of an event have for a field."""
    _, found, rest = lines.rpartition(b"\n%s:" % name)
    return rest.partition(b"\n")[0].strip() if found else None


async def _end(process: asyncio.subprocess.Process) -> str:
    """End a program with its process group; return why, in words."""
    why = "its program closed its output"
    for number, wait_s in ((0, END_S), (signal.SIGTERM, END_S), (signal.SIGKILL, KILLED_S)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)  # 0 only waits
        with anyio.move_on_after(wait_s):
            status = await process.wait()
            by = f"with status {status}" if status >= 0 else f"by signal {-status}"
            why = why if number else f"its program ended {by}"
    return why
