"""How the values of a schema are written in a URL, a header or a form."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from capdex.json import Json, list_of, object_of
from capdex.json_schema.keywords import ANNOTATIONS
from capdex.manifest.bindings.http_request import STYLES
from capdex_publisher.authoring.imports.openapi.document import ApiDocument, Unsendable
from capdex_publisher.authoring.imports.references import MAX_REFERENCES, beside, united

SCALAR: Final = frozenset(["scalar"])
ANY: Final = frozenset(["scalar", "array", "object"])
MAX_PARTS: Final = 8  # of schemas in one another that are looked at
_COMPOSED: Final = ("allOf", "anyOf", "oneOf")
_TYPES: Final[dict[type, str]] = {dict: "object", list: "array"}
_HINTS: Final = {"object": "properties", "array": "items", "scalar": "format"}
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
    if id(target) not in document.kinds:
        known = _own_kinds(target)
        for word in ("anyOf", "oneOf"):
            if parts := list_of(target.get(word)):
                known &= frozenset().union(*(kinds(document, x, depth + 1) for x in parts))
        for part in list_of(target.get("allOf")):
            known &= kinds(document, part, depth + 1)
        document.kinds[id(target)] = target, known or SCALAR
    return document.kinds[id(target)][1]


def _own_kinds(schema: Json) -> frozenset[str]:
    """Return what the values of a schema may be by its own words."""
    if (given := schema.get("type")) is not None:
        names = given if isinstance(given, list) else [given]
        return frozenset(x if x in ("object", "array") else "scalar" for x in names if x != "null")
    enum = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(enum, list):
        return frozenset(_TYPES.get(type(x), "scalar") for x in enum)
    return frozenset(kind for kind, word in _HINTS.items() if word in schema) or ANY


def nests(document: ApiDocument, schema: object) -> bool:
    """Return True if a list or an object may hold another one, for which no style has a form."""
    below: list[Any] = []
    for part in united(document.value, schema, old=document.is_old, words=_COMPOSED):
        below += object_of(part.get("properties")).values()
        below += [part.get("items"), part.get("additionalProperties")]
    return any(kinds(document, x) not in (SCALAR, ANY) for x in below if x is not None)


def _is_free(document: ApiDocument, schema: object) -> bool:
    """Return True if an object holds what its caller likes."""
    parts = united(document.value, schema, old=document.is_old, words=_COMPOSED)
    more = [x.get("additionalProperties", "properties" not in x) for x in parts]
    return any(x is not False and kinds(document, x) == ANY for x in more)


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
    is_free = style == "deepObject" and _is_free(document, schema)
    text = "a list or object in another one is sent as JSON text"
    said = text if is_free or nests(document, schema) else ""
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
    if not _is_plain(target) or id(target) in seen or len(seen) > MAX_REFERENCES:
        return None
    seen.add(id(target))
    if not document.is_old and beside(document.value, schema).keys() - ANNOTATIONS:
        return None
    schemas: Json = {}
    required = [str(x) for x in list_of(target.get("required"))]
    extra = target.get("additionalProperties")
    more = None if extra is None else extra is not False
    parts = [properties(document, x, seen) for x in list_of(target.get("allOf"))]
    own = Properties(target.get("properties", {}), ())
    for members in (*parts, own):
        if members is None or schemas.keys() & members.schemas.keys():
            return None
        schemas |= members.schemas
        required += members.required
    if parts:  # one part does not close the others
        more = True if more or any(x and x.more for x in parts) else None
    if not is_part:
        schemas |= {name: {} for name in required if name not in schemas}
    if not schemas and not is_part:
        return None
    return Properties(schemas, tuple(dict.fromkeys(required)), more)


def _is_plain(schema: object) -> bool:
    """Return True for a schema whose words say no more than the members of an object."""
    return (
        isinstance(schema, dict)
        and schema.get("nullable") is not True
        and schema.get("type", "object") == "object"
        and isinstance(schema.get("properties", {}), dict)
        and schema.get("additionalProperties") in (None, True, False, {})
        and all(key in _PLAIN or key.startswith("x-") for key in schema)
    )
