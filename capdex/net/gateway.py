"""A trustless gateway: blocks over HTTP that are worth nothing until their hash is checked."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

import aiohttp
from typing_extensions import override

from capdex.cid import Cid
from capdex.errors import Code, Unavailable, UsageError
from capdex.unixfs import MAX_BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one block may take; seconds, and bytes a second. A package is a few KiB."""

    connect_s: float = 5.0
    first_byte_s: float = 15.0
    total_s: float = 60.0
    floor_bytes_s: int = 1024  # a source that drips holds a worker and gives nothing
    grace_s: float = 5.0  # the floor counts only after this


LIMITS: Final = Limits()
_CHUNK_BYTES: Final = 64 * 1024


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username


class Http(ABC):
    """Blocks by one HTTP request each, bounded in size, time and rate; the hash decides.

    `request` gives the method and URL for a CID. Redirects are not followed: no request ever goes
    to a host that somebody else names.
    """

    def __init__(self, base_url: str, *, label: str, limits: Limits = LIMITS) -> None:
        if not _is_http(base_url):
            raise UsageError(
                "an IPFS address is no http address without a user in it",  # may be a credential
                Code.CONFIG,
                fix="write it like http://127.0.0.1:8080",
            )
        self.base_url = base_url.rstrip("/")
        self.label = label
        self.limits = limits
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
        """The block as it is, its hash checked; raises Unavailable for anything else that came."""
        try:
            async with asyncio.timeout(self.limits.total_s):
                data = await self._read(cid)
        except TimeoutError:
            raise self.fault(f"it did not give {cid} in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self.fault(str(error)[:200] or type(error).__name__) from None
        if not cid.matches(data):
            raise self.fault(f"it answered {cid} with other bytes")
        return data

    def fault(self, why: str) -> Unavailable:
        """This source did not give what it was asked for."""
        return Unavailable(
            f"{self.label} did not give the block",
            Code.IPFS_UNAVAILABLE,
            why=why,
            fix="check that it runs, or name another source with --ipfs",
        )

    @abstractmethod
    def request(self, cid: Cid) -> tuple[str, str]:
        """Method and URL that ask for one raw block."""

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session, opened on first use inside the running loop."""
        if self._session is None:
            limits = self.limits
            timeout = aiohttp.ClientTimeout(
                total=limits.total_s,
                sock_connect=limits.connect_s,
                sock_read=limits.first_byte_s,
            )
            self._session = aiohttp.ClientSession(
                timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    async def _read(self, cid: Cid) -> bytes:
        method, url = self.request(cid)
        headers = {"Accept": "application/vnd.ipld.raw", "Accept-Encoding": "identity"}
        clock = asyncio.get_running_loop().time
        async with self.session.request(
            method, url, headers=headers, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise self.fault(f"it answered {response.status} for {cid}")
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise self.fault("it answered with an encoding that was not asked for")
            data, began = bytearray(), clock()
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                data += chunk
                if len(data) > MAX_BLOCK_BYTES:
                    raise self.fault(f"it answered with more than {MAX_BLOCK_BYTES} bytes")
                over_s = clock() - began - self.limits.grace_s
                if len(data) < over_s * self.limits.floor_bytes_s:
                    raise self.fault(f"it gives less than {self.limits.floor_bytes_s} bytes/s")
            return bytes(data)


class Gateway(Http):
    """`GET /ipfs/<cid>?format=raw`, as the trustless gateway specification says."""

    def __init__(self, base_url: str, *, limits: Limits = LIMITS) -> None:
        super().__init__(base_url, label=f"gateway:{base_url.rstrip('/')}", limits=limits)

    @override
    def request(self, cid: Cid) -> tuple[str, str]:
        """Method and URL that ask for one raw block."""
        return "GET", f"{self.base_url}/ipfs/{cid}?format=raw"
