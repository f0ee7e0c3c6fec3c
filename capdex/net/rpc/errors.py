"""Errors of RPC calls: one fault for each reaction of the caller.

Endpoints agree on neither codes nor texts: the text is matched first, then the code. The
patterns are those of geth, reth, erigon, nethermind, besu, Anvil and the large vendors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from capdex.errors import MAX_TEXT_CHARS, Code, Unavailable, untrusted_text
from capdex.json import object_of

MAX_RETRY_AFTER_S = 300.0  # a longer Retry-After would stop a node


class RpcFault(StrEnum):
    """The reason of a failed call, and what to do next."""

    TOO_LARGE_RANGE = "TOO_LARGE_RANGE"  # request fewer blocks
    RATE = "RATE"  # wait, or use another endpoint
    UNKNOWN_BLOCK = "UNKNOWN_BLOCK"  # the block is not, or no longer, known: maybe a reorg
    BEYOND_HEAD = "BEYOND_HEAD"  # the endpoint does not have the block yet
    NO_STATE = "NO_STATE"  # the block is known, its state is pruned
    REVERTED = "REVERTED"  # the contract refused the call
    REJECTED = "REJECTED"  # a transaction is not accepted: its nonce, its fee or the balance
    TIMEOUT = "TIMEOUT"  # no answer in time: use another endpoint, or request less
    TRANSIENT = "TRANSIENT"  # try again, here or at another endpoint
    FATAL = "FATAL"  # this endpoint will never answer this call


# Faults after which a call is sent again, to all endpoints; the caller handles all others.
ELSEWHERE: Final = frozenset({RpcFault.RATE, RpcFault.TRANSIENT, RpcFault.TIMEOUT, RpcFault.FATAL})


@dataclass(eq=False)
class RpcError(Unavailable):
    """A call that failed at every endpoint; `fault` is the reason of the last failure.

    `blocks` is the range that the endpoint suggests; `answered` is True for a JSON-RPC reply;
    `data` is what a contract reverted with (0x hex), if the endpoint gave it.
    """

    code: Code = Code.RPC_UNAVAILABLE
    fault: RpcFault = RpcFault.TRANSIENT
    retry_after_s: float | None = None
    blocks: int | None = None
    answered: bool = False
    data: str | None = None

    @property
    def is_refusal(self) -> bool:
        """True if the endpoint refuses the call itself, and not the rate of calls."""
        return self.answered and self.fault is not RpcFault.RATE


_WORDS: tuple[tuple[RpcFault, re.Pattern[str]], ...] = tuple(
    (fault, re.compile(pattern, re.IGNORECASE))
    for fault, pattern in (
        (RpcFault.REVERTED, r"execution reverted|\breverted\b"),
        (
            RpcFault.REJECTED,
            r"nonce too (low|high)|already (known|imported)|underpriced|insufficient funds"
            r"|base fee|intrinsic gas|fee cap|known transaction|upfront cost"
            r"|AlreadyKnown|OldNonce|FeeTooLow|ReplacementNotAllowed|InsufficientFunds",
        ),
        (
            RpcFault.TOO_LARGE_RANGE,
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
        (  # too many calls at once; the codes of these refusals are misleading
            RpcFault.FATAL,
            r"batch(ed)? (requests?|size|limit|too|of more than)|max\w*[ -]batch"
            r"|requests in (a )?batch",
        ),
        (
            RpcFault.BEYOND_HEAD,
            r"BlockOutOfRange|beyond (the )?(current )?head|(greater|higher|newer) than (the )?"
            r"(latest|head|current)|after last accepted block|future block",
        ),
        (
            RpcFault.NO_STATE,
            r"missing trie node|state .*(not available|unavailable|pruned|missing)"
            r"|historical state|pruned|archive",
        ),
        (
            RpcFault.UNKNOWN_BLOCK,
            r"unknown block|(block|header)\b.*\bnot (be )?found|resource not found"
            r"|cannot (be )?f(i|ou)nd|not canonical",
        ),
        (
            RpcFault.RATE,
            r"rate.?limit|too many requests|request (count|rate)|compute units|throughput|quota"
            r"|capacity|daily|per second|/sec(ond)?\b|request limit|requests? limit reached",
        ),
    )
)

_CODES = {
    3: RpcFault.REVERTED,
    -32003: RpcFault.REJECTED,
    -32001: RpcFault.UNKNOWN_BLOCK,
    **dict.fromkeys((429, -32007, -32012, -32029), RpcFault.RATE),
    -32008: RpcFault.TOO_LARGE_RANGE,
    **dict.fromkeys((-32004, -32600, -32601, -32602, -32700), RpcFault.FATAL),
}
_STATUSES = {
    **dict.fromkeys((408, 504, 522, 524), RpcFault.TIMEOUT),
    413: RpcFault.TOO_LARGE_RANGE,
    425: RpcFault.TRANSIENT,
    429: RpcFault.RATE,
}


def rpc_error(
    label: str,
    fault: RpcFault,
    why: str,
    retry_after_s: float | None = None,
    *,
    blocks: int | None = None,
    answered: bool = False,
) -> RpcError:
    """Return the error of the endpoint with this label."""
    limited = fault is RpcFault.RATE  # some refuse a long range of blocks in the same words
    see = "try again later" if limited or answered else "see that it runs and has this address"
    another = "name another endpoint with --rpc-url"
    return RpcError(
        f"the RPC endpoint {label} did not answer as it should",
        Code.RATE_LIMITED if limited else Code.RPC_UNAVAILABLE,
        why=why,
        fix=another if answered and fault is RpcFault.FATAL else f"{see}, or {another}",
        details={"endpoint": label, "fault": str(fault)},
        fault=fault,
        retry_after_s=retry_after_s,
        blocks=blocks,
        answered=answered,
    )


def refusal(label: str, error: Any, retry_after_s: float | None = None) -> RpcError:
    """Return the error for a JSON-RPC error object; any value is accepted."""
    text = untrusted_text(error.get("message") if isinstance(error, dict) else error)
    why = "".join(c if c.isprintable() else " " for c in text[:300]) or "an error without a message"
    fault, data = of_error(error), object_of(error).get("data")
    blocks = suggested_blocks(text, data) if fault is RpcFault.TOO_LARGE_RANGE else None
    refused = rpc_error(label, fault, why, retry_after_s, blocks=blocks, answered=True)
    data = object_of(data).get("data", data)  # Hardhat's node puts it into an object
    refused.data = data if isinstance(data, str) else None
    return refused


def of_error(error: object) -> RpcFault:
    """Return the fault for a JSON-RPC error object; any value is accepted."""
    if not isinstance(error, dict):
        return RpcFault.TRANSIENT
    text, code = untrusted_text(error.get("message")), error.get("code")
    for fault, pattern in _WORDS:
        if pattern.search(text):
            return fault
    return _CODES.get(code, RpcFault.TRANSIENT) if isinstance(code, int) else RpcFault.TRANSIENT


def of_status(status: int) -> RpcFault:
    """Return the fault for an HTTP status without a JSON-RPC error in its body."""
    if status in _STATUSES:
        return _STATUSES[status]
    return RpcFault.FATAL if 300 <= status < 500 else RpcFault.TRANSIENT


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the bounded seconds of a Retry-After header (RFC 9110 §10.2.3), or None."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_RETRY_AFTER_S)
    from email.utils import parsedate_to_datetime  # 20 ms to import, and rarely needed

    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the latter for a year of twenty digits
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    wait_s = (when - (now or datetime.now(UTC))).total_seconds()
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)


# ------------------------------------------------------------------------- suggested ranges

# How many blocks an endpoint allows, in the words of its refusal: Alchemy, Infura, QuickNode, Ankr,
# BlockPI, Blast, Cloudflare, Coinbase, Tenderly, thirdweb, zkSync, publicnode, dRPC, Avalanche,
# Moonbeam, Harmony, reth and geth's kin.
MAX_HINT = 10_000_000  # blocks; a larger number is not a useful limit

_HEX = r"0x([0-9a-f]{1,16})"
_SPAN = re.compile(rf"\[\s*{_HEX}\s*,\s*{_HEX}\s*\]", re.IGNORECASE)
_DECIMAL_SPAN = re.compile(r"\brange:?\s+(\d{1,15})\s*-\s*(\d{1,15})\b", re.IGNORECASE)
_NUMBER = r"(\d[\d,._]{0,14})\s*(k\b)?"
_LIMITS = tuple(
    re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE)
    for pattern in (
        r"allowed for your plan \(\d+ > N\)",
        r"up to (?:a )?N[\s-]*blocks?",
        r"(?:limited|restricted) to (?:a )?(?:0\s*-\s*)?N[\s-]*(?:blocks?|range)",
        r"(?:at most|only|over|exceeds?|than|within) N[\s-]*blocks?",
        r"max(?:imum)?(?: allowed)?(?: block)? range(?: is| of)?[\s:=]*N",
        r"range[^.\d]*(?:limit|limited|exceeded|large|wide|over)[^.\d]*max(?:imum)?[^.\d]*N",
        r"range\s*(?:\d[\d,]*\s*)?(?:exceeds?|greater than|larger than|over)"
        r"[^.\d]*(?:limit of|max of)?\s*N",
        r"blocks? from \d+ to \d+, maximum is set to N",
        r"number of (?:requested )?blocks is N",
        r"blocks distance: N",
        r"smaller than size N",
        r"maximum N\)",
        r"N[\s-]*blocks? (?:range )?(?:limit|max)",
    )
)


def suggested_blocks(message: str, data: object = None) -> int | None:
    """Return the number of blocks that a refusal suggests, or None.

    `data` is that of the JSON-RPC error; Infura's holds `from` and `to`.
    """
    text = message[:MAX_TEXT_CHARS]
    if isinstance(data, dict):
        text += f" [{untrusted_text(data.get('from'))[:20]}, {untrusted_text(data.get('to'))[:20]}]"
    for pattern, base in ((_SPAN, 16), (_DECIMAL_SPAN, 10)):
        if match := pattern.search(text):
            return _within(int(match[2], base) - int(match[1], base) + 1)
    for pattern in _LIMITS:
        if match := pattern.search(text):
            digits = re.sub(r"[,._]", "", match[1])
            return _within(int(digits) * (1_000 if match[2] else 1))
    return None


def _within(blocks: int) -> int | None:
    return blocks if 1 <= blocks <= MAX_HINT else None
