"""HTTP connections with bounds: uvicorn's protocol on httptools, held to a ConnectionTable."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Final, cast

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from capdex.errors import Code, Unavailable
from capdex_service.limits.addresses import UNKNOWN
from capdex_service.limits.connections import ConnectionTable
from capdex_service.limits.refusal import refuse

MAX_PIPELINE: Final = 16  # requests of one connection that wait for their turn
MAX_HEAD_BYTES: Final = 64 * 1024  # and what one read brings more
MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024  # of a refused body, which is read and dropped

_HEAD_BEGIN: Final = b"HTTP/1.1 "
_HEAD_END: Final = b"\r\n\r\n"


class JoiningTransport:
    """A connection's transport, which holds the head of an answer until the body comes.

    uvicorn writes both by themselves, and each write is a system call and a packet: a fifth of the
    time of a short answer. A head that no body follows is sent in the next turn of the event loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._call_soon = transport, loop.call_soon
        self._head = b""
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        """Return what this class leaves to the transport."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write bytes, a head together with those that follow it."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(_HEAD_BEGIN) and data.endswith(_HEAD_END):
            self._head = data
            self._call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        """Close the connection when everything written is sent."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once; nothing more is sent."""
        self._head = b""
        self._transport.abort()

    def _flush(self) -> None:
        if self._head and not self.is_closing():
            self.write(b"")


class BoundedProtocol(HttpToolsProtocol):
    """One connection: its deadlines, the size of its heads, and the length of its pipeline."""

    def __init__(self, *arguments: Any, table: ConnectionTable, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.deadline = math.inf
        self.client_key = UNKNOWN
        self._table = table
        self._limits = table.limits
        self._in_head = self._in_request = self._refused = False
        self._request_bytes = 0

    def is_over(self) -> bool:
        """True if it only waits for the client to read the rest of its answer."""
        return self.transport.is_closing()

    def cut(self) -> None:
        """Close the connection at once, whatever is still to be sent."""
        self.deadline = math.inf
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first byte."""
        super().connection_made(cast("asyncio.Transport", JoiningTransport(transport, self.loop)))
        self._wait_until(self._limits.timeout_s)
        self._table.add(self, self.client[0] if self.client else UNKNOWN)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the table, and the requests that are still to be answered."""
        self._table.remove(self)
        self._refused = True
        super().connection_lost(exc)
        # They refer to this object. Cycles of thousands of connections would wait for the garbage
        # collector, which then stops all requests for a tenth of a second.
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Read bytes of the client, within the limits of a request."""
        if self._refused:
            return
        self._request_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        size = self._request_bytes if self._in_request else 0
        if size > (MAX_HEAD_BYTES if self._in_head else MAX_REQUEST_BYTES):
            self._refused = True
            if self._in_head and not self._is_answering():
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                self._wait_until(self._limits.timeout_s)
            else:
                self.cut()

    def on_message_begin(self) -> None:
        """Begin the time for a head."""
        if self._refused:
            return
        super().on_message_begin()
        self._in_head = self._in_request = True
        self._request_bytes = 0
        self._wait_until(self._limits.timeout_s)

    def on_headers_complete(self) -> None:
        """Begin the time for a body; a request behind too many others is answered 429."""
        self._in_head = False
        if self._refused:
            return
        app = self.app
        if len(self.pipeline) >= MAX_PIPELINE:
            self._refused = True  # no further byte of this connection is read
            self.app = _refuse_pipeline
        super().on_headers_complete()
        self.app = app
        self._wait_until(self._limits.timeout_s)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers of a body are dropped."""
        if self._in_head and not self._refused:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin to answer: only the application's own limits count from here."""
        if self._refused:
            return
        self._in_request = False
        super().on_message_complete()
        self._work_or_wait()

    def on_response_complete(self) -> None:
        """Begin the next request, or the time to wait for it: uvicorn's, without its timer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._table.waits(self)
            self._wait_until(self._limits.timeout_s)
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        if self._in_request:
            self._table.waits(self)
        else:
            self._work_or_wait()

    def pause_writing(self) -> None:
        """Begin the time for the client to read what it asked for."""
        super().pause_writing()
        self._table.waits(self)
        self._wait_until(self._limits.timeout_s)
        self._table.unread(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client has read most of it."""
        super().resume_writing()
        self._table.unread(self, 0)
        if not self._in_request:
            self._work_or_wait()

    def _work_or_wait(self) -> None:
        if not self._is_answering():
            self._table.waits(self)
            self._wait_until(self._limits.keep_alive_s)
        elif not self.flow.write_paused:
            self._table.works(self)
            self.deadline = math.inf

    def _is_answering(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def _wait_until(self, seconds: float) -> None:
        at = self.loop.time() + seconds
        # A client that does not read cannot buy time by sending.
        self.deadline = min(self.deadline, at) if self.flow.write_paused else at


_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
)


async def _refuse_pipeline(scope: Scope, receive: Receive, send: Send) -> None:
    what = "too many requests at once on one connection"
    fix = f"send at most {MAX_PIPELINE} before you read an answer"
    error = Unavailable(what, Code.RATE_LIMITED, fix=fix)
    await refuse(error, scope, receive, send, {"Connection": "close"})
