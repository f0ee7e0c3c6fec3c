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
from typing import Any, Final

from capdex.errors import Code, Unavailable
from capdex.net.rpc.hints import MAX_WORDS, suggested_blocks, words

MAX_RETRY_AFTER_S = 300.0  # an endpoint may ask for patience, not switch a node off


class Fault(StrEnum):
    """Why a call failed, by what to do next."""

    TOO_LARGE_RANGE = "TOO_LARGE_RANGE"  # ask for less
    RATE = "RATE"  # wait, or ask another endpoint
    UNKNOWN_BLOCK = "UNKNOWN_BLOCK"  # the block is not (or no longer) known: maybe a reorg
    BEYOND_HEAD = "BEYOND_HEAD"  # the endpoint has not got there yet
    NO_STATE = "NO_STATE"  # the block is known, its state is pruned
    REVERTED = "REVERTED"  # the contract refused the call
    TIMEOUT = "TIMEOUT"  # no answer in time: ask elsewhere, or for less
    TRANSIENT = "TRANSIENT"  # ask again, here or elsewhere
    FATAL = "FATAL"  # this endpoint will never answer this call


# A call that fails so is made again, of all endpoints; any other refusal is the caller's to judge.
ELSEWHERE: Final = frozenset({Fault.RATE, Fault.TRANSIENT, Fault.TIMEOUT, Fault.FATAL})


@dataclass(eq=False)
class RpcError(Unavailable):
    """A call that failed at every endpoint tried; `fault` says what would help.

    `blocks` is the range that the endpoint says would do; `answered` tells that it spoke JSON-RPC.
    """

    code: Code = Code.RPC_UNAVAILABLE
    fault: Fault = Fault.TRANSIENT
    retry_after_s: float | None = None
    blocks: int | None = None
    answered: bool = False


_WORDS: tuple[tuple[Fault, re.Pattern[str]], ...] = tuple(
    (fault, re.compile(pattern, re.IGNORECASE))
    for fault, pattern in (
        (Fault.REVERTED, r"execution reverted|\breverted\b"),
        (
            Fault.TOO_LARGE_RANGE,
            r"more than \d+ (results|logs)|too many (results|logs|blocks)"
            r"|(response|result|reply|log)s?( response)?( size)?( is)? (too (large|big)|exceed)"
            r"|response size should not|logs matched by query exceed|smaller than size"
            r"|(block|query|max\w*)( block)? ?range"
            r".*(large|wide|exceed|limit|max|greater|over|high|bigger)"
            r"|(limited|restricted) to (a )?(0 ?- ?)?[\d,]+[ k-]*(blocks? )?(range|blocks?)"
            r"|max(imum)?( is set to| block)? range|exceeds? max(imum)? (results|block|range)"
            r"|(reduc|narrow|smaller)\w* .*range|query timeout exceeded|range (is )?too"
            r"|range(s over)? \d+ (exceeds|blocks)|blocks distance|range allowed for your plan"
            r"|at most [\d,]+ blocks|number of requested blocks|block range should work"
            r"|up to a [\d,]+k? block|range limit",
        ),
        (  # of so many calls at once; their codes are those of a rate or of nothing
            Fault.FATAL,
            r"batch(ed)? (requests?|size|limit|too|of more than)|max\w*[ -]batch"
            r"|requests in (a )?batch",
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
            r"|capacity|daily|per second|/sec(ond)?\b|request limit|requests? limit reached",
        ),
    )
)

_CODES = {
    3: Fault.REVERTED,
    429: Fault.RATE,
    -32001: Fault.UNKNOWN_BLOCK,
    -32004: Fault.FATAL,
    -32005: Fault.RATE,
    -32007: Fault.RATE,
    -32008: Fault.TOO_LARGE_RANGE,
    -32012: Fault.RATE,
    -32029: Fault.RATE,
    -32600: Fault.FATAL,
    -32601: Fault.FATAL,
    -32602: Fault.FATAL,
    -32700: Fault.FATAL,
}

_STATUSES = {
    408: Fault.TIMEOUT,
    413: Fault.TOO_LARGE_RANGE,
    425: Fault.TRANSIENT,
    429: Fault.RATE,
    504: Fault.TIMEOUT,
    522: Fault.TIMEOUT,
    524: Fault.TIMEOUT,
}


def rpc_error(
    label: str,
    fault: Fault,
    why: str,
    retry_after_s: float | None = None,
    *,
    blocks: int | None = None,
    answered: bool = False,
) -> RpcError:
    """The error of an endpoint that is shown as `label`."""
    return RpcError(
        f"the RPC endpoint {label} did not answer as it should",
        Code.RATE_LIMITED if fault is Fault.RATE else Code.RPC_UNAVAILABLE,
        why=why,
        fix="see that it runs and is reachable, or add another endpoint with --rpc-url",
        details={"endpoint": label, "fault": str(fault)},
        fault=fault,
        retry_after_s=retry_after_s,
        blocks=blocks,
        answered=answered,
    )


def refusal(label: str, error: Any, retry_after_s: float | None = None) -> RpcError:
    """The error that a JSON-RPC error object stands for; any value is taken."""
    text = words(error.get("message") if isinstance(error, dict) else error)
    why = "".join(c if c.isprintable() else " " for c in text[:300]) or "an error without words"
    fault, blocks = of_error(error), None
    if fault is Fault.TOO_LARGE_RANGE:
        blocks = suggested_blocks(text, error.get("data"))
    return rpc_error(label, fault, why, retry_after_s, blocks=blocks, answered=True)


def of_error(error: Any) -> Fault:
    """The fault a JSON-RPC error object stands for; any value is taken."""
    if not isinstance(error, dict):
        return Fault.TRANSIENT
    text, code = words(error.get("message"))[:MAX_WORDS], error.get("code")
    for fault, pattern in _WORDS:
        if pattern.search(text):
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
    except (ValueError, OverflowError):  # the latter for a year of twenty digits
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    wait_s = (when - (now or datetime.now(UTC))).total_seconds()
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)
