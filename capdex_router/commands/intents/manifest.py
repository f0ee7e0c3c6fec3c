"""Files of a CMP tool, `manifest.json` and `capability.json`, read within bounds.

Source: CMP, Core Concepts (`name`, `summary`, intents with `patterns` and `command`), and CMP
v0.1.0, sections 3, 4 and 8: `binary`, `destructive`, `re:` patterns, and adapters with `wraps`,
`template` and `outputParser`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args

import msgspec
import re2
from msgspec import Meta

from capdex.errors import InvalidInput, untrusted_text
from capdex.json import object_of
from capdex.net import json_reply
from capdex_router.commands.intents.template import (
    ONE_LINE,
    CommandTemplate,
    Parameter,
    Text,
)

MAX_FILE_BYTES: Final = 64 * 1024  # a manifest has 20 tokens, a large capability 100 intents
MAX_INTENTS: Final = 256
MAX_PATTERNS: Final = 64
MAX_PARAMETERS: Final = 128  # a command of git has up to 60 options, `tar` 150
MAX_PATTERN_CHARS: Final = 256

T = TypeVar("T")
Kind = Literal["json", "jsonLines", "lines", "table"]
_Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")]
_Pattern = Annotated[str, Meta(max_length=MAX_PATTERN_CHARS, pattern=ONE_LINE)]
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

    domain: _Name
    name: _Name
    summary: Text
    version: Text = "0.0.0"
    binary: Text = ""

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


class _StatedIntent(msgspec.Struct, frozen=True):
    """An intent as a file states it (CMP v0.1.0, 4.1)."""

    patterns: Annotated[tuple[_Pattern, ...], Meta(max_length=MAX_PATTERNS)]
    command: str
    params: Annotated[dict[str, dict[str, Any]], Meta(max_length=MAX_PARAMETERS)] = {}
    returns: dict[str, Any] | None = None
    confirm: bool = False
    destructive: bool = False
    idempotent: bool = True
    kind: Kind | None = msgspec.field(default=None, name="outputParser")
    summary: Text = ""


class _Capability(msgspec.Struct, frozen=True):
    intents: Annotated[tuple[Any, ...], Meta(max_length=MAX_INTENTS)]


def parse_manifest(data: bytes) -> CommandManifest:
    """Read a `manifest.json`, or an adapter's one file; raises InvalidInput."""
    return manifest_of(_json(data))


def manifest_of(value: object) -> CommandManifest:
    """Return the manifest in an object; raises InvalidInput."""
    value = object_of(value)
    named = {"binary": value.get("wraps", value.get("name", "")), **value}
    return _read("the manifest", named, CommandManifest)


def parse_capability(data: bytes) -> tuple[Intent, ...]:
    """Read the intents of a `capability.json`, or of an adapter's file; raises InvalidInput."""
    return tuple(map(parse_intent, _read("the capability", _json(data), _Capability).intents))


def parse_intent(value: object) -> Intent:
    """Read one intent (CMP v0.1.0, 4.1); raises InvalidInput."""
    value = object_of(value)
    stated = _read("an intent", {"command": value.get("template"), **value}, _StatedIntent)
    for pattern in stated.patterns:
        _check_pattern(pattern)
    params = (
        _read(f"the param {name[:64]}", {**param, "name": name}, Parameter)
        for name, param in stated.params.items()
    )
    return Intent(
        stated.patterns,
        CommandTemplate.parse(stated.command, tuple(params)),
        stated.returns,
        stated.confirm,
        stated.destructive,
        stated.idempotent,
        stated.kind,
        stated.summary,
    )


def _stated(parameter: Parameter, names: tuple[str, ...]) -> dict[str, Any]:
    """Return those of some fields that say something; the default may be false, 0 or empty."""
    values = {name: getattr(parameter, name) for name in names}
    said = {name: x for name, x in values.items() if x or (name == "default" and x is not None)}
    return {name: list(x) if name == "enum" else x for name, x in said.items()}


def _schema(value: object) -> Any:
    if not isinstance(value, dict):
        return value
    if value and "type" not in value and set(map(str, value.values())) <= _SHORT:
        return {"type": "object", "properties": {key: {"type": x} for key, x in value.items()}}
    return {key: _schema(inner) for key, inner in value.items()}


def _check_pattern(text: str) -> None:
    if text.startswith("re:"):
        try:
            re2.compile(text[3:])
        except re2.error as error:
            raise InvalidInput(
                f"the pattern {text!r} is not an RE2 pattern",
                why=str(error),
                fix="write it as RE2 does, without look-around and back references",
            ) from None


def _json(data: bytes) -> object:
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


def _read(what: str, value: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"a file of CMP is wrong: {what}",
            why=untrusted_text(str(error)),
            fix="correct it: the specification of CMP has the form; a text is on one line, and "
            f"outputParser is one of {', '.join(get_args(Kind))}",
        ) from None
