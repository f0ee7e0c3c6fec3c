"""Files of a CMP tool, `manifest.json` and `capability.json`, read within bounds.

Source: CMP, Core Concepts (`name`, `summary`, intents with `patterns` and `command`), and CMP
v0.1.0, sections 3, 4 and 8: `binary`, `destructive`, `re:` patterns, and adapters with `wraps`,
`template` and `outputParser`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import re2

from capdex.errors import InvalidInput
from capdex.net import json_reply
from capdex_router.commands.intents.template import MAX_CHARS, CommandTemplate, Parameter

MAX_FILE_BYTES: Final = 64 * 1024  # a manifest has 20 tokens, a large capability 100 intents
MAX_INTENTS: Final = 256
MAX_PATTERNS: Final = 64
MAX_PARAMETERS: Final = 128  # a command of git has up to 60 options, `tar` 150
MAX_TEXT_CHARS: Final = 500
MAX_PATTERN_CHARS: Final = 256

Kind = Literal["json", "jsonLines", "lines", "table"]
KINDS: Final = ("json", "jsonLines", "lines", "table")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TYPES: Final[dict[str, dict[str, Any]]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "array<string>": {"type": "array", "items": {"type": "string"}},
    "array<integer>": {"type": "array", "items": {"type": "integer"}},
}
_STATED: Final = ("required", "default", "description", "enum", "option")
_SHORT: Final = {"string", "integer", "number", "boolean", "object", "array"}


@dataclass(frozen=True, slots=True)
class CommandManifest:
    """A tool in one line: its domain, name, summary and version, and the program that it runs."""

    domain: str
    name: str
    summary: str
    version: str
    binary: str

    def to_json(self) -> dict[str, str]:
        """Return the four fields of a manifest (CMP, manifest.json)."""
        return {name: getattr(self, name) for name in ("domain", "name", "summary", "version")}


@dataclass(frozen=True, slots=True)
class Intent:
    """A wish that a tool fulfils: phrases that state it, and the command that does it.

    `kind` is the shape of the output, or None if nobody stated it. An intent made from a help has
    no phrases, but a `summary`.
    """

    patterns: tuple[str, ...]
    template: CommandTemplate
    returns: dict[str, Any] | None = None
    confirm: bool = False
    destructive: bool = False
    idempotent: bool = True
    kind: Kind | None = None
    summary: str = ""

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the parameters."""
        shown = ("description", "default", "enum")
        properties = {
            parameter.name: {**_TYPES[parameter.type], **_stated(parameter, shown)}
            for parameter in self.template.parameters
        }
        required = [parameter.name for parameter in self.template.parameters if parameter.required]
        schema = {"type": "object", "properties": properties, "required": required}
        # A misspelled `dry_run` that is passed over would let the command run.
        return schema if self.patterns else {**schema, "additionalProperties": False}

    def to_json(self) -> dict[str, Any]:
        """Return the intent as the schema level shows it (CMP v0.1.0, 5.2.5)."""
        return {
            "patterns": list(self.patterns),
            "command": self.template.text,
            "params": {
                parameter.name: {"type": parameter.type, **_stated(parameter, _STATED)}
                for parameter in self.template.parameters
            },
            **({"returns": self.returns} if self.returns is not None else {}),
            "confirm": self.confirm,
            "destructive": self.destructive,
            **({"summary": self.summary} if self.summary else {}),
        }

    def output_schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the output; `{"name": "string"}` stands for an object."""
        return None if self.returns is None else cast("dict[str, Any]", _schema(self.returns))


@dataclass(frozen=True, slots=True)
class ProbeValues:
    """Values to probe an intent with, in a directory of known content."""

    intent: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CommandTool:
    """A manifest, its intents, and values to probe them with."""

    manifest: CommandManifest
    intents: tuple[Intent, ...]
    samples: tuple[ProbeValues, ...] = ()


def parse_manifest(data: bytes) -> CommandManifest:
    """Read a `manifest.json`, or an adapter's one file; raises InvalidInput."""
    return manifest_of(_object(_json(data), "the manifest"))


def manifest_of(value: dict[str, Any]) -> CommandManifest:
    """Return the manifest in an object; raises InvalidInput."""
    name = _name(value, "name")
    binary = value.get("binary", value.get("wraps", name))
    return CommandManifest(
        _name(value, "domain"),
        name,
        _text(value.get("summary"), "summary"),
        _text(value.get("version", "0.0.0"), "version"),
        _text(binary, "binary"),
    )


def parse_capability(data: bytes) -> tuple[Intent, ...]:
    """Read the intents of a `capability.json`, or of an adapter's file; raises InvalidInput."""
    value = _object(_json(data), "the capability")
    intents = _list(value.get("intents"), "intents", MAX_INTENTS)
    return tuple(parse_intent(entry) for entry in intents)


def parse_intent(value: object) -> Intent:
    """Read one intent (CMP v0.1.0, 4.1); raises InvalidInput."""
    fields = _object(value, "an intent")
    patterns = tuple(
        _pattern(pattern) for pattern in _list(fields.get("patterns"), "patterns", MAX_PATTERNS)
    )
    text = fields.get("command", fields.get("template"))
    kind = fields.get("outputParser")
    returns = fields.get("returns")
    if kind is not None and kind not in KINDS:
        raise _wrong("outputParser", f"one of {', '.join(KINDS)}")
    return Intent(
        patterns,
        CommandTemplate.parse(_text(text, "command", MAX_CHARS), _parameters(fields)),
        None if returns is None else _object(returns, "returns"),
        _flag(fields, "confirm", default=False),
        _flag(fields, "destructive", default=False),
        _flag(fields, "idempotent", default=True),
        kind,
        _text(fields.get("summary", ""), "summary"),
    )


def _parameters(intent: dict[str, Any]) -> tuple[Parameter, ...]:
    params = _object(intent.get("params", {}), "params")
    if len(params) > MAX_PARAMETERS:
        raise _wrong("params", f"at most {MAX_PARAMETERS}")
    return tuple(_parameter(name, _object(value, "a param")) for name, value in params.items())


def _stated(parameter: Parameter, names: tuple[str, ...]) -> dict[str, Any]:
    """Return those of some fields that say something; the default may be false, 0 or empty."""
    values = {name: getattr(parameter, name) for name in names}
    said = {name: x for name, x in values.items() if x or (name == "default" and x is not None)}
    return {name: list(x) if name == "enum" else x for name, x in said.items()}


def _parameter(name: str, value: dict[str, Any]) -> Parameter:
    if value.get("type", "string") not in _TYPES:
        raise _wrong(f"type of the param {name[:64]}", f"one of {', '.join(_TYPES)}")
    return Parameter(
        name,
        value.get("type", "string"),
        required=_flag(value, "required", default=False),
        default=value.get("default"),
        description=_text(value.get("description", ""), "description"),
        enum=tuple(_list(value.get("enum", []), "enum", MAX_PATTERNS)),
        option=_text(value.get("option", ""), "option"),
    )


def _schema(value: object) -> Any:
    if not isinstance(value, dict):
        return value
    if value and "type" not in value and set(map(str, value.values())) <= _SHORT:
        return {"type": "object", "properties": {key: {"type": x} for key, x in value.items()}}
    return {key: _schema(inner) for key, inner in value.items()}


def _pattern(value: object) -> str:
    text = _text(value, "a pattern", MAX_PATTERN_CHARS)
    if text.startswith("re:"):
        try:
            re2.compile(text[3:])
        except re2.error as error:
            raise InvalidInput(
                f"the pattern {text!r} is not an RE2 pattern",
                why=str(error),
                fix="write it as RE2 does, without look-around and back references",
            ) from None
    return text


def _json(data: bytes) -> Any:
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInput(
            "a file of CMP is too long",
            why=f"{len(data)} bytes, over {MAX_FILE_BYTES}",
            fix="divide the tool into several",
        )
    try:
        return json_reply.parse(data, long_bytes=MAX_FILE_BYTES, min_value_bytes=1)
    except ValueError as error:
        raise InvalidInput(
            "a file of CMP cannot be read", why=f"it is {error}", fix="name a file of JSON"
        ) from None


def _name(value: dict[str, Any], key: str) -> str:
    text = _text(value.get(key), key)
    if not _NAME.fullmatch(text):
        raise _wrong(key, "up to 64 letters, digits, '.', '_' and '-'")
    return text


def _text(value: object, what: str, limit: int = MAX_TEXT_CHARS) -> str:
    if not isinstance(value, str) or len(value) > limit or _CONTROL.search(value):
        raise _wrong(what, f"a text of one line, at most {limit} characters")
    return value


def _flag(value: dict[str, Any], key: str, *, default: bool) -> bool:
    flag = value.get(key, default)
    if not isinstance(flag, bool):
        raise _wrong(key, "true or false")
    return flag


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(what, "an object")
    return value


def _list(value: object, what: str, limit: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > limit:
        raise _wrong(what, f"a list of at most {limit}")
    return value


def _wrong(what: str, expected: str) -> InvalidInput:
    return InvalidInput(
        f"a file of CMP is wrong: {what}",
        why=f"expected {expected}",
        fix="correct it: the specification of CMP has the form",
    )
