"""JSON Schemas of a node's answers."""

from __future__ import annotations

from mcp_service.answers.release import Json


def _object(properties: Json, *optional: str) -> Json:
    required = [key for key in properties if key not in optional]
    return {"type": "object", "properties": properties, "required": required}


_STRING: Json = {"type": "string"}
_BOOLEAN: Json = {"type": "boolean"}
_INTEGER: Json = {"type": "integer"}
_MAYBE_STRING: Json = {"type": ["string", "null"]}
_STRINGS: Json = {"type": "array", "items": _STRING}
_MAYBE_INTEGER: Json = {"type": ["integer", "null"]}

_AS_OF = _object(
    {
        "block_number": _MAYBE_INTEGER,
        "block_hash": _MAYBE_STRING,
        "head_number": _MAYBE_INTEGER,
        "finalized_number": _MAYBE_INTEGER,
        "warning": {
            "type": "string",
            "description": "Why the node may not be up to date; absent while it is.",
        },
    },
    "warning",
)

_LINT: Json = {
    "type": ["object", "null"],
    "description": "Text in the package that may steer a model; null where the package was not "
    "judged.",
    "properties": {
        "score": {"type": "integer", "minimum": 0, "maximum": 100},
        "label": {"type": ["string", "null"], "enum": ["high", "medium", None]},
        "codes": _STRINGS,
    },
    "required": ["score", "label", "codes"],
}

_RELEASE: Json = {
    "acp_metadata": {
        "type": ["object", "null"],
        "description": "The metadata section of the .acp.yaml file, as its author wrote it.",
    },
    "ipfs_cid": {"type": "string", "description": "The CID of the package file."},
    "cap_uri": {"type": "string", "description": "The capability URI with its exact version."},
    "semver": _STRING,
    "sha256": {"type": "string", "description": "sha256 of the file, hex, as on chain."},
    "status": _object(
        {
            "yanked": _BOOLEAN,
            "yank_reason": _MAYBE_STRING,
            "deprecated": _BOOLEAN,
            "deprecation_message": _MAYBE_STRING,
            "name_deprecated": _BOOLEAN,
            "name_message": _MAYBE_STRING,
            "replaced_by": {
                "type": ["string", "null"],
                "description": "The name that its owner says to use instead.",
            },
        }
    ),
    "verification": _object(
        {
            "verdict": _MAYBE_STRING,
            "signer": _MAYBE_STRING,
            "checks": {"type": "array", "items": {"type": "object"}},
            "lint": _LINT,
        }
    ),
    "chain": _object(
        {
            "chain_id": _INTEGER,
            "contract": _STRING,
            "publisher": _STRING,
            "block_number": _INTEGER,
            "block_hash": _STRING,
            "tx_hash": _STRING,
            "log_index": _INTEGER,
            "sequence": _INTEGER,
            "timestamp": _INTEGER,
            "finality": {"type": "string", "enum": ["head", "finalized"]},
        }
    ),
    "first_claimed_by": _object({"schema_uri": _MAYBE_STRING, "memory_scope": _MAYBE_STRING})
    | {"description": "The name that used the same before, where it is another."},
    "warnings": _STRINGS,
}

_PROOF: Json = {
    "type": "object",
    "description": "A capdex.proof/1 document, if one was requested. It is not in the text.",
}

_HISTORY: Json = {
    "type": "array",
    "description": "The releases of the name, highest version first.",
    "items": _object(
        {
            **dict.fromkeys(("semver", "ipfs_cid", "sha256"), _STRING),
            **dict.fromkeys(("yanked", "deprecated", "latest"), _BOOLEAN),
            **dict.fromkeys(("block_number", "timestamp"), _INTEGER),
            "verdict": _MAYBE_STRING,
        }
    ),
}
_PARTS: Json = {
    "package": {"type": "string", "description": "The .acp.yaml file."},
    "tools": {"type": "array", "items": {"type": "object"}},
    "tool_bindings": {"type": "object"},
    "prompt": _MAYBE_STRING,
    "schema": {"type": "object", "description": "The JSON Schema of the package's state."},
    "history": _HISTORY,
    "proof": _PROOF,
}

RESOLUTION_SCHEMA: Json = _object(_RELEASE | {"as_of": _AS_OF} | _PARTS, *_PARTS)

RESULTS_SCHEMA: Json = _object(
    {
        "list_of_results": {
            "type": "array",
            "items": _object(_RELEASE | {"score": {"type": "number"}, "matched": _STRINGS}),
        },
        "total": _INTEGER,
        "next_cursor": _MAYBE_STRING,
        "facets": {
            "type": "object",
            "description": "The commonest values of each facet asked for.",
            "additionalProperties": {
                "type": "array",
                "items": _object({"value": _STRING, "count": _INTEGER}),
            },
        },
        "as_of": _AS_OF,
    },
    "facets",
)

NAME_SCHEMA: Json = _object(
    {
        "name": _STRING,
        "ownership": _object(
            {
                "owner": _MAYBE_STRING,
                "pending_owner": _MAYBE_STRING,
                "maintainers": _STRINGS,
                "renounced": _BOOLEAN,
            }
        ),
        "votes": _object({"up": _STRING, "down": _STRING}),
        "releases": {
            "type": "array",
            "items": _object(
                _RELEASE
                | {
                    "latest": _BOOLEAN,
                    "availability": _MAYBE_STRING,
                    "reason": _MAYBE_STRING,
                    "message": _STRING,
                    "problems": {"type": "array", "items": {"type": "object"}},
                    "denied": {"type": ["object", "null"]},
                }
            ),
        },
        "as_of": _AS_OF,
    }
)

_REFERENCE: Json = _object({"capability_id": _STRING, "version": _STRING})
_MANIFEST: Json = {
    "capability_id": _STRING,
    "version": _STRING,
    "kind": {"type": "string", "enum": ["skill", "tool"]},
    "name": _STRING,
    "description": _STRING,
    "input_schema": {"type": "object"},
    "output_schema": {"type": ["object", "null"]},
    "prompt_template": _MAYBE_STRING,
    "resources": {
        "type": ["array", "null"],
        "items": _object({"uri": _STRING, "name": _STRING, "mimeType": _STRING}),
    },
    "required_permissions": {"type": ["array", "null"], "items": _STRING},
    "tools": {"type": "array", "items": _REFERENCE, "description": "The tools of a skill."},
}
_FILE: Json = _object(
    {"cap_uri": _STRING, "ipfs_cid": _STRING, "sha256": _STRING, "verdict": _MAYBE_STRING}
)

MANIFEST_SCHEMA: Json = _object(_MANIFEST | {"package": _FILE, "as_of": _AS_OF}, "tools")

MANIFESTS_SCHEMA: Json = _object(
    {
        "capabilities": {"type": "array", "items": _object(_MANIFEST, "tools")},
        "next_cursor": _MAYBE_STRING,
        "as_of": _AS_OF,
    }
)

LEVEL_SCHEMA: Json = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("domain", "tool", "version", "command", "summary"), _STRING),
        "domains": _STRINGS,
        "counts": {"type": "object", "additionalProperties": _INTEGER},
        "tools": {
            "type": "array",
            "items": _object({"name": _STRING, "summary": _STRING, "version": _STRING}),
        },
        "intents": {
            "type": "array",
            "items": _object(
                {"patterns": _STRINGS, "confirm": _BOOLEAN, "command": _STRING}, "command"
            ),
        },
        "commands": {
            "type": "array",
            "items": _object({"command": _STRING, "params": _STRINGS, "required": _STRINGS}),
        },
        "params": {"type": "object"},
        "examples": {
            "type": "array",
            "items": _object(
                {"say": _STRING, "command": _STRING, "input": {"type": "object"}},
                *("command", "input"),
            ),
        },
        "next_cursor": _MAYBE_STRING,
        "as_of": _AS_OF,
    },
    "required": ["as_of"],
}

CHANGES_SCHEMA: Json = _object(
    {
        "changes": {
            "type": "array",
            "items": _object(
                {
                    "name": _STRING,
                    "revision": _INTEGER,
                    "deleted": {
                        "type": "boolean",
                        "description": "True if nothing of this name is served any more.",
                    },
                    "cap_uri": _STRING,
                    "semver": _STRING,
                    "ipfs_cid": _STRING,
                    "sha256": _STRING,
                },
                *("cap_uri", "semver", "ipfs_cid", "sha256"),
            ),
        },
        "next_since": _STRING,
        "more": _BOOLEAN,
        "as_of": _AS_OF,
    }
)

_TIME: Json = {"type": "string", "format": "date-time"}
SERVER_SCHEMA: Json = _object(
    {
        "server": _object(
            {
                "$schema": {"type": "string", "format": "uri"},
                "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
                "title": {"type": "string", "minLength": 1, "maxLength": 100},
                "description": {"type": "string", "minLength": 1, "maxLength": 100},
                "version": {"type": "string", "maxLength": 255},
                "websiteUrl": _STRING,
                "repository": _object({"url": _STRING, "source": _STRING}),
                "remotes": {
                    "type": "array",
                    "items": _object({"type": {"const": "streamable-http"}, "url": _STRING}),
                },
            },
            *("websiteUrl", "repository", "remotes"),
        ),
        "_meta": _object(
            {
                "io.modelcontextprotocol.registry/official": _object(
                    {
                        "status": {"enum": ["active", "deprecated", "deleted"]},
                        "statusMessage": {"type": "string", "maxLength": 500},
                        "statusChangedAt": _TIME,
                        "publishedAt": _TIME,
                        "updatedAt": _TIME,
                        "isLatest": _BOOLEAN,
                    },
                    "statusMessage",
                ),
                "did.nuwa.cap/release": _FILE,
            }
        ),
    }
)

SERVERS_SCHEMA: Json = _object(
    {
        "servers": {"type": "array", "items": SERVER_SCHEMA},
        "metadata": _object({"count": _INTEGER, "nextCursor": _STRING}, "nextCursor"),
    }
)

PROBLEM_SCHEMA: Json = _object(
    {
        "type": {"type": "string"},
        "title": _STRING,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "code": {"type": "string", "description": "The code of the error (P16)."},
        "message": _STRING,
        "retryable": _BOOLEAN,
        "details": {"type": ["object", "null"]},
    }
) | {"description": "A problem document (RFC 9457)."}
