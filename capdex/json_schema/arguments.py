"""Arguments of a tool as frameworks send them, read by the tool's schema. Pure.

Frameworks send null or an empty value for an argument that nobody gave, a number as digits, and one
value where a list is wanted.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from capdex.errors import InvalidInput
from capdex.json import exact, list_of, object_of

MAX_NAME_CHARS: Final = 64  # of a name in an error
_DIGITS: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", re.ASCII)
_JSON: Final = re.compile(r"\s*(?:[\[{]|null\s*$)")
_EMPTY: Final[tuple[Any, ...]] = ("", [], {})


def read_arguments(
    schema: Mapping[str, Any], given: Mapping[str, Any], *, texts: bool = True
) -> dict[str, Any]:
    """Return the arguments that say something, each in its type where its meaning is beyond doubt.

    Null is left out, and so is an empty text, list or object for an argument that is not required.
    Digits are read as a number, `true` and `false` as a boolean and a word of an enumeration as
    that word, in any case; JSON text as the list, object or null that it holds, a text with commas
    as a list, and a single value as a list of it. All else stays, and so do arguments that the
    schema does not have. Without `texts` a text is never left out, none is taken apart at its
    commas, and null stays in lists, where it keeps the places of the others.
    """
    known, required = object_of(schema.get("properties")), list_of(schema.get("required"))
    arguments: dict[str, Any] = {}
    for key, value in given.items():
        read = _read(known.get(key, {}), value, texts)
        said = read is not None and (key in required or not texts or read not in _EMPTY)
        if key not in known or said:
            arguments[key] = read
    return arguments


def check_names(tool: str, known: Iterable[str], given: Mapping[str, Any]) -> None:
    """Raise InvalidInput for an argument that is not one of `known`, with the one that is near."""
    names = list(known)
    for key, value in given.items():
        if key not in names and value is not None:
            shown = str(key)[:MAX_NAME_CHARS]
            near = difflib.get_close_matches(shown, names, n=1)
            fix = f"did you mean {near[0]}?" if near else f"it takes {', '.join(names)}"
            raise InvalidInput(f"{tool} takes no argument {shown!r}", fix=fix)


def came(value: object) -> str:
    """Return what came instead of a right value, for an error: a short value itself, or its kind.

    A list or an object may be nested too deep for Python to format.
    """
    if value is None:
        return "it is missing"
    if isinstance(value, dict | list):
        return "it is an object" if isinstance(value, dict) else "it is a list"
    shown = repr(value[:MAX_NAME_CHARS]) if isinstance(value, str) else json.dumps(value)
    return f"it is {shown[: 2 * MAX_NAME_CHARS]}"


def read_text(given: Mapping[str, Any], name: str, fix: str = "") -> str:
    """Return an argument that is a text; raises InvalidInput."""
    value = given.get(name)
    if not isinstance(value, str):
        fix = fix or f'give {{"{name}": "…"}}'
        raise InvalidInput(f"{name} is missing or not a string", why=came(value), fix=fix)
    return value


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    """Return a value that is one of a few words; raises InvalidInput."""
    if value in choices:
        return str(value)
    words = ", ".join(choices)
    raise InvalidInput(f"{name} is not one of {words}", why=came(value), fix="give one of them")


def some_of(name: str, given: object, choices: Sequence[str]) -> list[str]:
    """Return a list of a few words, or the one that stands for it; raises InvalidInput."""
    values = given if isinstance(given, list) else [] if given is None else [given]
    return [one_of(name, value, choices) for value in values]


def _read(schema: Any, value: Any, texts: bool) -> Any:
    if not isinstance(schema, dict):  # true or false: a schema of a stranger
        return value
    kind, words, items = schema.get("type"), schema.get("enum"), schema.get("items")
    if isinstance(kind, list) and len(kinds := [x for x in kind if x != "null"]) == 1:
        kind = kinds[0]
    if isinstance(value, str):
        if kind == "boolean" or isinstance(words, list):
            return _word(value, kind, words)
        if isinstance(kind, list | str) and "string" not in kind and _JSON.match(value):
            with suppress(ValueError):
                value = exact(value)
        if kind == "array" and texts and isinstance(value, str) and value:
            value = [x.strip() for x in value.split(",") if x.strip()]
    match kind, value:
        case "integer", str() if _DIGITS.fullmatch(value):
            return int(value)
        case "number", str() if _DECIMAL.fullmatch(value):
            return float(value)
        case "integer", float() if value.is_integer():
            return int(value)
        case "object", dict() if "properties" in schema:
            return read_arguments(schema, value, texts=texts)
        case "array", dict() | None | "":
            return value
        case "array", list():
            return [y for x in value if (y := _read(items, x, texts)) is not None or not texts]
        case "array", _:
            return [_read(items, value, texts)]
    return value


def _word(value: str, kind: object, words: Any) -> Any:
    """Return the boolean, the one word of an enumeration or the null that a text is in any case."""
    word = value.strip().lower()
    meant = {"null": None} | ({"true": True, "false": False} if kind == "boolean" else {})
    alike = [x for x in words or () if isinstance(x, str) and x.lower() == word]
    return alike[0] if len(alike) == 1 else meant.get(word, value)
