"""The MCP SDK's HTTP client on top of the egress guard, and errors carried through the SDK."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Final

import aiohttp
import httpx2
import orjson
from typing_extensions import override
from yarl import URL

from capdex.errors import CapdexError, Code, ExecutionFailed, Refused, Unavailable
from capdex.net.json_reply import is_dense
from router.bindings.egress import MAX_BODY_BYTES, Egress
from router.bindings.http import LONG_BYTES, MIN_VALUE_BYTES

_FAULT: Final = -32099  # a code of JSON-RPC's range for implementations
_MAX_FAULTS: Final = 64
_KEPT_HEADERS: Final = ("content-type", "mcp-session-id")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of an MCP session through the egress guard, to one origin only.

    An exception here would end the whole session, so that an error becomes a JSON-RPC error of
    which `fault` gives the original back.
    """

    def __init__(self, egress: Egress, url: URL) -> None:
        self._egress = egress
        self._origin = url.origin()
        self._faults: dict[str, CapdexError] = {}

    def fault(self, data: Any) -> CapdexError | None:
        """Return the error that the `data` of a JSON-RPC error stands for, if it is one of ours."""
        return self._faults.pop(data, None) if isinstance(data, str) else None

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = URL(str(request.url), encoded=True)
        try:
            if url.origin() != self._origin:
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
            data = bytes(content)
            if is_dense(data, long_bytes=LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES):
                raise ExecutionFailed("the reply of the service is megabytes of next to nothing")
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


class _Events(httpx2.AsyncByteStream):
    """The body of a reply that is a stream of events, bounded in bytes."""

    def __init__(self, response: aiohttp.ClientResponse, stack: AsyncExitStack) -> None:
        self._response = response
        self._stack = stack

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = values = 0
        try:
            async for chunk in self._response.content.iter_any():
                read += len(chunk)
                values += sum(map(chunk.count, (b",", b"[", b"{")))
                dense = read > LONG_BYTES and values > read // MIN_VALUE_BYTES
                if read > MAX_BODY_BYTES or dense:
                    raise httpx2.StreamError("the stream of the service is too long")
                yield chunk
        except aiohttp.ClientError:
            raise httpx2.StreamError("the service closed its stream") from None

    @override
    async def aclose(self) -> None:
        self._response.close()  # an endless stream is not read to its end
        await self._stack.aclose()


def _check_redirect(response: aiohttp.ClientResponse) -> None:
    if not 300 <= response.status < 400:
        return
    raise Refused(
        "the service redirects",
        Code.PERMISSION_DENIED,
        why="redirects of MCP services are not followed",
        fix="name the final URL of the service",
    )
