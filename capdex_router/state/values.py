"""JSON values of state: one canonical text each, bounded, and compared as JSON compares. Pure."""

from __future__ import annotations

import math
from typing import Any, Final

import orjson

from capdex.errors import Code, InvalidInput
from capdex.limits import MAX_DEPTH

MAX_OBJECT_BYTES: Final = 256 * 1024  # as JSON, in UTF-8


def canonical(value: object, depth: int = MAX_DEPTH) -> bytes:
    """Return the one JSON text of a value: keys sorted, 1.0 written as 1 (RFC 8785).

    Raises InvalidInput for what JSON or 64 bits cannot hold, and for deep nesting.
    """
    try:
        return orjson.dumps(_plain(value, depth), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, OverflowError) as error:
        raise InvalidInput(
            "the value is not JSON",
            why=str(error)[:200],
            fix="give texts, numbers of up to 64 bits, true, false, null, lists and objects",
        ) from None


def check_size(value: object) -> None:
    """Raise InvalidInput TOO_LARGE for an object beyond the limit, in its canonical form."""
    size = len(canonical(value))
    if size > MAX_OBJECT_BYTES:
        raise InvalidInput(
            f"the object has {size} bytes; at most {MAX_OBJECT_BYTES} are kept",
            Code.TOO_LARGE,
            fix="keep less in it, or divide it into several objects",
        )


def copied(value: object) -> Any:
    """Return a deep copy in canonical form."""
    return orjson.loads(canonical(value))


def equal(left: object, right: object) -> bool:
    """Return True for equal JSON values: 1 equals 1.0, and neither equals true."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _plain(value: object, depth: int) -> Any:
    if isinstance(value, dict | list):
        if depth == 0:
            raise InvalidInput(
                f"the value is nested deeper than {MAX_DEPTH} levels",
                Code.TOO_LARGE,
                fix="nest it less",
            )
        if isinstance(value, list):
            return [_plain(item, depth - 1) for item in value]
        return {key: _plain(item, depth - 1) for key, item in value.items()}
    # Beyond 2^53 neighbours are the same double; such a number keeps its form.
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError(f"it has the number {value}")
        if value.is_integer() and abs(value) < 2**53:
            return int(value)
    return value
