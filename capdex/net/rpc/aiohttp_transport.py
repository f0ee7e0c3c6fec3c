"""HTTP of long-running processes by aiohttp: bounded responses, and the transport of JSON-RPC."""

from __future__ import annotations

from typing import Self

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from typing_extensions import override

from capdex.net.connection import CONNECT_S, proxy_of, words_of_connection
from capdex.net.http import MAX_INFORMATIONAL, READ_S
from capdex.net.rpc.errors import RpcFault, retry_after, rpc_error
from capdex.net.rpc.replies import RpcReply
from capdex.net.rpc.transport import HEADERS, MAX_REPLY_BYTES, Transport, no_answer, too_large


class Response(aiohttp.ClientResponse):
    """Raises ClientError after MAX_INFORMATIONAL, so that a server cannot keep the loop busy."""

    @override
    async def start(self, connection: Connection) -> Self:
        protocol = connection.protocol
        if protocol is None:
            raise aiohttp.ServerDisconnectedError
        left = MAX_INFORMATIONAL + 1

        async def read() -> tuple[RawResponseMessage, StreamReader]:
            nonlocal left
            left -= 1
            if left < 0:
                raise aiohttp.ClientConnectionError("the server sends informational responses only")
            return await type(protocol).read(protocol)

        protocol.read = read  # type: ignore[method-assign] # of this connection, while it starts
        try:
            await super().start(connection)
        finally:
            del protocol.read
        return self


def open_session(response: type[Response] = Response) -> aiohttp.ClientSession:
    """Open a session with the time limits of every call; needs a running loop."""
    timeout = aiohttp.ClientTimeout(
        total=CONNECT_S + READ_S, sock_connect=CONNECT_S, sock_read=READ_S
    )
    return aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 20, response_class=response)


def words_of(error: Exception, proxy: str | None) -> str:
    """Return in one line what an error says, without the address that aiohttp adds to some.

    `proxy` is what the request was sent through.
    """
    if isinstance(error, OSError):
        while isinstance(error, aiohttp.ClientConnectorError):  # of a proxy, one in another
            error = error.os_error
        return words_of_connection(error, proxy)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy of this environment answers {error.status}"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the reply ended before it was whole, or cannot be decompressed"
    words = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return " ".join(words.split()) or type(error).__name__


class AiohttpTransport(Transport):
    """Sends requests by one aiohttp session, opened on first use inside the running loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self.zipped: set[str] = set()

    @override
    async def post(self, url: str, label: str, body: bytes) -> RpcReply:
        if self._session is None:
            self._session = open_session()
        try:
            async with self._session.post(
                url, data=body, headers=HEADERS, allow_redirects=False, proxy=proxy_of(url)
            ) as response:
                if "Content-Encoding" in response.headers:
                    self.zipped.add(label)
                wait_s = retry_after(response.headers.get("retry-after"))
                return RpcReply(response.status, wait_s, await _read(label, response))
        except TimeoutError:
            raise no_answer(label) from None
        except (aiohttp.ClientError, OSError) as error:
            why = words_of(error, proxy_of(url))[:300]
            raise rpc_error(label, RpcFault.TRANSIENT, why) from None

    @override
    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _read(label: str, response: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            raise too_large(label)
        pieces.append(piece)
    return b"".join(pieces)
