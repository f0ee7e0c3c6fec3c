"""Errors as clients see them: internal ones without details such as paths or hosts."""

from __future__ import annotations

from typing import Final

import structlog

from capdex.errors import CapdexError, Code, Unavailable

# P16: the codes for clients. All others are for the operator and may name files and addresses.
PUBLIC: Final = frozenset(
    {
        *(Code.NOT_FOUND, Code.YANKED, Code.INVALID_INPUT, Code.UNVERIFIED, Code.PENDING),
        *(Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.TOO_LARGE, Code.RATE_LIMITED),
        *(Code.STALLED, Code.TIMEOUT),
    }
)

log = structlog.get_logger(part="mcp")


def public_error(error: CapdexError) -> CapdexError:
    """Return the error for a client; one for the operator is logged and replaced."""
    if error.code in PUBLIC:
        return error
    log.error("cannot answer", code=str(error.code), what=error.message, why=error.why)
    if error.code is Code.INTERNAL:
        return internal_error()
    return Unavailable("the node cannot read its index now", Code.DATABASE_UNAVAILABLE)


def internal_error() -> CapdexError:
    """Return the error for a bug in the node."""
    return Unavailable("the node failed to answer; this is its fault", Code.INTERNAL)
