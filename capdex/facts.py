"""What a set of JSON Schemas that all hold at one place says for certain (2020-12, P8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A schema, and what `#/schema` means inside it (a tool's parameters), if anything."""

    root: Any
    package: dict[str, Any] | None = None


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, and true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)
