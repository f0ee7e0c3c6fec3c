"""Proving one assertion of JSON Schema from what others say for certain: types, bounds, values.

Each rule takes what holds, the keyword, its value and the place, and returns the gap there, if any.
Keywords about kinds of value that cannot stand there hold by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from capdex.diff.facts import Conjunction
from capdex.diff.gap import Gap, Place
from capdex.json_schema.values import KINDS, frozen, kinds, matches

NUMBERS: Final = frozenset(["integer", "fraction"])
STRINGS: Final = frozenset(["string"])
OBJECTS: Final = frozenset(["object"])
ARRAYS: Final = frozenset(["array"])


def prove(a: Conjunction, keyword: str, value: Any, place: Place) -> list[Gap]:
    """The gap that an assertion leaves; `keyword` is one of ASSERTIONS."""
    about, rule = _RULES[keyword]
    return rule(a, keyword, value, place) if about & a.types else []


def _type(a: Conjunction, keyword: str, value: Any, place: Place) -> list[Gap]:
    if a.types <= kinds(value):
        return []
    return [Gap(place.path, keyword, _type_names(a.types), value)]


def _type_names(types: frozenset[str]) -> Any:
    """Types as `type` writes them; None for any."""
    if types == KINDS:
        return None
    names = set(types)
    if "fraction" in names:
        names = names - NUMBERS | {"number"}
    return sorted(names) if len(names) > 1 else names.pop()


def _enum(a: Conjunction, keyword: str, value: list[Any], place: Place) -> list[Gap]:
    if a.values is None:
        return [Gap(place.path, "enum", None, value)]
    known = {frozen(item) for item in value}
    missing = [item for item in a.values if frozen(item) not in known]
    return [Gap(place.path, "missing", missing)] if missing else []


def _const(a: Conjunction, keyword: str, value: Any, place: Place) -> list[Gap]:
    return _enum(a, keyword, [value], place)


def _required(a: Conjunction, keyword: str, value: list[str], place: Place) -> list[Gap]:
    return [Gap(place.named(x).path, keyword) for x in value if x not in a.required]


def _at_least(a: Conjunction, keyword: str, value: float, place: Place) -> list[Gap]:
    known = {
        "minLength": 0,
        "minItems": 0,
        "minProperties": len(a.required),
    }
    least = max([*a.said(keyword), known[keyword]])
    return [] if least >= value else [Gap(place.path, keyword, least or None, value)]


def _at_most(a: Conjunction, keyword: str, value: float, place: Place) -> list[Gap]:
    known: float = math.inf
    if keyword == "maxItems":
        known = a.most_items
    elif keyword == "maxProperties" and a.closed is not None:
        known = len(a.closed)
    most = min([*a.said(keyword), known])
    if most <= value:
        return []
    return [Gap(place.path, keyword, None if most == math.inf else most, value)]


def _bound(a: Conjunction, keyword: str, value: float, place: Place) -> list[Gap]:
    sign = -1 if "ax" in keyword else 1
    bound = a.bound(sign)
    if bound is not None:
        known, left_out = bound
        inside = sign * known > sign * value
        if inside or (known == value and (left_out or not keyword.startswith("exclusive"))):
            return []
    return [
        Gap(place.path, keyword, max(a.said(keyword), default=None, key=lambda x: sign * x), value)
    ]


def _multiple_of(a: Conjunction, keyword: str, value: float, place: Place) -> list[Gap]:
    known = a.said(keyword)
    # Fractions are multiples in one reader and not in another: equal ones alone are sure.
    if value in known or (value == 1 and "fraction" not in a.types):
        return []
    if isinstance(value, int) and any(isinstance(x, int) and x % value == 0 for x in known):
        return []
    return [Gap(place.path, keyword, known[0] if known else None, value)]


def _pattern(a: Conjunction, keyword: str, value: str, place: Place) -> list[Gap]:
    known = a.said(keyword)
    if value in known:
        return []
    if a.values is not None and all(
        matches(value, text) for text in a.values if isinstance(text, str)
    ):
        return []
    return [Gap(place.path, keyword, known[0] if known else None, value, decided=False)]


def _equal(a: Conjunction, keyword: str, value: Any, place: Place) -> list[Gap]:
    known = a.said(keyword)
    if any(frozen(x) == frozen(value) for x in known):
        return []
    return [Gap(place.path, keyword, known[0] if known else None, value, decided=False)]


def _unique(a: Conjunction, keyword: str, value: bool, place: Place) -> list[Gap]:
    if not value or any(a.said(keyword)) or a.most_items <= 1:
        return []
    return [Gap(place.path, keyword, None, value)]


_Rule = Callable[[Conjunction, str, Any, Place], list[Gap]]
_RULES: Final[dict[str, tuple[frozenset[str], _Rule]]] = {
    "type": (KINDS, _type),
    "enum": (KINDS, _enum),
    "const": (KINDS, _const),
    "required": (OBJECTS, _required),
    "minProperties": (OBJECTS, _at_least),
    "maxProperties": (OBJECTS, _at_most),
    "minItems": (ARRAYS, _at_least),
    "maxItems": (ARRAYS, _at_most),
    "uniqueItems": (ARRAYS, _unique),
    "minLength": (STRINGS, _at_least),
    "maxLength": (STRINGS, _at_most),
    "pattern": (STRINGS, _pattern),
    # Annotations by the letter of 2020-12, and checked by many readers.
    "format": (STRINGS, _equal),
    "contentEncoding": (STRINGS, _equal),
    "contentMediaType": (STRINGS, _equal),
    "contentSchema": (STRINGS, _equal),
    "minimum": (NUMBERS, _bound),
    "exclusiveMinimum": (NUMBERS, _bound),
    "maximum": (NUMBERS, _bound),
    "exclusiveMaximum": (NUMBERS, _bound),
    "multipleOf": (NUMBERS, _multiple_of),
}
ASSERTIONS: Final = frozenset(_RULES)
