"""JSON values as JSON Schema compares them: equality and kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

# `number` is two kinds here, so that types are sets.
KINDS: Final = frozenset(["array", "boolean", "null", "object", "string", "integer", "fraction"])


def frozen(value: Any) -> Any:
    """Return a JSON value as something hashable, so that 1 equals 1.0 and not true."""
    if isinstance(value, dict):
        return dict, frozenset((key, frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return list, tuple(map(frozen, value))
    return isinstance(value, bool), value


def same(a: Any, b: Any) -> bool:
    """True if two JSON values are equal."""
    return bool(frozen(a) == frozen(b))


def kind(value: Any) -> str:
    """Return the kind of a JSON value; 1.0 is an integer."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == math.floor(value) else "fraction"
    return {dict: "object", list: "array", str: "string", type(None): "null"}[type(value)]


def kinds(type_: str | Sequence[str]) -> frozenset[str]:
    """Return the kinds that a `type` keyword accepts."""
    names = [type_] if isinstance(type_, str) else type_
    split = {"number": ("integer", "fraction")}
    return frozenset(x for name in names for x in split.get(name, (name,)))
