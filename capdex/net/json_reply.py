"""JSON that another program sent, parsed within bounds of depth and of memory."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

import orjson

from capdex.json import levels

# A package is nested at most 32 deep (P7), and an answer around it less than 16. Python's json
# cannot write, and its repr cannot show, what is nested a thousand deep.
MAX_DEPTH: Final = 64
# A text of JSON, or a whole number that orjson would round: it becomes a text. Possessive, since
# what `re` keeps to go back takes 100 bytes for each escape of a text.
_LONG: Final = re.compile(rb'(?s)"(?:[^"\\]++|\\.?)*+(?:"|\Z)|(?<![\d.eE+-])(-?\d{20,}+)(?![.eE])')


def parse(data: bytes, *, long_bytes: int, min_value_bytes: int) -> Any:
    """Return the JSON value, in which a whole number of 20 digits or more is a text.

    Raises ValueError in words that complete "its answer is …".
    """
    if is_dense(data, long_bytes=long_bytes, min_value_bytes=min_value_bytes):
        raise ValueError("megabytes of next to nothing")
    try:
        # Not json's: eth_account raises Python's recursion limit so far that deep text crashes it.
        value = orjson.loads(data)
        if re.search(rb"\d{20}", data):
            value = orjson.loads(_LONG.sub(lambda x: b'"%b"' % x[1] if x[1] else x[0], data))
    except orjson.JSONDecodeError as error:
        too_deep = str(error).startswith("depth limit")
        raise ValueError("nested too deep" if too_deep else "not JSON") from None
    if any(islice(levels(value), MAX_DEPTH, None)):
        raise ValueError("nested too deep")
    return value


def is_dense(data: bytes, *, long_bytes: int, min_value_bytes: int) -> bool:
    """Return True if a text over `long_bytes` has less than `min_value_bytes` for each value.

    A value takes 50 bytes of memory and more, however short it is: 64 MiB of `[],` take gigabytes.
    """
    if len(data) < long_bytes:
        return False
    return sum(map(data.count, (b",", b"[", b"{"))) > len(data) // min_value_bytes
