"""Ways to a server: through which proxy of the environment, and why there is no connection."""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

CONNECT_S: Final = 5.0
_SMALL: Final = ("http_proxy", "https_proxy", "all_proxy")
_VARIABLES: Final = (*_SMALL, *map(str.upper, _SMALL))
_LIST: Final = str.maketrans(",", " ", "[]")  # of no_proxy, which has commas or spaces


def proxy_of(url: str) -> str | None:
    """Return the proxy on the way to an http(s) URL as `http://[user:password@]host:port`, or None.

    The variables are read as other clients read them: small letters win, `no_proxy` holds names
    (or `*.name`) with all that is below them, or `*`, and networks such as `10.0.0.0/8`.
    Loopback and names without a dot, which a local network has, are reached directly, and so is
    what only a proxy of another scheme than http would reach.
    """
    if not any(name in os.environ for name in _VARIABLES):
        return None
    from urllib.request import getproxies_environment

    with suppress(ValueError):  # nothing is sent to such a URL, or by such a proxy
        parts, named = urlsplit(url), getproxies_environment()
        scheme = "https" if parts.scheme == "wss" else parts.scheme
        text = named.get(scheme) or named.get("all") or ""
        proxy, host = urlsplit(text if "://" in text else f"http://{text}"), parts.hostname or ""
        port = parts.port or (443 if scheme == "https" else 80)
        direct = _is_direct(host, port, named.get("no", "").lower().translate(_LIST).split())
        if proxy.scheme == "http" and proxy.hostname and proxy.port != 0 and not direct:
            return f"http://{proxy.netloc.removesuffix(':')}{'' if proxy.port else ':80'}"
    return None


def words_of_connection(error: BaseException, proxy: str | None = None) -> str:
    """Return in a few words why no connection could be made, directly or through a proxy."""
    if proxy is not None:
        place = proxy.rpartition("@")[2].removeprefix("http://")  # without its user
        return f"through the proxy {place}: {_words(error)}"
    unknown = isinstance(error, TimeoutError | socket.gaierror)
    environment = unknown and any(name in os.environ for name in _VARIABLES)
    return _words(error) + ("; the proxy of this environment is not used" if environment else "")


def _words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        why = getattr(error, "verify_message", None)  # that of a certificate, as "has expired"
        return f"TLS failed: {', '.join(filter(None, (error.reason, why))) or 'no details'}"
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"no connection within {CONNECT_S:.0f} s"
    if isinstance(error, OSError) and error.errno is not None:
        known = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno)
        return (known or "no connection").lower()
    return str(error) or "no connection"


def _is_direct(host: str, port: int, past: list[str]) -> bool:
    """Return True for what is local, and for what a list of names and networks has."""
    names = tuple(f".{name.lstrip('*.')}" for name in past if name != "*")
    if "*" in past or f".{host}".endswith(names) or f".{host}:{port}".endswith(names):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(".localhost")
    for text in past:
        with suppress(ValueError):  # a name
            if address in ip_network(text, strict=False):
                return True
    return address.is_loopback
