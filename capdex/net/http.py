"""Small HTTP/1.1 client for one-shot commands: bounded in bytes and time, quick to import.

A command imports this in a sixth of the time that aiohttp takes. Long-running processes use
aiohttp instead: it compresses replies and caches DNS. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Thread
from typing import Final, Self, cast
from urllib.parse import quote, unquote, urlsplit

import httptools
from typing_extensions import override

CONNECT_S: Final = 5.0
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
        try:
            address, lines = _head(method, url)
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
                connection = await _connect(address)
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
        self.reusable = False

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


async def _connect(address: Address) -> _Connection:
    """Open a connection to the first address of the host that accepts one."""
    scheme, host, port = address
    tls, name = (ssl.create_default_context(), host) if scheme == "https" else (None, None)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_S):
            failed: OSError | None = None
            addresses = await _resolve(host, port)
            for numeric in addresses:
                try:
                    async with asyncio.timeout(CONNECT_S / len(addresses)):  # time for the next one
                        _, connection = await loop.create_connection(
                            _Connection, numeric, port, ssl=tls, server_hostname=name
                        )
                except OSError as error:
                    failed = failed or error
                else:
                    return connection
    except OSError as error:
        failed = error
    raise HttpError(words_of_connection(failed)) from None


def words_of_connection(error: OSError | None) -> str:
    """Return in a few words why no connection could be made."""
    if isinstance(error, ssl.SSLError):
        why = getattr(error, "verify_message", None)  # that of a certificate, as "has expired"
        return f"TLS failed: {', '.join(filter(None, (error.reason, why))) or 'no details'}"
    late = isinstance(error, TimeoutError) and error.errno is None
    known = f"no connection within {CONNECT_S:.0f} s" if late else None
    if error is not None and error.errno is not None:
        known = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno)
    proxy = any(x.lower() in ("http_proxy", "https_proxy", "all_proxy") for x in os.environ)
    direct = proxy and isinstance(error, TimeoutError | socket.gaierror)
    why = "; the proxy of this environment is not used" if direct else ""
    return (known or "no connection").lower() + why


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


def _head(method: str, url: str) -> tuple[Address, list[str]]:
    """Return where to connect, and the request's first lines; raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(url)
    default = 443 if parts.scheme == "https" else 80
    address = parts.scheme, parts.hostname, parts.port or default
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    if parts.query:
        target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    host = parts.netloc.rpartition("@")[2].encode("idna").decode()
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.append(f"Authorization: Basic {b64encode(pair.encode()).decode()}")
    return address, lines
