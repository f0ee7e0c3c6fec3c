"""How the values of a schema are written in a URL, a header or a form."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from capdex.json import Json
from capdex.json_schema.keywords import ANNOTATIONS
from capdex.manifest.bindings.http_request import STYLES
from capdex_publisher.authoring.imports.openapi.document import ApiDocument, Unsendable
from capdex_publisher.authoring.imports.references import MAX_REFERENCES, beside, united

SCALAR: Final = frozenset(["scalar"])
ANY: Final = frozenset(["scalar", "array", "object"])
MAX_PARTS: Final = 8  # of schemas in one another that are looked at
_COMPOSED: Final = ("allOf", "anyOf", "oneOf")
_TYPES: Final[dict[type, str]] = {dict: "object", list: "array"}
# Words that leave a schema an object of its `properties` and nothing else.
_PLAIN: Final = frozenset(
    [
        *("type", "properties", "required", "allOf", "additionalProperties", "title", "xml"),
        *("description", "example", "examples", "deprecated", "readOnly", "externalDocs"),
        *("nullable", "discriminator", "$ref", "default", "writeOnly"),
    ]
)


def kinds(document: ApiDocument, schema: object, depth: int = 0) -> frozenset[str]:
    """Return what the values of a schema may be: `scalar`, `array`, `object`."""
    target = document.target(schema)
    if not isinstance(target, dict) or depth > MAX_PARTS:
        return ANY
    if id(target) in document.kinds:
        return document.kinds[id(target)][1]
    given = target.get("type")
    names = given if isinstance(given, list) else [given]
    if given is not None:
        known = frozenset(x if x in ("object", "array") else "scalar" for x in names if x != "null")
    elif isinstance(enum := [target["const"]] if "const" in target else target.get("enum"), list):
        known = frozenset(_TYPES.get(type(x), "scalar") for x in enum)
    else:
        hints = (("object", "properties"), ("array", "items"), ("scalar", "format"))
        known = frozenset(kind for kind, word in hints if word in target) or ANY
    for word in ("anyOf", "oneOf"):
        if isinstance(parts := target.get(word), list) and parts:
            known &= frozenset().union(*(kinds(document, x, depth + 1) for x in parts))
    for part in parts if isinstance(parts := target.get("allOf"), list) else ():
        known &= kinds(document, part, depth + 1)
    document.kinds[id(target)] = target, known or SCALAR
    return known or SCALAR


def nests(document: ApiDocument, schema: object) -> bool:
    """Return True if a list or an object may hold another one, for which no style has a form."""
    below: list[Any] = []
    for part in united(document.value, schema, old=document.is_old, words=_COMPOSED):
        own = part.get("properties")
        below += own.values() if isinstance(own, dict) else ()
        below += [part.get("items"), part.get("additionalProperties")]
    return any(kinds(document, x) not in (SCALAR, ANY) for x in below if x is not None)


def rule(document: ApiDocument, place: str, item: Json, schema: object) -> tuple[Json, str]:
    """Return the style of a parameter, or of a field of a form, where it is not the usual one.

    With it comes what is sent in another way than the document says. Raises Unsendable for a style
    that no value of the schema has a form in.
    """
    usual = "simple" if place in ("path", "header") else "form"
    style = str(item.get("style", usual))
    given = item.get("explode")
    explode = given if isinstance(given, bool) else style == "form"
    shapes = kinds(document, schema)
    known = style in STYLES[place] and style != "deepObject"
    if shapes == SCALAR and style not in ("label", "matrix"):
        return {}, "" if known else f"one value has no form in this style: it is sent as {usual}"
    if style not in STYLES[place]:
        raise Unsendable("style", f"a {place} parameter has no such style", style)
    said = "a list or object in another one is sent as JSON text" if nests(document, schema) else ""
    if style == "deepObject":
        if "object" not in shapes:
            raise Unsendable("style", "it is for objects, and the value is a list", style)
        return {"style": style}, said
    if style in ("spaceDelimited", "pipeDelimited") and explode:
        style, said = "form", f"each item by itself: {style} does not go with explode"
    if style == "form" and explode and "object" not in shapes:
        return {}, said
    return {"style": style, "explode": explode}, said


class Properties(NamedTuple):
    """The members of an object, by name, and those that it must have."""

    schemas: Json
    required: tuple[str, ...]
    more: bool | None = None  # whether others are welcome, where the schema says it


def properties(
    document: ApiDocument, schema: object, seen: set[int] | None = None
) -> Properties | None:
    """Return the members of a schema that says nothing else; None if it does.

    `seen` are the ids of the schemas that it is a part of, and of their other parts.
    """
    target, is_part = document.target(schema), seen is not None
    seen = set() if seen is None else seen
    if not isinstance(target, dict) or target.get("nullable") is True:
        return None
    if id(target) in seen or len(seen) > MAX_REFERENCES:
        return None
    seen.add(id(target))
    if not document.is_old and beside(document.value, schema).keys() - ANNOTATIONS:
        return None
    if any(key not in _PLAIN and not key.startswith("x-") for key in map(str, target)):
        return None
    extra, own = target.get("additionalProperties"), target.get("properties", {})
    if target.get("type", "object") != "object" or not isinstance(own, dict):
        return None
    if extra not in (None, True, False, {}):
        return None
    schemas: Json = {}
    needed = target.get("required")
    required = [str(x) for x in needed] if isinstance(needed, list) else []
    more = None if extra is None else extra is not False
    for part in parts if isinstance(parts := target.get("allOf"), list) else ():
        members = properties(document, part, seen)
        if members is None or (schemas.keys() & members.schemas.keys()):
            return None
        schemas |= members.schemas
        required += members.required
        more = True if more or members.more else None  # one part does not close the others
    if schemas.keys() & own.keys():
        return None
    schemas |= own
    schemas |= {name: {} for name in required if name not in schemas and not is_part}
    if not schemas and not is_part:
        return None
    return Properties(schemas, tuple(dict.fromkeys(required)), more)
