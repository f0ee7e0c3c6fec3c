"""What an RPC endpoint's refusal means: one class for each thing a caller can do about it.

Endpoints agree on neither codes nor words, so the words are read first and the code second. The
patterns are those of geth, reth, erigon, nethermind, besu, Anvil and the large vendors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from capdex.errors import Code, Unavailable

MAX_RETRY_AFTER_S = 300.0  # an endpoint may ask for patience, not switch a node off


class Fault(StrEnum):
    """Why a call failed, by what to do next."""

    TOO_LARGE_RANGE = "TOO_LARGE_RANGE"  # ask for less
    RATE = "RATE"  # wait, or ask another endpoint
    UNKNOWN_BLOCK = "UNKNOWN_BLOCK"  # the block is not (or no longer) known: maybe a reorg
    BEYOND_HEAD = "BEYOND_HEAD"  # the endpoint has not got there yet
    NO_STATE = "NO_STATE"  # the block is known, its state is pruned
    REVERTED = "REVERTED"  # the contract refused the call
    TRANSIENT = "TRANSIENT"  # ask again, here or elsewhere
    FATAL = "FATAL"  # this endpoint will never answer this call


@dataclass(eq=False)
class RpcError(Unavailable):
    """A call that failed at every endpoint tried; `fault` says what would help."""

    code: Code = Code.RPC_UNAVAILABLE
    fault: Fault = Fault.TRANSIENT
    retry_after_s: float | None = None


_WORDS: tuple[tuple[Fault, re.Pattern[str]], ...] = tuple(
    (fault, re.compile(pattern, re.IGNORECASE))
    for fault, pattern in (
        (Fault.REVERTED, r"execution reverted|\breverted\b"),
        (
            Fault.TOO_LARGE_RANGE,
            r"more than \d+ (results|logs)|too many (results|logs|blocks)"
            r"|(response|result|reply|log)s?( response)?( size)?( is)? (too (large|big)|exceed)"
            r"|(block|query|max\w*)( block)? ?range.*(large|wide|exceed|limit|max|greater|over)"
            r"|(limited|restricted) to (a )?[\d,]+[ k-]*(blocks? )?(range|blocks?)"
            r"|max(imum)?( is set to| block)? range|exceeds? max(imum)? (results|block|range)"
            r"|(reduc|narrow|smaller)\w* .*range|query timeout exceeded|range (is )?too",
        ),
        (
            Fault.BEYOND_HEAD,
            r"BlockOutOfRange|beyond (the )?(current )?head|(greater|higher|newer) than (the )?"
            r"(latest|head|current)|after last accepted block|future block",
        ),
        (
            Fault.NO_STATE,
            r"missing trie node|state .*(not available|unavailable|pruned|missing)"
            r"|historical state|pruned|archive",
        ),
        (
            Fault.UNKNOWN_BLOCK,
            r"unknown block|(block|header)\b.*\bnot (be )?found|resource not found"
            r"|cannot (be )?f(i|ou)nd|not canonical",
        ),
        (
            Fault.RATE,
            r"rate.?limit|too many requests|request (count|rate)|compute units|throughput|quota"
            r"|capacity|daily|per second",
        ),
    )
)

_CODES = {
    3: Fault.REVERTED,
    429: Fault.RATE,
    -32001: Fault.UNKNOWN_BLOCK,
    -32004: Fault.FATAL,
    -32005: Fault.RATE,
    -32008: Fault.TOO_LARGE_RANGE,
    -32029: Fault.RATE,
    -32600: Fault.FATAL,
    -32601: Fault.FATAL,
    -32602: Fault.FATAL,
    -32700: Fault.FATAL,
}

_STATUSES = {
    408: Fault.TRANSIENT,
    413: Fault.TOO_LARGE_RANGE,
    425: Fault.TRANSIENT,
    429: Fault.RATE,
}


def of_error(error: Any) -> Fault:
    """The fault a JSON-RPC error object stands for; any value is taken."""
    if not isinstance(error, dict):
        return Fault.TRANSIENT
    words, code = str(error.get("message", ""))[:1000], error.get("code")
    for fault, pattern in _WORDS:
        if pattern.search(words):
            return fault
    return _CODES.get(code, Fault.TRANSIENT) if isinstance(code, int) else Fault.TRANSIENT


def of_status(status: int) -> Fault:
    """The fault an HTTP status stands for when the body says nothing."""
    if status in _STATUSES:
        return _STATUSES[status]
    return Fault.FATAL if 300 <= status < 500 else Fault.TRANSIENT


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait by a Retry-After header (RFC 9110 §10.2.3), bounded; None if it has none."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    wait_s = (when - (now or datetime.now(UTC))).total_seconds()
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)
