"""Small HTTP/1.1 client for one-shot commands: bounded in bytes and time, quick to import.

A command imports this in a sixth of the time that aiohttp takes. Long-running processes use
aiohttp instead: it compresses replies and caches DNS. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Thread
from typing import Final, Self, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

import httptools
from typing_extensions import override

from capdex.net.connection import CONNECT_S, proxy_of, words_of_connection

READ_S: Final = 20.0
MAX_HEAD_BYTES: Final = 64 * 1024
MAX_INFORMATIONAL: Final = 16  # responses (1xx) before the final one; a few hints are usual
IDLE_S: Final = 4.0  # a kept connection is reused within this time; many servers close after 5 s

Address = tuple[str, str, int]  # scheme, host, port


def redact(url: str) -> str:
    """Return a URL without user, path and query, which contain vendors' API keys."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid URL"
    host = parts.netloc.rpartition("@")[2]
    secret = parts.path.strip("/") or parts.query
    return f"{parts.scheme}://{host}{'/…' if secret else ''}" if host else "an invalid URL"


class HttpError(Exception):
    """The server gave no usable response; the message does not contain the URL."""


class ResponseTooLarge(HttpError):
    """The response has more bytes than the caller allows."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """HTTP requests with connections kept alive between them; close it after use."""

    def __init__(self) -> None:
        self._idle: dict[Address, list[tuple[float, _Connection]]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        for connections in self._idle.values():
            for _, connection in connections:
                connection.close()
        self._idle.clear()

    async def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        max_bytes: int,
        timeout_s: float = READ_S,
    ) -> HttpResponse:
        """Send one request; raises HttpError, ResponseTooLarge, or TimeoutError."""
        proxy = proxy_of(url)
        try:
            address, lines = _head(method, url, proxy)
        except ValueError:
            raise HttpError("the address is not an http(s) URL") from None
        # Some servers compress what nobody asked them to compress.
        given = {
            "Content-Length": str(len(body)),
            "Accept-Encoding": "identity",
            **(headers or {}),
        }
        lines += [f"{name}: {value}" for name, value in given.items()]
        message = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
        async with asyncio.timeout(timeout_s):
            connection = self._reusable(address)
            if connection is None:
                connection = await _connect(address, proxy)
            try:
                response = await connection.exchange(message, max_bytes)
            except BaseException:
                connection.close()
                raise
        if connection.reusable:
            self._idle.setdefault(address, []).append((time.monotonic(), connection))
        else:
            connection.close()
        return response

    def _reusable(self, address: Address) -> _Connection | None:
        idle = self._idle.get(address, [])
        while idle:
            since, connection = idle.pop()
            if connection.reusable and time.monotonic() - since < IDLE_S:
                return connection
            connection.close()
        return None


class _Connection(asyncio.Protocol):
    """A connection that reads one response at a time; httptools calls the `on_…` methods."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._result: asyncio.Future[HttpResponse] | None = None
        self.reusable = self._tunnels = False

    def close(self) -> None:
        """Close the connection without waiting."""
        self.reusable = False
        self._transport.abort()

    async def exchange(self, message: bytes, max_bytes: int) -> HttpResponse:
        """Send a request and return its response."""
        self._result = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._max_bytes = max_bytes
        self._headers: dict[str, str] = {}
        self._body = bytearray()  # not a list: an object for each tiny chunk takes 20 times as much
        self._received_bytes = self._informational = 0
        self._in_body = self.reusable = False
        self._transport.write(message)
        try:
            return await self._result
        finally:
            self._result = None

    async def tunnel(self, lines: list[str], host: str, tls: ssl.SSLContext) -> None:
        """Ask a proxy for a tunnel to a host, and start TLS in it (RFC 9110, 9.3.6)."""
        self._tunnels = True
        message = "\r\n".join([*lines, "", ""]).encode("latin-1")
        status = (await self.exchange(message, MAX_HEAD_BYTES)).status
        self._tunnels = False
        if not 200 <= status < 300:
            raise HttpError(f"it answers {status} when it is asked to connect")
        upgrade = asyncio.get_running_loop().start_tls
        self._transport = cast(
            asyncio.Transport, await upgrade(self._transport, self, tls, server_hostname=host)
        )

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance: the transports of uvloop have the methods, and not the base class.
        self._transport = cast(asyncio.Transport, transport)

    @override
    def data_received(self, data: bytes) -> None:
        if self._result is None or self._result.done():
            self.close()  # unrequested bytes would be mistaken for the next response
            return
        self._received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            self._fail(cause if isinstance(cause, HttpError) else HttpError("not HTTP"))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(HttpError("the response is not HTTP"))
        if not self._in_body and self._received_bytes > MAX_HEAD_BYTES:
            self._fail(HttpError("the head of the response is over the limit"))
        if self._received_bytes > 2 * self._max_bytes + MAX_HEAD_BYTES:  # chunk sizes and trailers
            self._fail(ResponseTooLarge("the response is over the limit"))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        if self._result is None or self._result.done():
            return
        framed = {"content-length", "transfer-encoding"} & self._headers.keys()
        if exc is None and self._in_body and not framed:
            self._complete()  # a body without a length ends with the connection
        else:
            self._fail(HttpError("the connection was closed before the response was complete"))

    def on_message_begin(self) -> None:
        """Refuse a second response to one request."""
        if self._in_body:
            raise HttpError("the server answered twice")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep one header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Refuse a body that is announced as too large."""
        self._in_body = self._parser.get_status_code() >= 200
        if self._tunnels and self._in_body:
            self._complete()  # what follows is the tunnel's
            return
        length = self._headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._max_bytes:
            raise ResponseTooLarge("the response is over the limit")

    def on_body(self, data: bytes) -> None:
        """Keep one piece of the body."""
        self._body += data
        if len(self._body) > self._max_bytes:
            raise ResponseTooLarge("the response is over the limit")

    def on_message_complete(self) -> None:
        """Finish the response, or go on reading after an informational one."""
        if self._in_body:
            self.reusable = self._parser.should_keep_alive() and not self._transport.is_closing()
            self._complete()
            return
        self._headers.clear()
        self._informational += 1
        if self._informational > MAX_INFORMATIONAL:
            raise HttpError("the server sends informational responses only")

    def _complete(self) -> None:
        if self._result is not None and not self._result.done():
            status, body = self._parser.get_status_code(), bytes(self._body)
            self._result.set_result(HttpResponse(status, self._headers, body))

    def _fail(self, error: HttpError) -> None:
        if self._result is not None and not self._result.done():
            self._result.set_exception(error)
        self.close()


async def _connect(address: Address, proxy: str | None) -> _Connection:
    """Open a connection to a server, if need be through a proxy; raises HttpError."""
    scheme, host, port = address
    tls = ssl.create_default_context() if scheme == "https" else None
    connection: _Connection | None = None
    try:
        async with asyncio.timeout(CONNECT_S):
            if proxy is None:
                return await _open(host, port, tls)
            way = urlsplit(proxy)
            connection = await _open(way.hostname or "", way.port or 80, None)
            if tls is not None:
                place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
                await connection.tunnel([*lines, *_basic("Proxy-Authorization", way)], host, tls)
            return connection
    except (OSError, HttpError) as error:
        if connection is not None:
            connection.close()
        raise HttpError(words_of_connection(error, proxy)) from None


async def _open(host: str, port: int, tls: ssl.SSLContext | None) -> _Connection:
    """Connect to the first address of a host that accepts a connection; raises OSError."""
    failed: OSError | None = None
    addresses = await _resolve(host, port)
    for numeric in addresses:
        try:
            async with asyncio.timeout(CONNECT_S / len(addresses)):  # time for the next one
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection, numeric, port, ssl=tls, server_hostname=host if tls else None
                )
        except OSError as error:
            failed = failed or error
        else:
            return connection
    raise failed or OSError("no such host")


async def _resolve(host: str, port: int) -> list[str]:
    """Return the host's numeric addresses.

    The lookup runs in a daemon thread: asyncio's own threads are joined when the loop closes, and
    a lookup without a DNS server can take longer than the whole command.
    """
    answer = concurrent.futures.Future[list[str]]()
    answer.set_running_or_notify_cancel()  # so that one who waits no more does not disturb it

    def look_up() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer.set_result(list(dict.fromkeys(str(info[4][0]) for info in infos)))
        except OSError as error:
            answer.set_exception(error)
        except UnicodeError:  # a label over 63 characters
            answer.set_exception(OSError("no such host"))

    Thread(target=look_up, daemon=True).start()
    return await asyncio.wrap_future(answer)


def _head(method: str, url: str, proxy: str | None) -> tuple[Address, list[str]]:
    """Return the server's address, and the request's first lines; raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(url)
    default = 443 if parts.scheme == "https" else 80
    address = parts.scheme, parts.hostname.encode("idna").decode(), parts.port or default
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    if parts.query:
        target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    host = parts.netloc.rpartition("@")[2].encode("idna").decode()
    more = _basic("Authorization", parts)
    if proxy is not None and parts.scheme == "http":  # without a tunnel (RFC 9112, 3.2.2)
        target, more = (
            f"http://{host}{target}",
            more + _basic("Proxy-Authorization", urlsplit(proxy)),
        )
    return address, [f"{method} {target} HTTP/1.1", f"Host: {host}", *more]


def _basic(header: str, parts: SplitResult) -> list[str]:
    """Return the header with the user and password of a URL, if it has them (RFC 7617)."""
    if parts.username is None:
        return []
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return [f"{header}: Basic {b64encode(pair.encode()).decode()}"]
