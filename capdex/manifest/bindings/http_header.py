"""Headers that a binding may set (P10; RFC 9110, 5)."""

from __future__ import annotations

import re
from typing import Final

from capdex.diagnostics import show

MAX_HEADER_NAME_CHARS: Final = 64
HEADER_NAME = re.compile(  # RFC 9110, 5.6.2
    rf"[A-Za-z0-9!#$%&'*+.^_`|~-]{{1,{MAX_HEADER_NAME_CHARS}}}", re.ASCII
)
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
CREDENTIALS: Final = frozenset(["authorization", "cookie", "proxy-authorization"])
# These say how a message is framed, where it goes and what it does: the runtime's own business.
OWN: Final = frozenset(
    [
        *("accept-encoding", "connection", "content-encoding", "content-length", "expect", "host"),
        *("keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("x-http-method", "x-http-method-override", "x-method-override"),
    ]
)
OWN_PREFIXES: Final = ("proxy-", "sec-")


def header_fault(name: str) -> str | None:
    """Return the reason why a binding may not set a header, or None."""
    if not HEADER_NAME.fullmatch(name):
        return f"{show(name)} is not the name of a header"
    if name.lower() in CREDENTIALS:
        return f"{name} is for credentials, which a package never holds"
    if name.lower() in OWN or name.lower().startswith(OWN_PREFIXES):
        return f"{name} is set by the runtime alone"
    return None
