"""The errors that clients may see (P16)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import structlog

from capdex.errors import CapdexError, Code, Unavailable
from capdex.net.log_lines import RareLines
from capdex_service.answers.text import cut

ERROR_TOKENS: Final = 80  # of each part of an error
_LATER: Final = "try again later, or ask another node"

_lines = RareLines()

log = structlog.get_logger(part="mcp")

# All other codes are for the operator and may name files and addresses.
PUBLIC: Final = frozenset(
    {
        *(Code.NOT_FOUND, Code.YANKED, Code.INVALID_INPUT, Code.UNVERIFIED, Code.PENDING),
        *(Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.TOO_LARGE, Code.RATE_LIMITED),
        *(Code.STALLED, Code.SERVICE_UNAVAILABLE, Code.TIMEOUT),
    }
)


def for_model(error: CapdexError) -> str:
    """Return an error as a text for a model: its code, what happened, and what to do."""
    parts = [f"{error.code}: {error.message}", error.why or "", error.fix or ""]
    return "; ".join(cut(part, ERROR_TOKENS) for part in parts if part)


def public_error(error: Exception, public: Collection[Code] = PUBLIC) -> CapdexError:
    """Return the error for a client; one for the operator is logged, and no bug is described."""
    if isinstance(error, CapdexError):
        if error.code in public:
            return error
        if _lines.due(error.code):  # of all requests
            log.error("cannot answer", code=str(error.code), what=error.message, why=error.why)
        if error.code is not Code.INTERNAL:
            what = "the node cannot read its index now"
            return Unavailable(what, Code.DATABASE_UNAVAILABLE, fix=_LATER)
    return Unavailable("the node failed to answer; this is its fault", Code.INTERNAL, fix=_LATER)
