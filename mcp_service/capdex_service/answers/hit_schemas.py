"""JSON Schemas of pages of hits: results of a search, and routes of a message."""

from __future__ import annotations

from capdex.json import Json
from capdex_service.answers.schemas import (
    AS_OF,
    INTEGER,
    LIKE,
    MAYBE_STRING,
    RELEASE,
    STRING,
    STRINGS,
    array_of,
    schema_of,
)

_WHY: Json = schema_of(
    {
        "tool": {
            "type": ["string", "null"],
            "description": "The tool with most words of the query.",
        },
        "snippet": {
            "type": ["object", "null"],
            "properties": {
                "field": STRING,
                "text": STRING,
                "highlights": array_of(array_of(INTEGER) | {"minItems": 2, "maxItems": 2})
                | {"description": "Beginning and end of each word that was found, in characters."},
            },
            "required": ["field", "text", "highlights"],
        },
        "similarity": {
            "type": ["number", "null"],
            "description": "Of its meaning to the query's; null if it is not a part of the score.",
        },
    }
)

_TRIGGER: Json = schema_of(
    {
        "type": {"enum": ["keyword", "regex"]},
        "value": STRING,
        "broad": {"type": "boolean", "description": "It hits messages about other matters, too."},
        "span": {
            "type": ["array", "null"],
            "items": INTEGER,
            "description": "The first place in the message: begin and end, in characters.",
        },
    }
)

_SCORED: Json = {"score": {"type": "number"}, "matched": STRINGS}

ROUTES_SCHEMA: Json = schema_of(
    {
        "list_of_results": array_of(
            schema_of(RELEASE | _SCORED | {"triggers": array_of(_TRIGGER)})
        ),
        "total": {"type": "integer", "description": "Packages with a trigger that it hits."},
        "cut": {"type": "boolean", "description": "Some triggers were not tried."},
        "mode": {"enum": ["lexical", "semantic"]},
        "as_of": AS_OF,
    }
)

RESULTS_SCHEMA: Json = schema_of(
    {
        "list_of_results": array_of(
            schema_of(RELEASE | _SCORED | LIKE | {"why": _WHY}, *LIKE, "why")
        ),
        "total": INTEGER,
        "mode": {"enum": ["lexical", "semantic"]},
        "next_cursor": MAYBE_STRING,
        "facets": {
            "type": "object",
            "description": "The commonest values of each facet asked for.",
            "additionalProperties": array_of(schema_of({"value": STRING, "count": INTEGER})),
        },
        "as_of": AS_OF,
    },
    "facets",
)
