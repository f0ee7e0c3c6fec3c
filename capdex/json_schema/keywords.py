"""JSON Schema 2020-12 as tables: its keywords, the shape of each value, and the kinds of values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Final

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*", re.ASCII)


class Shape(Enum):
    """Shape of the value of a keyword."""

    TEXT = auto()
    BOOLEAN = auto()
    NUMBER = auto()
    POSITIVE = auto()
    COUNT = auto()
    LIST = auto()
    TEXTS = auto()
    TEXTS_MAP = auto()
    TYPE = auto()
    SCHEMA = auto()
    SCHEMAS = auto()
    SCHEMA_MAP = auto()
    DEPENDENCIES = auto()
    REFERENCE = auto()
    ANCHOR = auto()
    ID = auto()
    VOCABULARY = auto()


def _table(**shapes: str) -> dict[str, Shape]:
    return {word: Shape[name] for name, words in shapes.items() for word in words.split()}


# Core, applicator, unevaluated, validation, meta-data, format and content vocabularies, and the
# four keywords that the meta-schema keeps from older drafts.
KEYWORDS: Final = _table(
    TEXT="$schema $comment title description format pattern contentEncoding contentMediaType",
    BOOLEAN="uniqueItems deprecated readOnly writeOnly",
    NUMBER="maximum exclusiveMaximum minimum exclusiveMinimum",
    POSITIVE="multipleOf",
    COUNT="maxLength minLength maxItems minItems maxContains minContains maxProperties "
    "minProperties",
    LIST="enum examples",
    TEXTS="required",
    TEXTS_MAP="dependentRequired",
    TYPE="type",
    SCHEMA="not if then else items contains additionalProperties propertyNames unevaluatedItems "
    "unevaluatedProperties contentSchema",
    SCHEMAS="allOf anyOf oneOf prefixItems",
    SCHEMA_MAP="$defs definitions properties patternProperties dependentSchemas",
    DEPENDENCIES="dependencies",
    REFERENCE="$ref $dynamicRef $recursiveRef",
    ANCHOR="$anchor $dynamicAnchor $recursiveAnchor",
    ID="$id",
    VOCABULARY="$vocabulary",
)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _texts(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(item, str) for item in value)
        and len(set(value)) == len(value)
    )


def _type(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return bool(value) and _texts(value) and all(name in TYPES for name in value)


def _dependencies(value: object) -> bool:
    return isinstance(value, dict) and all(
        _texts(item) for item in value.values() if isinstance(item, list)
    )


_RULES: Final[dict[Shape, tuple[str, Callable[[Any], bool]]]] = {
    Shape.TEXT: ("text", lambda v: isinstance(v, str)),
    Shape.BOOLEAN: ("true or false", lambda v: isinstance(v, bool)),
    Shape.NUMBER: ("a number", _number),
    Shape.POSITIVE: ("a number above 0", lambda v: _number(v) and v > 0),
    Shape.COUNT: ("a whole number, 0 or more", lambda v: _number(v) and v >= 0 and v == int(v)),
    Shape.LIST: ("a list", lambda v: isinstance(v, list)),
    Shape.TEXTS: ("a list of different texts", _texts),
    Shape.TEXTS_MAP: (
        "a mapping to lists of different texts",
        lambda v: isinstance(v, dict) and all(_texts(item) for item in v.values()),
    ),
    Shape.TYPE: (f"one or several of {', '.join(TYPES)}", _type),
    Shape.SCHEMA: ("a schema", lambda v: isinstance(v, dict | bool)),
    Shape.SCHEMAS: ("a list of schemas, one or more", lambda v: isinstance(v, list) and bool(v)),
    Shape.SCHEMA_MAP: ("a mapping to schemas", lambda v: isinstance(v, dict)),
    Shape.DEPENDENCIES: ("a mapping to schemas or to lists of different texts", _dependencies),
    Shape.REFERENCE: ("a reference", lambda v: isinstance(v, str)),
    Shape.ANCHOR: (
        "an anchor: a letter or _, then letters, digits and - . _",
        lambda v: isinstance(v, str) and ANCHOR.fullmatch(v) is not None,
    ),
    Shape.ID: (
        "a URI reference without a fragment",
        lambda v: isinstance(v, str) and "#" not in v[:-1],
    ),
    Shape.VOCABULARY: (
        "a mapping to true or false",
        lambda v: isinstance(v, dict) and all(isinstance(item, bool) for item in v.values()),
    ),
}

# By keyword: its shape, what its value must be, and whether a value is; what is inside subschemas
# is judged on its own.
RULES: Final = {keyword: (shape, *_RULES[shape]) for keyword, shape in KEYWORDS.items()}

# Keywords that accept or refuse no value by themselves.
ANNOTATIONS: Final = frozenset(
    (
        *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema"),
        *("$vocabulary", "default", "definitions", "deprecated", "description", "examples"),
        *("readOnly", "title", "writeOnly"),
    )
)
MARKS: Final = ("x-crdt", "x-asm")  # merge annotations: how replicas of state merge (NIP-7)
# `number` is two kinds here, so that types are sets.
KINDS: Final = frozenset(["array", "boolean", "null", "object", "string", "integer", "fraction"])
KEYWORD_KINDS: Final = {  # of the values that a keyword is about; it accepts all others
    word: about
    for about, words in {
        frozenset(["integer", "fraction"]): "minimum maximum exclusiveMinimum exclusiveMaximum "
        "multipleOf",
        frozenset(["string"]): "minLength maxLength pattern format contentEncoding "
        "contentMediaType contentSchema",
        frozenset(["array"]): "minItems maxItems uniqueItems items prefixItems contains "
        "minContains maxContains unevaluatedItems",
        frozenset(["object"]): "minProperties maxProperties required properties propertyNames "
        "patternProperties additionalProperties dependentRequired dependentSchemas "
        "dependencies unevaluatedProperties",
    }.items()
    for word in words.split()
}


def frozen(value: object) -> Any:
    """Return a JSON value as something hashable, so that 1 equals 1.0 and not true."""
    if isinstance(value, dict):
        return dict, frozenset((key, frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return list, tuple(map(frozen, value))
    return isinstance(value, bool), value


def same(a: object, b: object) -> bool:
    """True if two JSON values are equal."""
    return bool(frozen(a) == frozen(b))


def kind(value: object) -> str:
    """Return the kind of a JSON value; 1.0 is an integer."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == math.floor(value) else "fraction"
    return {dict: "object", list: "array", str: "string", type(None): "null"}[type(value)]


def kinds(type_: str | Sequence[str]) -> frozenset[str]:
    """Return the kinds that a `type` keyword accepts."""
    names = [type_] if isinstance(type_, str) else type_
    split = {"number": ("integer", "fraction")}
    return frozenset(kind for name in names for kind in split.get(name, (name,)))


def words_of(schema: object) -> str:
    """Return the names of a schema's properties, and what is said of them and of its parts."""
    words: list[str] = []
    open_ = [schema]
    while open_:
        part = open_.pop()
        if isinstance(part, list):
            open_ += part
        elif isinstance(part, dict):
            words += part["properties"] if isinstance(part.get("properties"), dict) else ()
            words.append(part["description"] if isinstance(part.get("description"), str) else "")
            open_ += part.values()
    return " ".join(map(str, words))
