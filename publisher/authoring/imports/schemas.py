"""JSON Schemas of other formats in the form that a package has (P8, P10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from publisher.authoring.imports.draft import Json
from publisher.authoring.imports.report import Note

MAX_SCHEMA_NODES: Final = 5_000  # values in one schema, after references are resolved
MAX_SCHEMA_DEPTH: Final = 20

_EMPTY: Final[Json] = {"type": "object", "properties": {}}
# Words of OpenAPI and of older drafts that JSON Schema 2020-12 does not have.
_DROPPED: Final = frozenset(
    [
        "$schema",
        "$id",
        "id",
        "example",
        "xml",
        "discriminator",
        "externalDocs",
        "nullable",
        "$comment",
    ]
)
# Keywords whose value maps names to schemas: a name in them is not a keyword.
_MAPS: Final = frozenset(["properties", "patternProperties", "$defs", "dependentSchemas"])
# Keywords whose value is any JSON and is never a schema.
_VALUES: Final = frozenset(["default", "const", "enum", "examples", "required"])


class TooLarge(Exception):
    """A schema has too many values once its references are resolved."""


def adapted(schema: Any, source: str) -> tuple[Json, list[Note]]:
    """Return the schema of a tool's parameters, and what was left out of it.

    Older drafts' words are written in those of 2020-12. Anything but the schema of an object
    becomes that of an object without parameters.
    """
    if schema is None:
        return dict(_EMPTY), []
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        why = "they are not the schema of an object"
        return dict(_EMPTY), [Note(source, "parameters", "left out", "", why)]
    try:
        converted = Resolver({}).schema(schema)
    except TooLarge:
        return dict(_EMPTY), [
            Note(source, "parameters", "left out", "", "their schema is too large")
        ]
    return {"type": "object", **converted}, []


class Resolver:
    """Writes schemas out: references into `document` are replaced by what they name.

    A reference that leads back to itself, or to what is missing, becomes a schema that accepts
    anything; `cut` has those.
    """

    def __init__(self, document: Json) -> None:
        self._document = document
        self._nodes = 0
        self.cut: list[str] = []

    def schema(self, value: Any, path: tuple[str, ...] = (), depth: int = 0) -> Json:
        """Return a schema in the words of JSON Schema 2020-12; raises TooLarge."""
        self._count(depth)
        if not isinstance(value, dict):
            return {}
        reference = value.get("$ref")
        if isinstance(reference, str) and self._document:
            if reference in path:
                self.cut.append(reference)
                return {}
            found = self.find(reference)
            if found is None:
                self.cut.append(reference)
            rest = {key: item for key, item in value.items() if key != "$ref"}
            base = self.schema(found, (*path, reference), depth + 1) if found is not None else {}
            return {**base, **(self.schema(rest, path, depth + 1) if rest else {})}
        made: Json = {}
        for key, item in value.items():
            if key == "definitions":
                key = "$defs"
            if key in _DROPPED or key.startswith("x-"):
                continue
            if key == "$ref" and isinstance(item, str):
                made[key] = item.replace("#/definitions/", "#/$defs/")
            else:
                made[key] = self._item(key, item, path, depth)
        return _bounds(_nullable(made, value))

    def target(self, value: Any) -> Any:
        """Return a value, or what it refers to: None, with the reference in `cut`, if missing."""
        seen: set[str] = set()
        while isinstance(value, dict) and isinstance(reference := value.get("$ref"), str):
            found = None if reference in seen else self.find(reference)
            if found is None:
                self.cut.append(reference)
                return None
            seen.add(reference)
            value = found
        return value

    def find(self, reference: str) -> Any:
        """Return what a reference into the document names, or None."""
        if not reference.startswith("#/"):
            return None
        value: Any = self._document
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def _item(self, key: str, item: Any, path: tuple[str, ...], depth: int) -> Any:
        if key in _VALUES:
            return self._value(item, depth)
        if key in _MAPS and isinstance(item, dict):
            return {str(x): self._below(y, path, depth) for x, y in item.items()}
        if isinstance(item, dict):
            return self.schema(item, path, depth + 1)
        if isinstance(item, list):
            return [self._below(x, path, depth) for x in item]
        return self._value(item, depth)

    def _below(self, item: Any, path: tuple[str, ...], depth: int) -> Any:
        if isinstance(item, dict):
            return self.schema(item, path, depth + 1)
        return self._value(item, depth)

    def _value(self, item: Any, depth: int) -> Any:
        """Return any JSON; what YAML reads as a date becomes text."""
        self._count(depth)
        if isinstance(item, dict):
            return {str(key): self._value(x, depth + 1) for key, x in item.items()}
        if isinstance(item, list):
            return [self._value(x, depth + 1) for x in item]
        return item if isinstance(item, str | int | float | bool | None) else str(item)

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_SCHEMA_NODES or depth > MAX_SCHEMA_DEPTH:
            raise TooLarge


class ObjectSchema(NamedTuple):
    """The properties of an object, by name, and which of them it must have.

    `choice` is True if its schema has alternatives: which properties go together is lost here.
    """

    properties: Json
    required: tuple[str, ...]
    choice: bool = False


def object_of(schema: Json) -> ObjectSchema | None:
    """Return the object that a resolved schema describes; None if it describes another value.

    It has all that the schema is composed of: each property of `allOf`, `oneOf` and `anyOf`. Of
    alternatives it requires what each of them requires.
    """
    types = schema.get("type", "object")
    if "object" not in (types if isinstance(types, list) else [types]):
        return None
    own, needed = schema.get("properties"), schema.get("required")
    parts = _objects(schema.get("allOf"))
    for word in ("oneOf", "anyOf"):
        if isinstance(schema.get(word), list):
            alternatives = _objects(schema[word])
            if not alternatives:
                return None
            parts.append(_any_of(alternatives))
    properties: Json = {}
    required: list[str] = []
    for part in parts:
        properties |= part.properties
        required += part.required
    properties |= own if isinstance(own, dict) else {}
    required += [x for x in needed if isinstance(x, str)] if isinstance(needed, list) else []
    choice = any(x.choice for x in parts)
    return ObjectSchema(properties, tuple(dict.fromkeys(required)), choice)


def _objects(schemas: Any) -> list[ObjectSchema]:
    listed = schemas if isinstance(schemas, list) else []
    found = (object_of(x) for x in listed if isinstance(x, dict))
    return [x for x in found if x is not None]


def _any_of(alternatives: Sequence[ObjectSchema]) -> ObjectSchema:
    if len(alternatives) == 1:
        return alternatives[0]
    forms: dict[str, list[Any]] = {}
    for one in alternatives:
        for name, schema in one.properties.items():
            if schema not in forms.setdefault(name, []):
                forms[name].append(schema)
    properties = {key: x[0] if len(x) == 1 else {"anyOf": x} for key, x in forms.items()}
    common = set.intersection(*(set(x.required) for x in alternatives))
    return ObjectSchema(properties, tuple(x for x in alternatives[0].required if x in common), True)


def _nullable(made: Json, schema: Json) -> Json:
    """Write OpenAPI 3.0's `nullable` as a type."""
    type_ = made.get("type")
    if schema.get("nullable") is True and isinstance(type_, str):
        made["type"] = [type_, "null"]
    return made


def _bounds(made: Json) -> Json:
    """Write the exclusive bounds of draft 4, which are true or false, as numbers."""
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(made.get(word), bool):
            exclusive = made.pop(word)
            if exclusive and bound in made:
                made[word] = made.pop(bound)
    return made
