"""Addresses of clients, and the proxies that are believed when they name a client."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from starlette.types import Scope

from capdex.errors import Code, UsageError

IPV6_PREFIX: Final = 64  # one customer has that many addresses, and can take another each time
LOOPBACK: Final = "loopback"
UNKNOWN: Final = "unknown"
CLIENT: Final = "capdex.client"  # in the scope of a request: the text by which it is counted

# Some proxies write the port of their client, too.
_PORT: Final = re.compile(r"^(?:([0-9.]+):[0-9]+|\[([^\]]*)\](?::[0-9]+)?)$", re.ASCII)


class Addresses:
    """Tells clients apart by address; raises UsageError if a proxy is not an address or network."""

    def __init__(
        self, trusted_proxies: Sequence[str] = (), *, limit_loopback: bool = False
    ) -> None:
        try:
            self._proxies = [ip_network(proxy, strict=False) for proxy in trusted_proxies]
        except ValueError as error:
            raise UsageError(
                "--trusted-proxy is not an address",
                Code.CONFIG,
                why=str(error),
                fix="name one by IP",
            ) from None
        self._limit_loopback = limit_loopback
        self._is_proxy = lru_cache(4096)(self._find_proxy)

    def unlimited(self, address: str) -> bool:
        """True for loopback, unless it is limited, and for trusted proxies."""
        free = client_key(address) == LOOPBACK and not self._limit_loopback
        return free or self._is_proxy(address)

    def address_of(self, scope: Scope) -> str:
        """Return the address of the peer, or of the client that a trusted proxy names.

        `X-Forwarded-For` is read from its end, where the nearest proxy writes.
        """
        peer = scope.get("client")
        address = peer[0] if peer else UNKNOWN
        if self._proxies and self._is_proxy(address):
            values = [value for key, value in scope["headers"] if key == b"x-forwarded-for"]
            for entry in reversed(b",".join(values).decode("latin-1").split(",") if values else ()):
                address = _PORT.sub(r"\1\2", entry.strip())
                if not self._is_proxy(address):
                    break
        return address

    def scheme_of(self, scope: Scope) -> str:
        """Return the scheme that a client sees: that of the connection, or a trusted proxy's word.

        `X-Forwarded-Proto` is `http` or `https`; other words are ignored.
        """
        peer = scope.get("client")
        if self._proxies and peer and self._is_proxy(peer[0]):
            values = [value for key, value in scope["headers"] if key == b"x-forwarded-proto"]
            named = values[-1].strip().lower().decode("latin-1") if values else ""
            if named in ("http", "https"):
                return named
        return str(scope.get("scheme", "http"))

    def _find_proxy(self, address: str) -> bool:
        known = _parse(address)
        return known is not None and any(known in network for network in self._proxies)


@lru_cache(4096)
def client_key(address: str) -> str:
    """Return the text by which a client is counted: `loopback`, an IPv4 address, or an IPv6 /64."""
    known = _parse(address)
    if known is None:
        return UNKNOWN
    if known.is_loopback:
        return LOOPBACK
    if isinstance(known, IPv6Address):
        return str(ip_network((known, IPV6_PREFIX), strict=False))
    return str(known)


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    try:
        known = ip_address(address)
    except ValueError:
        return None
    return (known.ipv4_mapped or known) if isinstance(known, IPv6Address) else known
