"""The MCP endpoint of clients with sessions (Streamable HTTP up to 2025-11-25).

A POST passes without its session id, since calls do not depend on it; a GET opens the stream of the
session's notifications, and a DELETE ends it. Requests of 2026-07-28 have no sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson
import structlog
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capdex.errors import CapdexError
from capdex.net.tasks import end
from capdex_service.limits.streams import left, send_part
from capdex_service.mcp.subscriptions.feed import Feed, FeedFollower
from capdex_service.mcp.subscriptions.interest import Interest, notification
from capdex_service.mcp.subscriptions.methods import SESSION
from capdex_service.mcp.subscriptions.sessions import Sessions

HEARTBEAT_S: Final = 15.0  # proxies close streams on which nothing comes for a minute
ISSUED: Final = "capdex.issued"  # in the ASGI scope: the id that `initialize` has issued
_ID: Final = b"mcp-session-id"
_VERSION: Final = b"mcp-protocol-version"
_LEGACY: Final = frozenset(version.encode("ascii") for version in HANDSHAKE_PROTOCOL_VERSIONS)
_PRIMED: Final = b"2025-11-25"  # older clients cannot read an event without data
_ANYTHING: Final = (b"accept", b"application/json, text/event-stream")
_STREAM: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

log = structlog.get_logger(part="mcp")


class SessionEndpoint:
    """Checks and issues session ids in front of `calls`, which answers POST requests."""

    def __init__(self, calls: ASGIApp, feed: Feed, sessions: Sessions) -> None:
        self._calls, self._feed, self._sessions = calls, feed, sessions
        self._open: dict[str, FeedFollower] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a GET, POST or DELETE of `/mcp`."""
        headers = dict(scope["headers"])
        if b"accept" not in headers:  # then any type is accepted (RFC 9110, section 12.5.1)
            scope = {**scope, "headers": [*scope["headers"], _ANYTHING]}
        version = headers.get(_VERSION)
        session = headers.get(_ID)
        legacy = version is None or version in _LEGACY
        if scope["method"] == "POST":
            if not legacy or session is None:
                await self._calls(scope, receive, _issuing(scope, send) if legacy else send)
            elif self._sessions.knows(text := session.decode("latin-1")):
                plain = [(key, value) for key, value in scope["headers"] if key != _ID]
                await self._calls({**scope, "headers": plain, SESSION: text}, receive, send)
            else:
                await _refuse(send, 404, "no such session: initialize again")
        elif not legacy or scope["method"] == "HEAD":
            await _refuse(send, 405, "that is not done here", {b"allow": b"GET, POST, DELETE"})
        elif session is None:
            await _refuse(send, 400, "no session is named: send the Mcp-Session-Id of initialize")
        elif not self._sessions.owns(text := session.decode("latin-1")):
            await _refuse(send, 404, "no such session here: initialize again")
        elif scope["method"] == "DELETE":
            self._sessions.end(text)
            if text in self._open:
                self._open[text].end()
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._stream(text, scope, receive, send)

    async def _stream(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the notifications of a session until its client leaves or opens another stream."""
        headers = dict(scope["headers"])
        if b"text/event-stream" not in headers.get(b"accept", b""):
            await _refuse(send, 406, "a stream is text/event-stream")
            return
        record = self._sessions.read(session)
        since = _last_event(headers.get(b"last-event-id", b""))
        if since is None and record is not None:
            since = record.revision
        follow = self._feed.follow(self._interest(session), scope, since=since)
        try:
            async with follow as follower:
                if before := self._open.pop(session, None):
                    before.end()
                self._open[session] = follower
                await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
                primed = headers.get(_VERSION) == _PRIMED
                first = b"id: %d\ndata:\n\n" % follower.revision if primed else b": \n\n"
                await send_part(send, first)
                with suppress(TimeoutError):
                    await self._deliver(session, follower, receive, send)
        except CapdexError as error:
            await _refuse(send, error.kind.http, error.line, {b"retry-after": b"10"})

    async def _deliver(
        self, session: str, follower: FeedFollower, receive: Receive, send: Send
    ) -> None:
        gone = asyncio.create_task(left(receive))
        due = asyncio.create_task(follower.next())
        try:
            while self._sessions.owns(session):
                await asyncio.wait(
                    (gone, due), timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED
                )
                if gone.done():
                    return
                if not due.done():
                    await send_part(send, b": \n\n")
                elif events := due.result():
                    await send_part(send, b"".join(_event(x, follower.revision) for x in events))
                    due = asyncio.create_task(follower.next())
                else:
                    break
                self._sessions.note(session, follower.revision)
            await send({"type": "http.response.body", "body": b""})
        finally:
            await end([gone, due])
            if self._open.get(session) is follower:
                del self._open[session]

    def _interest(self, session: str) -> Callable[[], Interest]:
        """Return what tells the interest of a session at the moment."""
        uris: frozenset[str] = frozenset()
        known = Interest.of(uris)

        def interest() -> Interest:
            nonlocal uris, known
            with suppress(OSError):  # without a free descriptor what was known holds
                record = self._sessions.read(session)
                now = record.uris if record else frozenset()
                if now != uris:
                    uris, known = now, Interest.of(now)
            return known

        return interest


def issue(sessions: Sessions) -> Any:
    """Return the SDK's middleware that issues a session id with each answer to `initialize`."""

    async def middleware(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "initialize" and ctx.request is not None:
            ctx.request.scope[ISSUED] = sessions.issue()
        return result

    return middleware


def _issuing(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds the header of a session that was issued."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and ISSUED in scope:
            issued = (_ID, scope[ISSUED].encode("ascii"))
            message = {**message, "headers": [*message["headers"], issued]}
        await send(message)

    return sending


def _event(event: ResourceUpdated, revision: int) -> bytes:
    message = notification(event).model_dump(by_alias=True, mode="json", exclude_none=True)
    data = orjson.dumps({"jsonrpc": "2.0", **message})
    return b"id: %d\nevent: message\ndata: %s\n\n" % (revision, data)


def _last_event(text: bytes) -> int | None:
    return int(text) if text.isdigit() and len(text) < 19 else None


async def _refuse(
    send: Send, status: int, words: str, more: Mapping[bytes, bytes] | None = None
) -> None:
    """Send an error as JSON-RPC has it for a message without an id."""
    error = {"code": INVALID_REQUEST, "message": words}
    body = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    headers = [(b"content-type", b"application/json"), *(more or {}).items()]
    headers.append((b"content-length", str(len(body)).encode("ascii")))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
