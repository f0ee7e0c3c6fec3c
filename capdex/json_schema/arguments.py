"""Arguments of a tool as frameworks send them, read by the tool's schema. Pure.

Frameworks send null or an empty value for an argument that nobody gave, a number as digits, and one
value where a list is wanted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from capdex.errors import InvalidInput

MAX_NAME_CHARS: Final = 64  # of a name in an error
_DIGITS: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_EMPTY: Final[tuple[Any, ...]] = ("", [], {})


def read_arguments(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that say something, each in its type where its meaning is beyond doubt.

    Null is left out, and so is an empty text, list or object for an argument that is not required.
    Digits are read as an integer, `true` and `false` as a boolean, JSON text as the list or object
    that it holds, and a single value as a list of it. All else stays as it is, and so do arguments
    that the schema does not have.
    """
    known, required = schema.get("properties", {}), schema.get("required", ())
    found: dict[str, Any] = {}
    for key, value in given.items():
        read = _read(known.get(key, {}), value)
        if key not in known or (read is not None and (key in required or read not in _EMPTY)):
            found[key] = read
    return found


def check_names(tool: str, known: Iterable[str], given: Mapping[str, Any]) -> None:
    """Raise InvalidInput for an argument that is not one of `known`, with the one that is near."""
    names = list(known)
    for key, value in given.items():
        if key not in names and value is not None:
            shown = str(key)[:MAX_NAME_CHARS]
            near = difflib.get_close_matches(shown, names, n=1)
            fix = f"did you mean {near[0]}?" if near else f"it takes {', '.join(names)}"
            raise InvalidInput(f"{tool} takes no argument {shown!r}", fix=fix)


def _read(schema: Mapping[str, Any], value: Any) -> Any:
    kind = schema.get("type")
    if kind in ("array", "object") and isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        with suppress(ValueError):
            value = orjson.loads(value)
    if kind == "integer" and isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    if kind == "object" and "properties" in schema and isinstance(value, dict):
        return read_arguments(schema, value)
    if kind == "array" and isinstance(value, list):
        return [_read(schema["items"], x) for x in value if x is not None]
    if kind == "array" and not isinstance(value, dict) and value not in (None, ""):
        return [_read(schema["items"], value)]
    return value
