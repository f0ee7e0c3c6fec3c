"""Trustless gateways: blocks over HTTP, each checked by its hash."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import ClassVar, Final, Self
from urllib.parse import urlsplit

import aiohttp
from typing_extensions import override

from capdex.errors import Code, UsageError
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.net.connection import proxy_of
from capdex.net.http import redact
from capdex.net.ipfs.source import FetchOutcome, SourceFault
from capdex.net.rpc.aiohttp_transport import Response, words_of
from capdex.net.rpc.endpoint import without_secrets
from capdex.net.rpc.errors import retry_after
from capdex.net.rpc.replies import what_it_seems

# For one block, in seconds; a package has a few KiB.
TIMEOUT: Final = aiohttp.ClientTimeout(total=60.0, connect=5.0, sock_read=15.0)
LEAST_BYTES_S: Final = 1024  # a source that sends slower holds a worker for nothing
GRACE_S: Final = 5.0  # the least rate applies after this
# No block of a package is larger; a larger block needs a Content-Length.
MAX_UNDECLARED_BYTES: Final = MAX_PACKAGE_BYTES + 4096
_CHUNK_BYTES: Final = 64 * 1024
_START_BYTES: Final = 1024  # of a reply with another status than 200
_STATUSES: Final = {
    404: FetchOutcome.ABSENT,
    408: FetchOutcome.SLOW,
    410: FetchOutcome.ABSENT,
    429: FetchOutcome.BUSY,
    503: FetchOutcome.BUSY,
    504: FetchOutcome.SLOW,  # the gateway did not find the block in time
}


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0  # a port may be none, too
    except ValueError:
        return False
    more = parts.username is not None or set("?#") & set(url)
    return parts.scheme in ("http", "https") and named and not more


class Http(ABC):
    """Blocks by one HTTP request each, bounded in size, time and rate, and hashed.

    Redirects are not followed, so that no request goes to a host that a server names. The label
    has no path, which may be a key.
    """

    kind: ClassVar[str] = "http"
    prefix: ClassVar[str] = ""  # of the label

    def __init__(self, base_url: str) -> None:
        if not _is_http(base_url):
            raise UsageError(
                # The URL may contain a secret, so it is not shown.
                "an IPFS address is not an http URL of host, port and path",
                Code.CONFIG,
                fix="write it like http://127.0.0.1:8080; only a node takes several, with spaces"
                " between them",
            )
        self.base_url = base_url.rstrip("/")
        self.label = self.prefix + redact(base_url)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, cid: Cid) -> bytes:
        """Return the block with its hash checked; raises SourceFault for any other reply."""
        try:
            data = await self._read(cid)
        except aiohttp.ConnectionTimeoutError:
            why = f"no connection within {TIMEOUT.connect:g} s"
            raise self.fault(why, FetchOutcome.FAILED) from None
        except TimeoutError:
            raise self.fault(f"it did not give {cid} in time", FetchOutcome.SLOW) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            why = words_of(error, proxy_of(self.base_url))[:200]
            raise self.fault(why, FetchOutcome.FAILED) from None
        if not cid.matches(data):
            page = what_it_seems(200, data) if data.lstrip().startswith(b"<") else ""
            raise self.fault(f"it answered {cid} with other bytes{page}", FetchOutcome.WRONG)
        return data

    def fault(
        self, why: str, outcome: FetchOutcome, retry_after_s: float | None = None
    ) -> SourceFault:
        """Return the error for a request of this source that failed."""
        return SourceFault(
            f"{self.label} did not give the block",
            why=without_secrets(why, self.base_url),
            fix="check that it runs, or name another: gateway-url, or --ipfs of publish and node",
            outcome=outcome,
            retry_after_s=retry_after_s,
        )

    def outcome(self, status: int) -> FetchOutcome:
        """Classify a status other than 200."""
        return _STATUSES.get(status, FetchOutcome.FAILED if status >= 500 else FetchOutcome.REFUSED)

    def hint(self, status: int, start: bytes) -> str:
        """Return what a reply with a status other than 200 seems to be, by its first bytes."""
        return what_it_seems(status, start)

    @abstractmethod
    def request(self, cid: Cid) -> tuple[str, str]:
        """Return method and URL of the request for one raw block."""

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session, opened on first use inside the running loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=TIMEOUT,
                auto_decompress=False,
                response_class=Response,
                connector=aiohttp.TCPConnector(limit=0),  # the caller limits concurrency
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _read(self, cid: Cid) -> bytes:
        method, url = self.request(cid)
        headers = {"Accept": "application/vnd.ipld.raw", "Accept-Encoding": "identity"}
        clock = asyncio.get_running_loop().time
        async with self.session.request(
            method, url, headers=headers, allow_redirects=False, proxy=proxy_of(url)
        ) as response:
            if response.status != 200:
                start = await response.content.read(_START_BYTES)
                raise self.fault(
                    f"it answered {response.status} for {cid}{self.hint(response.status, start)}",
                    self.outcome(response.status),
                    retry_after(response.headers.get("Retry-After")),
                )
            if response.headers.get("Content-Encoding", "").lower() not in ("", "identity"):
                why = "it answered with an encoding that was not asked for"
                raise self.fault(why, FetchOutcome.REFUSED)
            declared = response.content_length
            most = MAX_BLOCK_BYTES if declared is not None else MAX_UNDECLARED_BYTES
            data, began = bytearray(), clock()
            if (declared or 0) > most:
                raise self.fault(f"it would answer with {declared} bytes", FetchOutcome.WRONG)
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                data += chunk
                if len(data) > most:
                    raise self.fault(f"it answered with more than {most} bytes", FetchOutcome.WRONG)
                if len(data) < (clock() - began - GRACE_S) * LEAST_BYTES_S:
                    why = f"it gives less than {LEAST_BYTES_S} bytes/s"
                    raise self.fault(why, FetchOutcome.SLOW)
            return bytes(data)


class Gateway(Http):
    """`GET /ipfs/<cid>?format=raw` (trustless gateway specification)."""

    kind, prefix = "gateway", "gateway:"

    @override
    def request(self, cid: Cid) -> tuple[str, str]:
        # Many write a gateway with its path, https://HOST/ipfs.
        return "GET", f"{self.base_url.removesuffix('/ipfs')}/ipfs/{cid}?format=raw"

    @override
    def hint(self, status: int, start: bytes) -> str:
        """Return what a reply seems to be: a gateway says why it has no block, Kubo's RPC this."""
        named = ": it is no gateway; write its URL alone if it is Kubo's RPC"
        return named if start.strip() == b"404 page not found" else super().hint(status, start)
