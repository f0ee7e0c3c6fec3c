"""Check URLs that a package names: https to a public host, the same host for every reader."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import unquote

from capdex.diagnostics import show

MAX_URL_CHARS: Final = 2048  # what browsers and proxies carry

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.ASCII)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?", re.ASCII)
_BETWEEN = re.compile(r"[\x00-\x20\x7f\\\"<>^`|]")  # readers differ on these
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)
_NUMERIC = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*", re.ASCII)  # WHATWG: the host is an IPv4 address

# Names that only mean something inside one network (RFC 6761, 6762, 8375, and custom).
LOCAL_NAMES: Final = frozenset(
    [
        *("localhost", "localdomain", "local", "internal", "intranet"),
        *("lan", "home", "corp", "private", "arpa"),
    ]
)
# IANA special-purpose registries; written out, since `ipaddress` differs between Pythons.
PRIVATE_V4: Final = tuple(
    IPv4Network(net)
    for net in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
GLOBAL_V6: Final = IPv6Network("2000::/3")
PRIVATE_V6: Final = tuple(
    IPv6Network(net) for net in ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]
)


def url_fault(url: str, *, schemes: tuple[str, ...] = ("https",)) -> str | None:
    """Return the reason to refuse a URL, such as `it names a private host`, or None."""
    if len(url) > MAX_URL_CHARS:
        return f"it has {len(url)} characters; at most {MAX_URL_CHARS} are allowed"
    match = _URL.fullmatch(url)
    if match is None or _BETWEEN.search(url):
        return f"{show(url)} is not a URL"
    scheme, authority, _ = match.groups()
    if scheme.lower() not in schemes:
        return f"its scheme is {show(scheme)}; {' or '.join(schemes)} is required"
    if "@" in authority:
        return "it carries a user name in front of its host"
    if "{" in authority or "}" in authority:
        return "a placeholder stands in its host"
    split = _AUTHORITY.fullmatch(authority)
    if split is None or (split[2] and not 0 < int(split[2]) < 65_536):
        return f"{show(authority)} is not a host and port"
    return host_fault(split[1])


def has_dots(path: str) -> bool:
    """Return True for a path that a server could resolve to another one (RFC 3986, 5.2.4)."""
    decoded = unquote(unquote(path)).replace("\\", "/")  # some servers decode twice
    return any(segment.partition(";")[0] in (".", "..") for segment in decoded.split("/"))


def is_loopback(host: str) -> bool:
    """True for `localhost` and for the loopback addresses."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def host_fault(host: str) -> str | None:
    """Return the reason to refuse a host, or None for a public one."""
    if host.startswith("["):
        return _v6_fault(host[1:-1])
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return f"{show(host)} is not a host name (write other scripts in punycode)"
    if _NUMERIC.fullmatch(labels[-1]):
        return _v4_fault(host)
    if len(labels) < 2 or labels[-1].lower() in LOCAL_NAMES:
        return f"{show(host)} is a name inside one network"
    return None


def _v4_fault(host: str) -> str | None:
    try:
        address = IPv4Address(host)
    except ValueError:
        return f"{show(host)} is not an address in plain dotted form"
    return _private(host) if any(address in net for net in PRIVATE_V4) else None


def _v6_fault(host: str) -> str | None:
    try:
        address = IPv6Address(host)
    except ValueError:
        return f"{show(host)} is not an IPv6 address"
    public = address in GLOBAL_V6 and not any(address in net for net in PRIVATE_V6)
    return None if public and not address.scope_id else _private(host)


def _private(host: str) -> str:
    return f"{show(host)} is an address inside one network"
