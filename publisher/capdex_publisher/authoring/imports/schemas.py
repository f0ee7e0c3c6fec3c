"""JSON Schemas of other formats in the form that a package has (P8, P10)."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any, Final

import jsonschema_rs

from capdex.json import Json, list_of, object_of, objects_in
from capdex.json_schema import bounds
from capdex.json_schema.keywords import ANNOTATIONS, RULES, Shape
from capdex.yaml.characters import forbidden
from capdex.yaml.scalars import MAX_SAFE_INTEGER
from capdex_publisher.authoring.imports.references import (
    OPENED,
    discriminator_of,
    found_at,
    overlapping,
    read_only,
    renamed,
    united,
)
from capdex_publisher.authoring.imports.report import (
    UNSEEN,
    Fate,
    clean,
    cut,
    pattern_fault,
    tool_name_of,
    unseen,
    written,
)
from capdex_publisher.authoring.secret_shapes import secret_like

MAX_SCHEMA_NODES: Final = 7_000  # keys and values of one tool; a package has at most 10 000
MAX_TOOL_SCHEMA_BYTES: Final = 160 * 1024  # of the 256 KiB that a package has
MAX_DESCRIPTION_BYTES: Final = 1024  # of one part of a schema
MAX_PARTS: Final = bounds.MAX_PARTS - 20  # objects and lists of one tool: what a router holds
MAX_INLINE_DEPTH: Final = 14  # what is deeper moves to `$defs`: a package has at most 32 levels
MAX_VALUE_DEPTH: Final = 6  # of examples and defaults

_BESIDE: Final = ANNOTATIONS | {"example"}  # kept where a dialect ignores what is beside `$ref`
_ANY_VALUE: Final = ("const", "default")  # keywords that hold any value
_PYTHON: Final = {  # types, as lists of tools by hand have them
    "dict": "object", "list": "array", "tuple": "array", "str": "string",
    "int": "integer", "float": "number", "bool": "boolean",
}  # fmt: skip
# No value is judged by these words: they name a part, or are told in another way.
_SILENT: Final = re.compile(
    r"(?s)\$(?:schema|id|anchor|comment)|id|xml|externalDocs|x-.*|discriminator|collectionFormat"
)
_PARTS: Final = frozenset(["allOf", "anyOf", "oneOf"])
_SAME_PLACE: Final = _PARTS | {"then", "else"}  # where a value has to fit
# Without these words a value fits no more parts of a choice.
_APART: Final = _BESIDE | {"additionalProperties", "discriminator", "nullable"}


class TooLarge(Exception):
    """A schema has more than a package can carry; the text says of what."""


class Unfit(Exception):
    """A value that a package may not hold; the text says why."""


def _is_typed(schema: Json, key: str) -> bool:
    """Return True if the values of a keyword are of the schema's type; null says nothing."""
    if key not in schema or "type" not in schema:
        return True
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    values = schema[key] if key == "enum" else [schema[key]]
    return jsonschema_rs.is_valid({"items": {"type": sorted({*types, "null"})}}, values)


class Resolver:
    """Copies schemas in the words of JSON Schema 2020-12.

    With a `document`, references into it become references into `definitions`, which has what they
    name: the nearest first, and for what is too much a schema that accepts any value. `lost` has
    what was not copied as it stands, as the columns of the report.
    """

    def __init__(
        self, document: Json | None = None, *, old: bool = False, root: Json | None = None
    ) -> None:
        self._root = root or {}  # what references of a schema without a document lead into
        self._document, self._old = document, old  # an old one ignores what is beside a reference
        self._parts = self._nodes = self._bytes = 0
        # By reference, and what is hidden there: the name here, and the schema.
        self._names: dict[tuple[str, frozenset[str]], tuple[str, Any]] = {}
        self._choices: list[Json] = []  # what was copied and has `oneOf`
        self.lost: list[tuple[str, Fate, str, str]] = []

    def schema(self, value: object, depth: int = 0, hidden: frozenset[str] = frozenset()) -> Any:
        """Return a schema, an object or a boolean; raises TooLarge.

        `hidden` are members that a part beside it leaves to the service: none is required. With
        OPENED among them, the part is not closed.
        """
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            self._lose("schema", value, "it is not a schema")
            return {}
        self._count(0, parts=1)
        if self._document is None:  # SDKs in Python write null for what they do not say
            value = {_spelt(x): y for x, y in value.items() if y is not None or x in _ANY_VALUE}
            if kind := _PYTHON.get(str(value.get("type")).lower()):
                value["type"] = kind
        else:
            hidden |= read_only(self._document, value, old=self._old)
            if isinstance(reference := value.get("$ref"), str):
                return self._reference(reference, value, depth, hidden)
            if depth > MAX_INLINE_DEPTH:
                return {"$ref": self._named(f"{id(value)}/part", value, hidden)}
        given, value = value, _modern(value, nullable=self._document is None or self._old)
        if value.get("enum") is not given.get("enum"):
            self._lose("enum", given["enum"], "it is nullable: null is one of them", "changed")
        made = self._words(value, depth, hidden)
        self._count(0, parts=int(isinstance(made.get("type"), list)))
        for key in [x for x, item in made.items() if x in RULES and not RULES[x][2](item)]:
            self._lose(key, made.pop(key), f"it is not {RULES[key][1]}")
        for key in [x for x in ("enum", *_ANY_VALUE) if not _is_typed(made, x)]:
            self._lose(key, made.pop(key), "not of its type (in YAML, a text like 1.0 has quotes)")
        if "required" in made:
            made["required"] = [x for x in made["required"] if x not in hidden]
        self._open(value, made)
        self._choices += [made] if "oneOf" in made else []
        if told := self.discriminator(value):
            made["description"] = f"{made.get('description', '')} {told}".strip()
        return made

    def _words(self, value: Json, depth: int, hidden: frozenset[str]) -> Json:
        """Return the words of a schema that a package may hold, each with its copied value."""
        made: Json = {}
        # Without members of its own, what is closed is so for those of its parts.
        is_open = OPENED in hidden or not ("properties" in value or _PARTS.isdisjoint(value))
        for key, item in value.items():
            if _SILENT.fullmatch(key):
                continue
            key = "$defs" if key == "definitions" else key
            try:
                if key == "additionalProperties" and item is False and is_open:
                    raise Unfit("members of the other parts are sent, too")
                part = self._item(key, item, depth, hidden)
            except Unfit as fault:
                self._lose(key, item, str(fault))
                continue
            known = made.get(key) if key == "$defs" else None
            if isinstance(part, dict) and isinstance(known, dict):
                if other := [x for x, y in part.items() if known.get(x, y) != y]:
                    self._lose(key, ", ".join(other), "definitions has others of these names")
                part |= known
            made[key] = part
        return made

    def definitions(self) -> Json:
        """Return what the references of all copied schemas lead to, by its name in `$defs`."""
        made: Json = {}
        while len(made) < len(self._names):
            known = len(self._names)
            (_, hidden), (name, value) = list(self._names.items())[len(made)]
            counts = self._parts, self._nodes, self._bytes
            self._parts -= 1  # counted with its name
            try:
                made[name] = self.schema(value, hidden=hidden)
            except TooLarge as fault:
                while len(self._names) > known:
                    self._names.popitem()
                self._parts, self._nodes, self._bytes = counts
                made[name] = {}
                why = "any value is accepted there"
                self.lost.append((f"schema {name}", "left out", str(fault), why))
        left = {subject for subject, fate, *_ in self.lost if fate == "left out"}
        for schema in self._choices if left - {f"schema word {x}" for x in _APART} else ():
            schema.setdefault("anyOf", schema.pop("oneOf"))
            why = "as something was left out, a value may fit several of its parts: it is anyOf"
            self._lose("oneOf", "", why, "changed")
        return made

    def discriminator(self, value: Json) -> str:
        """Return what the discriminator of a choice says, as a sentence (OpenAPI)."""
        given = discriminator_of(value)
        if not isinstance(name := given.get("propertyName"), str):
            return ""
        choices = [x for word in ("oneOf", "anyOf") for x in objects_in(value.get(word))]
        named = [str(x["$ref"]) for x in choices if "$ref" in x and not self._values(x, name)]
        schemas = ", ".join(x.rpartition("/")[2] for x in named)
        told = f"{name} is the name of the schema that is meant: {schemas}." if schemas else ""
        if mapping := object_of(given.get("mapping")):
            pairs = ", ".join(f"{x} for {str(y).rpartition('/')[2]}" for x, y in mapping.items())
            told = f"{name} tells which schema is meant: {pairs}."
        if not choices:
            self._lose("discriminator", name, "the schemas that it leads to are not described")
        told = cut(clean(told), MAX_DESCRIPTION_BYTES)
        self._count(len(told))
        return told

    def _open(self, value: Json, made: Json) -> None:
        """Write `oneOf` as `anyOf` where only a discriminator, or a format, tells choices apart."""
        choices = objects_in(value["oneOf"]) if "oneOf" in made else []
        parts = [united(self._document, choice, old=self._old) for choice in choices]
        given = [discriminator_of(x) for x in chain([value], *parts) if "discriminator" in x]
        names = {str(x.get("propertyName")) for x in given}
        told = [[self._values(choice, name) for choice in choices] for name in names]
        unclear = [x for x in told if not all(x) or sum(map(len, x)) > len(set().union(*x))]
        if (unclear or overlapping(parts)) and "anyOf" not in made:
            made["anyOf"] = made.pop("oneOf")
            what = "its discriminator chooses, where" if unclear else "by type and format alone"
            why = f"{what} a value may fit several: it is anyOf"
            self._lose("oneOf", ", ".join(sorted(names)), why, "changed")

    def _values(self, choice: Json, name: str) -> set[str]:
        """Return the values that a schema has for a member; empty if it has any."""
        root = self._document or self._root
        parts = united(root, choice, old=self._old)
        own = [object_of(x.get("properties")).get(name) for x in parts]
        members = [part for x in own for part in united(root, x, old=self._old)]
        values = [x.get("enum", [x["const"]] if "const" in x else None) for x in members]
        known = [set(map(str, x)) for x in values if isinstance(x, list)]
        return set.intersection(*known) if known else set()

    def _reference(self, reference: str, value: Json, depth: int, hidden: frozenset[str]) -> Json:
        beside = {key: item for key, item in value.items() if key != "$ref"}
        for key in [x for x in beside if x not in _BESIDE] if self._old else ():
            item = beside.pop(key)
            if not _SILENT.fullmatch(key):
                self._lose(key, item, "this version ignores it beside a reference")
        made: Json = self.schema(beside, depth, hidden) if beside else {}
        schema = found_at(self._document, reference)
        if isinstance(schema, dict | bool):
            made["$ref"] = self._named(reference, schema, hidden)
        else:
            self._lose("$ref", reference, "it leads to no schema of the document")
        return made

    def _named(self, reference: str, value: object, hidden: frozenset[str]) -> str:
        parts = united(self._document, value, old=self._old)
        needed = [name for x in parts for name in list_of(x.get("required"))]
        needed += [OPENED for x in parts if x.get("additionalProperties") is False]
        key = reference, frozenset(name for name in hidden if name in needed)
        if key not in self._names:
            taken = [name for name, _ in self._names.values()]
            name = tool_name_of(reference.rpartition("/")[2], taken)
            self._names[key] = name, value
            self._count(2 * len(name), parts=1)  # of the schema that accepts any value, at least
        return f"#/$defs/{self._names[key][0]}"

    def _item(self, key: str, item: object, depth: int, hidden: frozenset[str]) -> Any:
        """Return the value of a word in the form that a package may hold; raises Unfit."""
        shape = RULES[key][0] if key in RULES else None
        if key.startswith("$recursive") or (shape is None and key not in _ANY_VALUE):
            raise Unfit("type alone allows null" if key == "nullable" else "no word of a schema")
        self._count(len(key), parts=int(isinstance(item, dict | list)))
        hidden = hidden if key in _SAME_PLACE else frozenset()
        match shape, item:
            case Shape.SCHEMA, dict() | bool():
                return self.schema(item, depth + 1, hidden)
            case Shape.SCHEMAS, list():
                return [self.schema(x, depth + 2, hidden) for x in item]
            case Shape.SCHEMA_MAP, dict():
                return {x: self.schema(y, depth + 2) for x, y in item.items()}
            case Shape.COUNT, str() if re.fullmatch("[0-9]{1,15}", item):
                return self._value(int(item))  # Gemini's JSON has whole numbers as text
        if key in ("description", "title"):
            if lost := unseen(item):
                self._lose(key, lost, UNSEEN)
            kept = cut(text := clean(item), MAX_DESCRIPTION_BYTES)
            if kept != text:
                self._lose(key, text[:40] + "…", f"cut to {MAX_DESCRIPTION_BYTES} bytes", "changed")
            return self._value(kept)
        if key == "examples" and next(secret_like(item), None):
            raise Unfit("it looks like a secret, and a package is public")
        if key == "pattern" and (why := pattern_fault(item)):
            raise Unfit(why)
        if key == "$ref":
            item = renamed(self._root, str(item))
        return self._value(item)

    def _value(self, item: object, depth: int = 0) -> Any:
        """Return any JSON that a package may hold."""
        if depth > MAX_VALUE_DEPTH:
            raise Unfit(f"it nests deeper than {MAX_VALUE_DEPTH} levels")
        self._count(8, parts=int(depth > 0 and isinstance(item, dict | list)))
        if isinstance(item, dict):
            return {self._value(key): self._value(x, depth + 1) for key, x in item.items()}
        if isinstance(item, list):
            return [self._value(x, depth + 1) for x in item]
        if isinstance(item, bool | None):
            return item
        if isinstance(item, int | float):
            if not -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER:
                raise Unfit("the number is not the same in every JSON reader")
            return item
        text = str(item)
        self._count(len(text))
        if next(iter(forbidden(text)), None) is not None:
            raise Unfit("it has characters that a package may not hold")
        return text

    def _count(self, size: int, *, parts: int = 0) -> None:
        self._nodes += 2
        self._bytes += size
        self._parts += parts
        if self._parts > MAX_PARTS:
            raise TooLarge(f"more than {MAX_PARTS} objects and lists")
        if self._nodes > MAX_SCHEMA_NODES or self._bytes > MAX_TOOL_SCHEMA_BYTES:
            raise TooLarge(f"more than {MAX_SCHEMA_NODES} values or {MAX_TOOL_SCHEMA_BYTES} bytes")

    def _lose(self, key: str, value: object, why: str, fate: Fate = "left out") -> None:
        self.lost.append((f"schema word {key}", fate, written(value)[:80], why))


def _spelt(word: str) -> str:
    """Return a word of JSON Schema that an SDK in Python writes as `min_items` or `type_`."""
    keyword = re.sub("_([a-z]?)", lambda match: match[1].upper(), word)
    return keyword if keyword in RULES else word


def _modern(schema: Json, *, nullable: bool) -> Json:
    """Return a schema of draft-07, or of Gemini with its `OBJECT`, in the words of 2020-12.

    `nullable`: of a dialect that has this word of OpenAPI 3.0.
    """
    made = dict(schema)
    if isinstance(type_ := schema.get("type"), str):
        made["type"] = type_.lower()
        if nullable and schema.get("nullable", schema.get("x-nullable")) is True:  # Swagger 2.0
            made |= {"type": [made["type"], "null"], "nullable": False}  # it is said
            if isinstance(values := made.get("enum"), list) and None not in values:
                made["enum"] = [*values, None]
    if made.get("nullable") is False:
        del made["nullable"]
    if "example" in made and "examples" not in made:
        made["examples"] = [made.pop("example")]
    if isinstance(items := schema.get("items"), list):
        made |= {"prefixItems": items, "items": made.pop("additionalItems", {})}
    if isinstance(needs := schema.get("dependencies"), dict):
        del made["dependencies"]
        for key, item in needs.items():
            word = "dependentRequired" if isinstance(item, list) else "dependentSchemas"
            made[word] = {key: item} | object_of(made.get(word))
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(made.get(word), bool):  # of draft 4
            exclusive = made.pop(word)
            if exclusive and bound in made:
                made[word] = made.pop(bound)
    return made
