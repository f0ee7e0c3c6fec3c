"""How many blocks an endpoint says it would have answered for, in the words of its refusal.

Some say what to ask for, some what their limit is, most say it in their own words. The patterns
are those of Alchemy, Infura, QuickNode, Ankr, BlockPI, Blast, Cloudflare, Coinbase, Tenderly,
thirdweb, zkSync, publicnode, dRPC, Avalanche, Moonbeam, Harmony, reth and geth's kin.
"""

from __future__ import annotations

import re
from typing import Any

MAX_WORDS = 1_000  # of a stranger's message
MAX_HINT = 10_000_000  # blocks; whoever names more has no limit worth knowing

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


def words(value: Any) -> str:
    """A stranger's text or number; nothing of what may be nested too deep for Python to write."""
    return str(value) if isinstance(value, str | int | float) else ""


def suggested_blocks(message: str, data: Any = None) -> int | None:
    """The number of blocks a refusal names as one that would do; None where it names none.

    `data` is that of the JSON-RPC error; Infura's holds `from` and `to`.
    """
    text = message[:MAX_WORDS]
    if isinstance(data, dict):
        text += f" [{words(data.get('from'))[:20]}, {words(data.get('to'))[:20]}]"
    for pattern, base in ((_SPAN, 16), (_DECIMAL_SPAN, 10)):
        if found := pattern.search(text):
            return _within(int(found[2], base) - int(found[1], base) + 1)
    for pattern in _LIMITS:
        if found := pattern.search(text):
            digits = re.sub(r"[,._]", "", found[1])
            return _within(int(digits) * (1_000 if found[2] else 1))
    return None


def _within(blocks: int) -> int | None:
    return blocks if 1 <= blocks <= MAX_HINT else None
