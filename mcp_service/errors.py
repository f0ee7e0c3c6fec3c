"""What a stranger learns of the node's own faults: that there is one, never its paths or hosts."""

from __future__ import annotations

from typing import Final

import structlog

from capdex.errors import CapdexError, Code, Unavailable

# P16: the codes that travel. All others speak to the operator, of files and addresses.
TRAVEL: Final = frozenset(
    {
        *(Code.NOT_FOUND, Code.YANKED, Code.INVALID_INPUT, Code.UNVERIFIED, Code.PENDING),
        *(Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.TOO_LARGE, Code.RATE_LIMITED),
        *(Code.STALLED, Code.TIMEOUT),
    }
)

log = structlog.get_logger(part="mcp")


def public_error(error: CapdexError) -> CapdexError:
    """The error as a caller may see it; where it is the operator's, the log keeps the whole."""
    if error.code in TRAVEL:
        return error
    log.error("cannot answer", code=str(error.code), what=error.message, why=error.why)
    if error.code is Code.INTERNAL:
        return internal_error()
    return Unavailable("the node cannot read its index now", Code.DATABASE_UNAVAILABLE)


def internal_error() -> CapdexError:
    """A fault of ours."""
    return Unavailable("the node failed to answer; this is its fault", Code.INTERNAL)
