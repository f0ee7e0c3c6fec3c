"""Check the Host and Origin of every request against the names of the node."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from capdex.errors import Code, InvalidInput, UsageError
from capdex_service.limits.refusal import refuse

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

_BLANKS: Final = (b" ", b"\t")
_OTHER_SITE: Final = "send no Origin, or that of a name of this node (--allowed-host)"


class HostCheck:
    """Refuse requests for other hosts, which protects from DNS rebinding to 127.0.0.1.

    A browser's `Origin` must be one of these hosts, too; other clients send none.
    """

    def __init__(self, app: ASGIApp, *, allowed: Sequence[str]) -> None:
        self.app = app
        self.allowed = frozenset(host.lower() for host in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421 (Host) or 403 (Origin)."""
        if scope["type"] == "http":
            headers = scope["headers"]
            if any(value[-1:] in _BLANKS or value[:1] in _BLANKS for _, value in headers if value):
                # httptools leaves white space after a value, not a part of it (RFC 9110 §5.5)
                trimmed = [(key, value.strip(b" \t")) for key, value in headers]
                scope = {**scope, "headers": trimmed}
            # Check each of a repeated header: code behind this may read another one.
            hosts, origins = _values(scope, b"host") or [""], _values(scope, b"origin")
            foreign = [name for name in map(_name, hosts) if name not in self.allowed]
            if foreign:
                name = f"this node does not answer for {foreign[0][:100]!r}"
                error = InvalidInput(name, fix="its operator can add --allowed-host with this name")
                await refuse(error, scope, receive, send, status=421)
                return
            if not all(map(self._allowed_origin, origins)):
                error = InvalidInput("requests from other sites are refused", fix=_OTHER_SITE)
                await refuse(error, scope, receive, send, status=403)
                return
        await self.app(scope, receive, send)

    def _allowed_origin(self, origin: str) -> bool:
        scheme, separator, host = origin.partition("://")
        return bool(separator) and scheme in ("http", "https") and _name(host) in self.allowed


def known_hosts(host: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the Host headers to answer: loopback, the address bound, and the `allowed` names."""
    try:
        loopback = ip_address(host).is_loopback
        unspecified = ip_address(host).is_unspecified
    except ValueError:
        loopback, unspecified = host == "localhost", False
    if not loopback and not allowed:
        raise UsageError(
            f"a node on {host} must know by which names it is called",
            Code.CONFIG,
            why="else a web page whose name resolves to this node could read it through a browser",
            fix="add --allowed-host NAME for each name or address clients use",
        )
    own = () if unspecified else (host,)
    return (*LOOPBACK, *map(_as_sent, (*own, *allowed)))


def _as_sent(host: str) -> str:
    """Return a name or address as clients send it in Host: IPv6 in brackets, shortest form."""
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        if set("/:,*") & set(host):
            raise UsageError(
                f"{host!r} is no name that clients could send",
                Code.CONFIG,
                why="names are compared without scheme, port and path",
                fix="write --allowed-host caps.example, once for each name",
            ) from None
        return host
    return f"[{address}]" if address.version == 6 else str(address)


def _name(host: str) -> str:
    """Return a Host header without its port, as `--allowed-host` takes it."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
