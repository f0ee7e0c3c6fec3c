"""JSON values as JSON Schema sees them: equality, kinds, and patterns in their texts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import re2

from capdex.manifest.triggers import compile_pattern

# `number` is two kinds here, so that types are sets.
KINDS: Final = frozenset(["array", "boolean", "null", "object", "string", "integer", "fraction"])

# Patterns and names about which RE2, ECMA-262 and Python agree.
_PLAIN = r"[A-Za-z0-9_ .,:;@#%&=!<>~/-]"
_PORTABLE = re.compile(
    rf"(?:{_PLAIN}|[$^|)*+?]|\((?!\?)|\\[dwDW./-]|\[\^?{_PLAIN}+\]|\{{[0-9]{{1,3}}\}})*", re.ASCII
)


def constant(value: Any) -> dict[str, Any]:
    """A schema of one value's parts: everything but that it is this one."""
    match value:
        case bool() | None:
            return {}
        case str():
            return {"minLength": len(value), "maxLength": len(value)}
        case list():
            listed, count = [{"const": item} for item in value], len(value)
            return {"prefixItems": listed, "items": False, "minItems": count, "maxItems": count}
        case dict():
            return {
                "properties": {key: {"const": item} for key, item in value.items()},
                "required": list(value),
                "additionalProperties": False,
                "minProperties": len(value),
                "maxProperties": len(value),
            }
    return {"minimum": value, "maximum": value, "multipleOf": abs(value) or 1}


def frozen(value: Any) -> Any:
    """A JSON value as something hashable: 1 is 1.0, and true is not 1."""
    if isinstance(value, dict):
        return dict, frozenset((key, frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return list, tuple(map(frozen, value))
    return isinstance(value, bool), value


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal."""
    return bool(frozen(a) == frozen(b))


def kind(value: Any) -> str:
    """The kind of a JSON value; 1.0 is an integer."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == math.floor(value) else "fraction"
    return {dict: "object", list: "array", str: "string", type(None): "null"}[type(value)]


def kinds(type_: str | Sequence[str]) -> frozenset[str]:
    """The kinds that a `type` keyword takes."""
    names = [type_] if isinstance(type_, str) else type_
    split = {"number": ("integer", "fraction")}
    return frozenset(x for name in names for x in split.get(name, (name,)))


def matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern finds something in a text; None where engines may not agree."""
    if not (_PORTABLE.fullmatch(pattern) and text.isascii() and text.isprintable()):
        return None
    compiled = _compiled(pattern)
    return None if compiled is None else compiled.search(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except re2.error:
        return None
