"""The meta-schema's rules (`capdex.json_schema.keywords`) written as JSON Schema, for editors."""

from __future__ import annotations

from typing import Any

from capdex.json_schema.keywords import ANCHOR, KEYWORDS, TYPES, Shape
from capdex.json_schema.schema import DIALECT

Json = dict[str, Any]


def subschema() -> Json:
    """A schema inside a package; its one `$id` stands at the top of the section `schema`."""
    return {
        "type": ["object", "boolean"],
        "$ref": "#/$defs/keywords",
        "properties": {"$id": False},
    }


def keywords() -> Json:
    """What the keywords of an object hold, `$id` apart."""
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
