"""Parts of the published schema: their text in an editor, their rules, and the meta-schema's."""

from __future__ import annotations

import re
from typing import Final

from capdex.ipld.cid import MAX_CID_CHARS
from capdex.json import Json
from capdex.json_schema.keywords import ANCHOR, KEYWORDS, TYPES, Shape
from capdex.json_schema.schema import DIALECT
from capdex.limits import MAX_RESOURCE_BYTES
from capdex.manifest import resources
from capdex.manifest.bindings import http_auth, http_header, http_request
from capdex.manifest.metadata import MAX_NAMES, MAX_WORD_CHARS
from capdex.manifest.urls import MAX_URL_CHARS

FILLED: Final = r"\S"
ONE_LINE: Final = r"^\n*[^\n]*\n*$"
ONE_FILLED_LINE: Final = r"^\n*[^\n]*\S[^\n]*\n*$"
HEADER: Final = f"^(?:{http_header.HEADER_NAME.pattern})$"


def whole(pattern: re.Pattern[str]) -> str:
    """A pattern that a text has to match from end to end."""
    return f"^(?:{pattern.pattern})$"


def needed(
    about: str, *examples: str, most: int = 0, pattern: str = FILLED, enum: tuple[str, ...] = ()
) -> Json:
    """A text that has to be there and is not blank."""
    schema: Json = {"description": about, "type": "string", "enum": list(enum)}
    schema |= {"pattern": "" if enum else pattern, "maxLength": most, "examples": list(examples)}
    return {key: value for key, value in schema.items() if value}


def text(
    about: str, *examples: str, most: int = 0, pattern: str = "", one_line: bool = False
) -> Json:
    """A text that may be left out; null and white space count as that, whatever their length."""
    schema: Json = {"description": about, "type": ["string", "null"], "examples": list(examples)}
    bounds = {"maxLength": most, "pattern": pattern or (ONE_LINE if one_line else "")}
    bounds = {key: value for key, value in bounds.items() if value}
    schema |= {"if": {"pattern": FILLED}, "then": bounds} if bounds else {}
    return {key: value for key, value in schema.items() if value}


def maybe(about: str, kind: str) -> Json:
    """A value of another type that may be left out."""
    return {"description": about, "type": [kind, "null"]}


def link(about: str, example: str) -> Json:
    """A web address that may be left out."""
    return text(about, example, most=MAX_URL_CHARS, pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://\S+$")


def listed(about: str, items: Json, most: int) -> Json:
    """A list that may be left out."""
    return {"description": about, "type": ["array", "null"], "items": items, "maxItems": most}


def words(about: str, *examples: str, most: int = MAX_NAMES) -> Json:
    """A list of texts, each on one line."""
    item = {"type": "string", "pattern": ONE_FILLED_LINE, "maxLength": MAX_WORD_CHARS}
    return listed(about, item | ({"examples": list(examples)} if examples else {}), most)


def mapping(title: str, properties: Json, required: tuple[str, ...] = (), **more: object) -> Json:
    """A mapping; one that requires nothing may be left out itself."""
    schema: Json = {"title": title, "type": "object" if required else ["object", "null"]}
    schema |= {"required": list(required)} if required else {}
    return schema | {"properties": properties, **more}


def when(type_: str, then: Json) -> Json:
    """Return a rule for mappings of a type."""
    return {"if": {"properties": {"type": {"const": type_}}, "required": ["type"]}, "then": then}


def packed_file() -> Json:
    """Return the rule for one file of `resources`."""
    fields = {
        "path": needed(
            "Where it is written.", "scripts/fill_form.py", most=resources.MAX_PATH_BYTES
        ),
        "cid": needed("Its CID; capdex init --from-skill writes it.", most=MAX_CID_CHARS),
        "sha256": needed("Its sha256.", pattern=whole(resources.SHA256)),
        "size": {
            "description": "Its size in bytes.",
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_RESOURCE_BYTES,
        },
        "media_type": needed(
            "Its media type.",
            "text/markdown",
            most=resources.MAX_MEDIA_TYPE_CHARS,
            pattern=whole(resources.MEDIA_TYPE),
        ),
        "executable": maybe("Whether it may be executed.", "boolean"),
    }
    return mapping("File", fields, resources.KNOWN[:-1])


def sent(kind: str) -> Json:
    """Return the optional fields of an HTTP binding of a type."""
    wide = kind == "http"
    place = {
        "in": needed("Where the argument goes.", enum=http_request.PLACES),
        "name": text(
            "Its name there, unless that is the parameter's.", most=http_request.MAX_NAME_CHARS
        ),
    }
    if wide:
        styles = "|".join(dict.fromkeys(sum(http_request.STYLES.values(), ())))
        place |= {
            "style": text(
                "How a list or an object is written (OpenAPI 3.1).", pattern=f"^(?:{styles})$"
            ),
            "explode": maybe("Each item by itself.", "boolean"),
            "content": text("The value as JSON text.", pattern=f"^{http_request.JSON}$"),
        }
    types = http_auth.HTTP_AUTH_TYPES if wide else http_auth.AUTH_TYPES
    fields = {
        "type": needed("How the secret is sent.", enum=types),
        "secret": needed(
            "The name of a secret; its value never stands in a package.",
            "WEATHER_API_KEY",
            most=http_auth.MAX_SECRET_CHARS,
            pattern=whole(http_auth.SECRET_NAME),
        ),
        "name": needed("Its name there, such as that of the header.", "X-API-Key")
        | ({} if wide else {"pattern": HEADER}),
    }
    if wide:
        fields["optional"] = maybe("Sent only if it is bound.", "boolean")
    named = [when(x, {"required": ["name"]}) for x in http_auth.NAMED if x in types]
    auth = mapping("Auth", fields, ("type", "secret"), allOf=named, additionalProperties=False)
    body = {
        "content": text(
            "The media type: JSON or a form.",
            most=http_request.MAX_CONTENT_CHARS,
            pattern=whole(http_request.CONTENT),
        ),
        "parameter": text(
            "The parameter that is the whole body.", most=http_request.MAX_NAME_CHARS
        ),
    }
    return {
        "parameters": maybe(
            "The places of arguments; others become the query, or the body.", "object"
        )
        | {
            "maxProperties": http_request.MAX_MAPPED,
            "additionalProperties": mapping("Place", place, ("in",)),
        },
        "headers": maybe("Fixed headers, by name. None of them holds credentials.", "object")
        | {
            "maxProperties": http_request.MAX_HEADERS,
            "propertyNames": {"pattern": HEADER},
            "additionalProperties": {
                "type": "string",
                "maxLength": http_request.MAX_HEADER_CHARS,
                "pattern": whole(http_header.HEADER_VALUE),
            },
        },
        "auth": (
            {
                "anyOf": [
                    auth,
                    {"type": "array", "maxItems": http_auth.MAX_AUTHS, "items": auth},
                    {"type": "null"},
                ]
            }
            if wide
            else auth | {"type": ["object", "null"]}
        )
        | {"description": "A secret by name, which the user binds to the host."},
        **({"body": mapping("Body", body)} if wide else {}),
    }


def subschema() -> Json:
    """Return the rules of a schema in a package; only the top of section `schema` has an `$id`."""
    return {"type": ["object", "boolean"], "$ref": "#/$defs/keywords", "properties": {"$id": False}}


def keywords() -> Json:
    """Return the meta-schema's rules (`capdex.json_schema.keywords`) for all keywords but `$id`."""
    held = {key: _held(shape) for key, shape in KEYWORDS.items() if shape is not Shape.ID}
    held["$schema"] = {"enum": [DIALECT, f"{DIALECT}#"]}
    return {"title": "JSON Schema 2020-12, nothing fetched", "properties": held}


def _held(shape: Shape) -> Json:
    texts = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    schema: Json = {"$ref": "#/$defs/schema"}
    types = {"enum": list(TYPES)}
    some_types = {"type": "array", "items": types, "minItems": 1, "uniqueItems": True}
    shapes: dict[Shape, Json] = {
        Shape.TEXT: {"type": "string"},
        Shape.BOOLEAN: {"type": "boolean"},
        Shape.NUMBER: {"type": "number"},
        Shape.POSITIVE: {"type": "number", "exclusiveMinimum": 0},
        Shape.COUNT: {"type": "integer", "minimum": 0},
        Shape.LIST: {"type": "array"},
        Shape.TEXTS: texts,
        Shape.TEXTS_MAP: {"type": "object", "additionalProperties": texts},
        Shape.TYPE: {"anyOf": [types, some_types]},
        Shape.SCHEMA: schema,
        Shape.SCHEMAS: {"type": "array", "items": schema, "minItems": 1},
        Shape.SCHEMA_MAP: {"type": "object", "additionalProperties": schema},
        Shape.DEPENDENCIES: {"type": "object", "additionalProperties": {"anyOf": [schema, texts]}},
        Shape.REFERENCE: {"type": "string", "pattern": "^#"},
        Shape.ANCHOR: {"type": "string", "pattern": f"^(?:{ANCHOR.pattern})$"},
        Shape.VOCABULARY: {"type": "object", "additionalProperties": {"type": "boolean"}},
    }
    return shapes[shape]
