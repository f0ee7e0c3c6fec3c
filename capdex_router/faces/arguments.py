"""Arguments of the tool `call`, with the shapes that models give by mistake put right. Pure.

They are read once, so that policy and execution see the same call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from capdex.errors import InvalidInput
from capdex.json import Json, exact
from capdex.json_schema.arguments import came, read_arguments
from capdex.json_schema.schema import at_pointer, pointer_steps

MAX_INPUT_CHARS: Final = 1024 * 1024
_TOKEN: Final = re.compile(  # of a pattern
    r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?:|\{(?P<times>[0-9]{1,3})(?:,[0-9]*)?\}|.", re.DOTALL
)
MAX_EXAMPLE_DEPTH: Final = 8
MAX_EXAMPLE_STEPS: Final = 200  # less than Python may nest calls
MAX_ITEMS: Final = 8
MAX_TEXT: Final = 200
_FORMATS: Final = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "name@example.org",
    "uri": "https://example.org/",
    "uuid": "6f2c1f0e-8a4b-4c57-9d1e-3b5a7c9e0f12",
}
_FORM: Final = 'give {"uri": "…", "input": {…}}'
_NAMES: Final = ("uri", "want")
# A host in a strict mode closes the object `input`, and gives the text `input_json`.
_INPUTS: Final = ("input", "input_json", "arguments", "args", "parameters", "params", "context")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call as the model means it: of a capability by its `uri`, or of a command by a `want`."""

    uri: str | None
    want: str | None
    input: Json


def read_call(arguments: Json) -> Wanted:
    """Return the call that some arguments mean.

    Put right: the whole call within `input` or another common name, some or all of the input
    beside it, and the input as a JSON text. `confirm` is left out: it says what the model wants,
    and is not a consent. Raises InvalidInput without a uri or a want.
    """
    named, given = _unwrap(arguments)
    for _ in range(2):  # a call within a call, as some models write it
        if any(name in named for name in _NAMES) or not isinstance(given, dict):
            break
        named, given = _unwrap(given)
    if not isinstance(given, dict):
        raise InvalidInput("input is not an object", why=came(given), fix=_FORM)
    uri, want = (_text(named, name) for name in _NAMES)
    if uri is None and want is None:
        raise InvalidInput("call needs a uri, or a want", fix=_FORM)
    return Wanted(uri, want, given)


def within(given: Json) -> Json:
    """Return the input within `{"input": {…}}` that has no more than a repeated uri beside it."""
    if [key for key in given if key != "uri"] == ["input"] and isinstance(given["input"], dict):
        return given["input"]
    return given


def _unwrap(arguments: Json) -> tuple[Json, Any]:
    """Return the arguments that name the call, and its input."""
    named = {name: arguments[name] for name in _NAMES if arguments.get(name) is not None}
    known = (*_NAMES, *_INPUTS, "confirm")
    others = {key: value for key, value in arguments.items() if key not in known}
    for name in _INPUTS:
        if arguments.get(name) is not None:
            given = _decoded(arguments[name])
            return named, others | given if isinstance(given, dict) else given
    return named, others


def _decoded(value: object) -> Any:
    if not isinstance(value, str):
        return value
    if len(value) > MAX_INPUT_CHARS:
        raise InvalidInput("input is too long", fix=f"send at most {MAX_INPUT_CHARS} characters")
    try:
        return exact(value)
    except ValueError:
        return value


def _text(named: Json, name: str) -> str | None:
    value = named.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} is not text", why=came(value), fix=_FORM)
    return value or None


def example(schema: Json) -> Any:
    """Return a value that a schema seems to want: its required fields, each with a plain value.

    References within the schema are followed, at most MAX_EXAMPLE_STEPS schemas in all: a schema of
    a stranger may refer to itself. It can ask for more than this meets: the caller checks the value
    before it shows it.
    """
    try:
        return _Schema(schema).value(schema, 0)
    except (AttributeError, LookupError, TypeError):  # it may be no schema: `required: true`
        return None


def read_input(schema: Json, given: Json) -> Json:
    """Return an input as `read_arguments` does, with references in the schema's parameters read."""
    try:
        known = (schema.get("properties") or {}).items()
        schema = schema | {"properties": {x: _Schema(schema).whole(y) for x, y in known}}
    except (AttributeError, LookupError, TypeError):  # as in `example`
        pass
    return read_arguments(schema, given, texts=False)


@dataclass(slots=True)
class _Schema:
    """Reads parts of one schema, and makes values for them; `left` are still looked at."""

    root: Json
    left: int = MAX_EXAMPLE_STEPS

    def value(self, schema: object, depth: int) -> Any:
        """Return a value for a schema that stands `depth` values deep."""
        schema = self.whole(schema)
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        for key in ("examples", "enum"):
            if isinstance(schema.get(key), list) and schema[key]:
                return schema[key][0]
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), "null")
        inner = {} if depth > MAX_EXAMPLE_DEPTH else schema
        if kind == "object" or (kind is None and "properties" in schema):
            properties = inner.get("properties") or {}
            other = inner.get("additionalProperties", {})
            wanted = dict.fromkeys(inner.get("required") or ())
            return {x: self.value(properties.get(x, other), depth + 1) for x in wanted}
        if kind == "array":
            count = min(inner.get("minItems", 0), MAX_ITEMS)
            return [self.value(inner.get("items", {}), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            return max(schema.get("minimum", 1), schema.get("exclusiveMinimum", 0) + 1)
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        if isinstance(schema.get("pattern"), str):
            return _matching(schema["pattern"])
        plain: dict[Any, Any] = {"boolean": True, "null": None}
        return plain.get(kind, "text".ljust(min(schema.get("minLength", 0), MAX_TEXT), "."))

    def whole(self, schema: object) -> Json:
        """Return a schema with what `$ref`, `allOf` and a first choice add; `{}` for no object."""
        self.left -= 1
        if self.left < 0 or not isinstance(schema, dict):
            return {}
        whole: Json = {key: value for key, value in schema.items() if key != "$ref"}
        if isinstance(schema.get("$ref"), str):
            _, target = at_pointer(self.root, pointer_steps(schema["$ref"]) or ())
            whole = {**self.whole(target), **whole}
        parts = [*(whole.pop("allOf", None) or ())]
        parts += [first for key in ("oneOf", "anyOf") for first in (whole.pop(key, None) or ())[:1]]
        for part in parts:
            sub = self.whole(part)
            whole = {**sub, **whole} | {
                "properties": {**(sub.get("properties") or {}), **(whole.get("properties") or {})},
                "required": [*(sub.get("required") or ()), *(whole.get("required") or ())],
            }
        return whole


def _matching(pattern: str) -> str:
    """Return a text that a plain pattern matches: the first of what it allows, as little as it can.

    Of what it does not read, such as look-ahead, the text may not match.
    """
    open_: list[list[str]] = [[]]  # the parts of each group that is not closed
    for token in _TOKEN.finditer(pattern):
        written, parts = token[0], open_[-1]
        if written in ("(", "(?:"):
            open_.append([])
        elif written == ")" and len(open_) > 1:
            open_[-2].append("".join(_first(open_.pop()))[:MAX_TEXT])
        elif written in ("*", "?") or token["times"]:
            last, times = "".join(parts[-1:]), int(token["times"] or 0)
            parts[-1:] = [(last * times)[:MAX_TEXT]]
        elif written not in ("^", "$", "+", "\\b"):
            parts.append(_character(written))
    return "".join(_first(open_[0]))[:MAX_TEXT]


def _first(parts: list[str]) -> list[str]:
    """Return the parts of the first alternative."""
    return parts[: parts.index("|")] if "|" in parts else parts


def _character(written: str) -> str:
    """Return what one part of a pattern matches: a character of a class, or itself."""
    if written.startswith("[") and len(written) > 1:
        first = _TOKEN.match(written[1:-1])
        return _character(first[0]) if first and first[0] not in ("^", ".") else "a"
    if written.startswith("\\"):
        return {"d": "1", "w": "a", "s": " "}.get(written[1:], written[1:])
    return "a" if written == "." else written
