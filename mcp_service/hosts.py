"""For whom a node answers: the Host and Origin of a request, checked before anything is served."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from capdex.errors import Code, UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class HostCheck:
    """Answers requests for hosts that are ours alone: a name rebound to 127.0.0.1 is refused.

    A browser's `Origin` must be one of these hosts, too; requests without one are no browser's.
    """

    def __init__(self, app: ASGIApp, *, allowed: Sequence[str]) -> None:
        self.app = app
        self.allowed = frozenset(host.lower() for host in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421 (Host) or 403 (Origin)."""
        if scope["type"] == "http":
            # httptools leaves white space after a value, which is no part of it (RFC 9110 §5.5).
            trimmed = [(key, value.strip(b" \t")) for key, value in scope["headers"]]
            scope = {**scope, "headers": trimmed}
            # Each of a repeated header counts: whoever is behind may read another one than we do.
            hosts, origins = _values(scope, b"host") or [""], _values(scope, b"origin")
            foreign = [host for host in hosts if not self._ours(host)]
            if foreign:
                await _plain(send, 421, f"this node does not answer for {foreign[0][:100]!r}\n")
                return
            if not all(map(self._ours_by_url, origins)):
                await _plain(send, 403, "requests from other sites are refused\n")
                return
        await self.app(scope, receive, send)

    def _ours(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        bare = name if colon and port.isdigit() else host
        return bare.lower() in self.allowed

    def _ours_by_url(self, origin: str) -> bool:
        scheme, separator, host = origin.partition("://")
        return bool(separator) and scheme in ("http", "https") and self._ours(host)


def known_hosts(host: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """The Host headers answered: loopback's names where bound there, else only what was named."""
    try:
        loopback = ip_address(host).is_loopback
        unspecified = ip_address(host).is_unspecified
    except ValueError:
        loopback, unspecified = host == "localhost", False
    if not loopback and not allowed:
        raise UsageError(
            f"a node on {host} must know by which names it is called",
            Code.CONFIG,
            why="whoever can make a browser resolve a name to it could speak through that browser",
            fix="add --allowed-host NAME for each name or address clients use",
        )
    own = () if unspecified else (host,)
    return (*LOOPBACK, *map(_as_sent, (*own, *allowed)))


def _as_sent(host: str) -> str:
    """A name or address as clients write it in Host: IPv6 in brackets, in its shortest form."""
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return host
    return f"[{address}]" if address.version == 6 else str(address)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


async def _plain(send: Send, status: int, words: str) -> None:
    body = words.encode("utf-8")
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
