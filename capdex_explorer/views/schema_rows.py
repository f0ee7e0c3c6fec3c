"""A JSON Schema as rows of a table: one for each property, nested ones by their paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, TypeGuard

from capdex.json import object_of

MAX_ROWS: Final = 120
MAX_VALUE_CHARS: Final = 200
_PLAIN: Final = re.compile(r"[\w$-]+")  # another name is quoted, so that it imitates no path
_LIMITS: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "const"),
)

Row = dict[str, Any]


def schema_rows(schema: object) -> list[Row]:
    """Return the properties of a schema as rows, in order; at most MAX_ROWS.

    A row has `path`, `type`, `required` (None for what a list holds), `default`, `limits` (texts)
    and `description`.
    """
    return list(islice(_rows(schema, ""), MAX_ROWS))


def _rows(schema: object, path: str) -> Iterator[Row]:
    if not isinstance(schema, dict):
        return
    names = set(required) if _are_texts(required := schema.get("required")) else set()
    for name, inner in object_of(schema.get("properties")).items():
        key = name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        at = f"{path}.{key}" if path else key
        yield _row(at, inner, name in names)
        yield from _rows(inner, at)
    items = schema.get("items")
    if isinstance(items, dict):
        row = _row(f"{path}[]", items, None)
        if not path or row["limits"] or row["description"]:
            yield row
        yield from _rows(items, row["path"])


def _row(path: str, schema: object, required: bool | None) -> Row:
    known = object_of(schema)
    limits = [f"{key} {_text(known[key])}" for key in _LIMITS if key in known]
    if isinstance(choices := known.get("enum"), list):
        limits.insert(0, "one of " + _cut(", ".join(_text(x) for x in choices[:MAX_VALUE_CHARS])))
    return {
        "path": path,
        "type": _type(schema),
        "required": required,
        "default": _text(known["default"]) if "default" in known else None,
        "limits": limits,
        "description": str(known.get("description") or ""),
    }


def _type(schema: object) -> str:
    if not isinstance(schema, dict):
        return "nothing" if schema is False else "anything"
    kind = schema.get("type")
    if _are_texts(kind):
        return " or ".join(kind)
    if kind == "array" and isinstance(items := schema.get("items"), dict):
        return f"array of {_type(items)}"
    if isinstance(kind, str):
        return kind
    if isinstance(reference := schema.get("$ref"), str):
        return _cut(reference)
    several = next((schema[x] for x in ("anyOf", "oneOf") if isinstance(schema.get(x), list)), None)
    return " or ".join(dict.fromkeys(_type(x) for x in several[:8])) if several else "anything"


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(x, str) for x in value)


def _text(value: object) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARS else text[:MAX_VALUE_CHARS] + "…"
