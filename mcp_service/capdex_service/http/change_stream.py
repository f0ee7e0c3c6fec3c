"""`/v1/changes/stream`: the feed of changes as Server-Sent Events (HTML Standard, §9.2).

Each change is an event whose id is its place in the feed, so that a client that reconnects with
`Last-Event-ID` misses none. A place beyond the index is of another one: the event `reset` says so,
and all changes follow from the beginning. A comment is sent in quiet times, so that both ends and
everything in between see that the connection lives.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from itertools import starmap
from typing import Final

import orjson
from starlette.types import Receive, Scope, Send

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.json import Json
from capdex.net.tasks import end
from capdex_service.http.parameters import read_parameters
from capdex_service.http.problem import problem
from capdex_service.limits.streams import StreamPlaces, left, send_part
from capdex_service.queries.changes import FeedPlace, read_feed
from capdex_service.queries.reader import Reader

HEARTBEAT_S: Final = 15.0  # proxies close what is silent for 30 to 60 s
LIFETIME_S: Final = 3600.0  # then the client reconnects, perhaps to a node with fewer streams
BATCH: Final = 100
RETRY_MS: Final = 2000

# A client that reads EventSource of a browser never tries again after another status than 200.
_RESET: Final = b"id: 0\nevent: reset\ndata: %s\n\n"
_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back
]


class ChangeStream:
    """The ASGI application of the stream; `close` ends all streams and refuses new ones."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._places = reader, StreamPlaces()
        self._open: set[asyncio.Task[None]] = set()
        self._closed = False

    async def close(self) -> None:
        """End all streams, whose clients will reconnect, to another node."""
        self._closed = True
        await end(self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream the changes after `Last-Event-ID`, after `since`, or from now on."""
        with ExitStack() as held:
            try:
                since = await self._since(scope)
                if scope["method"] != "HEAD":
                    held.enter_context(self._places.take(scope))
            except CapdexError as error:
                await problem(error)(scope, receive, send)
                return
            await self._answer(scope, receive, send, since)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, since: FeedPlace) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        if scope["method"] != "HEAD":
            stream = asyncio.create_task(self._stream(send, since))
            gone = asyncio.create_task(left(receive))
            self._open.add(stream)
            try:
                await asyncio.wait((stream, gone), return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end((stream, gone))
                self._open.discard(stream)
        await send({"type": "http.response.body", "body": b""})

    async def _since(self, scope: Scope) -> FeedPlace:
        """Return the place to start at; raises InvalidInput, or Unavailable if too many listen."""
        given = read_parameters(scope["query_string"], ("since",))
        last = [value for key, value in scope["headers"] if key == b"last-event-id"]
        text = last[-1].decode("latin-1") if last else given.get("since")
        moment = await self._reader.moment()
        if self._closed:
            raise Unavailable("this node is ending", Code.TIMEOUT, fix="ask another node")
        return FeedPlace(moment.revision) if text is None else FeedPlace.parse(text)

    async def _stream(self, send: Send, since: FeedPlace) -> None:
        """Send changes as they come; ends after a time, and when the client reads no more."""
        clock = asyncio.get_running_loop().time
        ends_at, quiet_until = clock() + LIFETIME_S, clock() + HEARTBEAT_S
        await send_part(send, b"retry: %d\n\n" % RETRY_MS)
        while clock() < ends_at:
            try:
                page = await self._reader.read(read_feed, since, BATCH)
            except InvalidInput as error:  # another index, or an older state, took the place
                since = FeedPlace(0)
                await send_part(send, _RESET % orjson.dumps({"message": error.message}))
                continue
            since = page.after
            if page.entries:
                await send_part(send, b"".join(starmap(_event, page.entries)))
                quiet_until = clock() + HEARTBEAT_S
            if page.more:
                continue
            try:
                async with asyncio.timeout_at(min(quiet_until, ends_at)):
                    await self._reader.wait(since.revision)
            except TimeoutError:
                await send_part(send, b": nothing new\nid: %s\n\n" % str(since).encode("ascii"))
                quiet_until = clock() + HEARTBEAT_S


def _event(place: FeedPlace, change: Json) -> bytes:
    event = b"id: %s\nevent: change\ndata: %s\n\n"
    return event % (str(place).encode("ascii"), orjson.dumps(change))
