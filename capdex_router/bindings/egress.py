"""All HTTP of bindings: public hosts over https alone, unless the user allows another by name.

The check is made at connect, on the address that the socket is opened for, so that neither a
literal address nor a DNS answer that changes gets around it. Cookies and redirects are not
followed. Through a proxy, which the user allows by PROXY_TOOLS, the names of hosts are checked, and
the proxy decides which addresses they have.
"""

from __future__ import annotations

import asyncio
import os
import socket
import zlib
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

import aiohttp
from yarl import URL

from capdex import __version__
from capdex.errors import Code, ExecutionFailed, InvalidInput, Refused, Unavailable
from capdex.json import Json
from capdex.manifest.urls import host_fault
from capdex.net.connection import proxy_of
from capdex.net.rpc.aiohttp_transport import words_of
from capdex_router.model.refs import AUTHOR, SERVICE

MAX_BODY_BYTES: Final = 4 * 1024 * 1024  # of a reply, decompressed
MAX_CONNECTIONS: Final = 64
MAX_CONNECTIONS_PER_HOST: Final = 16
CONNECT_S: Final = 10.0
MAX_MEMBERS: Final = 256  # of the gzip data of a reply; an empty one takes 20 bytes
PROXY_TOOLS: Final = "CAPDEX_PROXY_TOOLS"
AGENT: Final = {"User-Agent": f"capdex/{__version__}"}
OWN_HEADERS: Final = AGENT | {"Accept-Encoding": "gzip"}  # unless a request sets them

# Details of a failure after which the service may have done what it was asked.
SENT: Final = {"sent": True}

_GZIP: Final = b"\x1f\x8b"
_REFUSED: Final = "the router refuses the address"
_CLOSED: Final = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052
# A user's allowance of a host reaches these, and no link-local, multicast or metadata address.
_INSIDE: Final = tuple(
    ip_network(net)
    for net in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
        *("::1/128", "fc00::/7"),
    )
)
# Metadata services of clouds that lie in those networks.
_METADATA: Final = tuple(ip_network(net) for net in ("100.100.100.200/32", "fd00:ec2::/32"))


def unwrap(address: str) -> IPv4Address | IPv6Address:
    """Return the address that packets end at: v4-mapped, NAT64 and 6to4 hold an IPv4 address.

    Raises ValueError for a text that is not an address.
    """
    ip = ip_address(address)
    if isinstance(ip, IPv4Address):
        return ip
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.sixtofour or ip


def address_fault(address: str, *, inside: bool = False) -> str | None:
    """Return the reason to refuse an address, or None; `inside` allows private ones."""
    try:
        ip = unwrap(address)
    except ValueError:
        return "it is not an IP address"
    if inside and any(ip in net for net in _INSIDE):
        metadata = any(ip in net for net in _METADATA)
        return "it is the address of a metadata service" if metadata else None
    return host_fault(f"[{ip}]" if ip.version == 6 else str(ip))


class _AddressRefused(OSError):
    """Raised where aiohttp expects a failed connection."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply; header names are in lower case, the body is decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Egress:
    """HTTP requests to public hosts, and to those that the user names; close it after use.

    `inside` names hosts (`127.0.0.1`, `printer.lan`, or either with `:port`) that may have private
    addresses and plain http. `addresses` says where to find something: a DID or an origin such as
    `https://api.example.com` to the URL that the user runs it at; its host needs no allowance.
    """

    def __init__(
        self, *, inside: Collection[str] = (), addresses: Mapping[str, str] | None = None
    ) -> None:
        self._addresses = {name: URL(url) for name, url in (addresses or {}).items()}
        hosts = {url.raw_authority for url in self._addresses.values()}
        bare = (host[1:-1] if host.endswith("]") else host for host in map(str.lower, inside))
        self._inside = hosts.union(bare)
        self._sessions: dict[tuple[bool, bool], aiohttp.ClientSession] = {}

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    def located(self, uri: str) -> URL:
        """Return the URL of a DID or an https URI; raises Refused for a DID without an address."""
        if (url := self._addresses.get(uri)) is not None:
            return url
        if not uri.startswith("did:"):
            return URL(uri, encoded=True)
        raise Refused(
            f"the router has no way to {uri[:200]}",
            Code.PERMISSION_DENIED,
            why="a DID says nothing about the URL, and nobody has said it",
            fix=f"a person can start the router, or this call, with --at {uri[:200]}=URL",
        )

    def allows_inside(self, url: URL) -> bool:
        """Return True if the user allows private addresses and plain http for the URL's host."""
        host = url.raw_host or ""
        return not self._inside.isdisjoint((host, f"{host}:{url.port}", url.raw_authority))

    async def fetch(
        self,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float,
        max_bytes: int = MAX_BODY_BYTES,
    ) -> Reply:
        """Return the reply to one request, whatever its status, unless it redirects.

        Raises Refused for an address or a redirect, Unavailable TIMEOUT or SERVICE_UNAVAILABLE, and
        ExecutionFailed for a reply that is not HTTP or is over a limit.
        """
        sent = {**OWN_HEADERS, **(headers or {})}
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), self.open(method, url, sent, body) as response:
                self._check_redirect(response)
                content = await read(response, max_bytes)
                fields = {name.lower(): value for name, value in response.headers.items()}
                return Reply(response.status, fields, content)
        why = f"the reply was not complete after {timeout_s:.3g} s"
        raise Unavailable(f"{url.raw_host} did not answer in time", why=why, fix="try again later")

    @asynccontextmanager
    async def open(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its response, of which the body is not read yet."""
        url = self._moved(url)
        inside = self.allows_inside(url)
        _check_url(url, inside)
        sent = {**AGENT, **headers}
        proxy = _proxy(url)
        session = self._session(inside, guarded=proxy is None)
        try:
            async with session.request(
                method, url, headers=sent, data=body, allow_redirects=False, proxy=proxy
            ) as response:
                yield response
        except aiohttp.ClientError as error:
            raise _fault(url, error) from None
        except ValueError as error:  # aiohttp refuses a header or a URL
            what, fix = "the request cannot be written", f"give other text, or {AUTHOR}"
            raise InvalidInput(what, why=str(error)[:200], fix=fix) from None

    def _check_redirect(self, response: aiohttp.ClientResponse) -> None:
        if not 300 <= response.status < 400 or "Location" not in response.headers:
            return
        host, origin = response.url.raw_host, response.url.origin()
        details: Json = {"status": response.status} | after_status(response.status)
        fix = f"{AUTHOR}: the binding must name the final URL"
        if any(origin == url.origin() for url in self._addresses.values()):
            fix = "a person can name the final URL with --at"
        try:
            location = response.url.join(URL(response.headers["Location"]))
            there = location.origin()
        except ValueError:
            location = there = URL()
        if there != origin:
            what = f"{host} redirects elsewhere"
            why = f"it names {(str(there) or 'no host')[:200]!r}, which nobody agreed to"
            raise Refused(what, Code.PERMISSION_DENIED, why, fix, details)
        what = f"{host} redirects to another path"
        why = f"redirects are not followed; it names {location.raw_path!r}"
        raise ExecutionFailed(what, why=why, fix=fix, details=details)

    def _moved(self, url: URL) -> URL:
        base = self._addresses.get(str(url.origin()).lower()) if url.absolute else None
        if base is None:
            return url
        path = base.raw_path.rstrip("/") + url.raw_path_qs
        return URL(f"{base.scheme}://{base.raw_authority}{path}", encoded=True)

    def _session(self, inside: bool, *, guarded: bool) -> aiohttp.ClientSession:
        if (session := self._sessions.get((inside, guarded))) is not None:
            return session

        def open_socket(info: tuple[Any, ...]) -> socket.socket:
            family, kind, protocol, _, place = info
            if guarded and (fault := address_fault(place[0], inside=inside)):
                raise _AddressRefused(f"{_REFUSED} {place[0]}: {fault}")
            return socket.socket(family, kind, protocol)

        connector = aiohttp.TCPConnector(
            socket_factory=open_socket,
            limit=MAX_CONNECTIONS,
            limit_per_host=MAX_CONNECTIONS_PER_HOST,
        )
        session = self._sessions[inside, guarded] = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            auto_decompress=False,  # `read` bounds what a body becomes
            skip_auto_headers=("Content-Type",),
        )
        return session


def _proxy(url: URL) -> str | None:
    return proxy_of(str(url)) if os.environ.get(PROXY_TOOLS) == "1" else None


def _check_url(url: URL, inside: bool) -> None:
    host = url.raw_host
    why: str | None = None
    if host is None or url.user is not None or url.password is not None:
        why = "it has no host, or a user name in front of it"
    elif url.scheme != "https" and not (inside and url.scheme == "http"):
        why = f"its scheme is {url.scheme}; https is required"
    elif not inside:
        why = host_fault(f"[{host}]" if ":" in host else host)
    if why is not None:
        raise _not_contacted(repr(url.raw_authority[:200]), why)


def _not_contacted(whom: object, why: str) -> Refused:
    fix = "if you run the service yourself, start the router with --at https://HOST=URL"
    message = f"the router does not contact {whom}"
    return Refused(message, Code.PERMISSION_DENIED, why=why, fix=fix)


async def read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Return the body of a response, decompressed.

    Raises ExecutionFailed if that is over `max_bytes`, or is not encoded as it claims.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise bad_reply(f"is encoded as {encoding[:40]!r}, which was not asked for")
    gzip = zlib.decompressobj(wbits=31) if encoding != "identity" else None
    body, received, members = bytearray(), 0, 1
    try:
        async for chunk in response.content.iter_any():
            received += len(chunk)
            left = max_bytes - len(body)
            body += gzip.decompress(chunk, left + 1) if gzip else chunk
            while gzip and gzip.eof and gzip.unused_data.startswith(_GZIP):
                members += 1  # RFC 1952, 2.2: what else comes behind adds nothing to the body
                rest, gzip = gzip.unused_data, zlib.decompressobj(wbits=31)
                body += gzip.decompress(rest, max(max_bytes - len(body), 0) + 1)
                if members > MAX_MEMBERS:
                    raise bad_reply("is too large", f"it is over {MAX_MEMBERS} pieces of gzip data")
            if max(received, len(body)) > max_bytes:
                raise bad_reply("is too large", f"it is over {max_bytes} bytes", "ask for less")
    except zlib.error:
        raise bad_reply("is not the gzip that it claims to be") from None
    if gzip and received and not gzip.eof:
        raise bad_reply("ends within its gzip data", fix="call again")
    return bytes(body)


def bad_reply(fault: str, why: str = "", fix: str = SERVICE) -> ExecutionFailed:
    """Return the error for a reply with a fault, whose request may have been carried out."""
    return ExecutionFailed(f"the reply {fault}", why=why, fix=fix, details=SENT)


def after_status(status: int) -> dict[str, bool]:
    """Return SENT for a status after which the request may have been carried out, else {}.

    503 says that the service did not handle it (RFC 9110, 15.6.4); after it has, many services
    answer a form with 302 or 303.
    """
    done = status in (302, 303) or (status >= 500 and status != HTTPStatus.SERVICE_UNAVAILABLE)
    return SENT if done else {}


def _fault(url: URL, error: aiohttp.ClientError) -> Refused | Unavailable | ExecutionFailed:
    """Return an error of ours; it holds no URL, since a query may hold a secret."""
    host = url.host_port_subcomponent
    cause = str(getattr(error, "os_error", ""))
    if _REFUSED in cause:
        return _not_contacted(host, cause[:500])
    if isinstance(error, aiohttp.ClientSSLError):
        what = f"{host} has no certificate that this machine trusts"
        return ExecutionFailed(what, why=words_of(error, _proxy(url)), fix=SERVICE)
    unconnected = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError)
    if unconnected or isinstance(error, _CLOSED):
        # aiohttp sends nothing before it is connected.
        unsent = unconnected or isinstance(error, aiohttp.ConnectionTimeoutError)
        fix = f"try again later{', or see that the address is right' if unsent else ''}"
        if unsent and _proxy(url) != proxy_of(str(url)):
            fix = f"a person can set {PROXY_TOOLS}=1: tools go through the environment's proxy then"
        return Unavailable(
            f"{host} cannot be reached" if unsent else f"{host} closed the connection",
            Code.SERVICE_UNAVAILABLE,
            why=words_of(error, _proxy(url)) if unconnected else "",
            fix=fix,
            details=None if unsent else SENT,
        )
    why = words_of(error, None).partition(":")[0]  # behind it is what came, of any content
    return bad_reply(f"of {host} is not HTTP", why)
