"""JSON Schemas of a node's answers."""

from __future__ import annotations

from capdex.json import Json


def schema_of(properties: Json, *optional: str) -> Json:
    """Return the schema of an object with these properties."""
    required = [key for key in properties if key not in optional]
    return {"type": "object", "properties": properties, "required": required}


def array_of(items: Json) -> Json:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


STRING: Json = {"type": "string"}
_BOOLEAN: Json = {"type": "boolean"}
INTEGER: Json = {"type": "integer"}
MAYBE_STRING: Json = {"type": ["string", "null"]}
STRINGS: Json = array_of(STRING)
_OBJECTS: Json = array_of({"type": "object"})
_MAYBE_INTEGER: Json = {"type": ["integer", "null"]}

AS_OF = schema_of(
    {
        "block_number": _MAYBE_INTEGER,
        "block_hash": MAYBE_STRING,
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
        "codes": STRINGS,
    },
    "required": ["score", "label", "codes"],
}

RELEASE: Json = {
    "acp_metadata": {
        "type": ["object", "null"],
        "description": "The metadata section of the .acp.yaml file, as its author wrote it.",
    },
    "ipfs_cid": {"type": "string", "description": "The CID of the package file."},
    "cap_uri": {"type": "string", "description": "The capability URI with its exact version."},
    "semver": STRING,
    "sha256": {"type": "string", "description": "sha256 of the file, hex, as on chain."},
    "status": schema_of(
        {
            "yanked": _BOOLEAN,
            "yank_reason": MAYBE_STRING,
            "deprecated": _BOOLEAN,
            "deprecation_message": MAYBE_STRING,
            "name_deprecated": _BOOLEAN,
            "name_message": MAYBE_STRING,
            "replaced_by": {
                "type": ["string", "null"],
                "description": "The name that its owner says to use instead.",
            },
        }
    ),
    "verification": schema_of(
        {
            "verdict": MAYBE_STRING,
            "signer": MAYBE_STRING,
            "checks": _OBJECTS,
            "lint": _LINT,
        }
    ),
    "chain": schema_of(
        {
            "chain_id": INTEGER,
            "contract": STRING,
            "publisher": STRING,
            "block_number": INTEGER,
            "block_hash": STRING,
            "tx_hash": STRING,
            "log_index": INTEGER,
            "sequence": INTEGER,
            "timestamp": INTEGER,
            "finality": {"type": "string", "enum": ["head", "finalized"]},
        }
    ),
    "first_claimed_by": schema_of({"schema_uri": MAYBE_STRING, "memory_scope": MAYBE_STRING})
    | {"description": "The name that used the same before, where it is another."},
    "warnings": STRINGS,
}

_PROOF: Json = {
    "type": "object",
    "description": "A capdex.proof/1 document, if one was requested. It is not in the text.",
}

_HISTORY: Json = {
    "type": "array",
    "description": "The releases of the name, highest version first.",
    "items": schema_of(
        {
            **dict.fromkeys(("semver", "ipfs_cid", "sha256"), STRING),
            **dict.fromkeys(("yanked", "deprecated", "latest"), _BOOLEAN),
            **dict.fromkeys(("block_number", "timestamp"), INTEGER),
            "verdict": MAYBE_STRING,
        }
    ),
}
LIKE: Json = {
    "like": STRING | {"description": "The older name of another owner that its name is like."}
}
_PARTS: Json = LIKE | {
    "package": {"type": "string", "description": "The .acp.yaml file."},
    "tools": _OBJECTS,
    "tool_bindings": {"type": "object"},
    "prompt": MAYBE_STRING,
    "schema": {"type": "object", "description": "The JSON Schema of the package's state."},
    "files": _OBJECTS,
    "history": _HISTORY,
    "proof": _PROOF,
}

RESOLUTION_SCHEMA: Json = schema_of(RELEASE | {"as_of": AS_OF} | _PARTS, *_PARTS)

NAME_SCHEMA: Json = schema_of(
    {
        "name": STRING,
        "ownership": schema_of(
            {
                "owner": MAYBE_STRING,
                "pending_owner": MAYBE_STRING,
                "maintainers": STRINGS,
                "renounced": _BOOLEAN,
            }
        ),
        "votes": schema_of({"up": STRING, "down": STRING}),
        "releases": array_of(
            schema_of(
                RELEASE
                | {
                    "latest": _BOOLEAN,
                    "availability": MAYBE_STRING,
                    "reason": MAYBE_STRING,
                    "message": STRING,
                    "problems": _OBJECTS,
                    "denied": {"type": ["object", "null"]},
                }
            )
        ),
        "as_of": AS_OF,
    }
    | LIKE,
    *LIKE,
)

_REFERENCE: Json = schema_of({"capability_id": STRING, "version": STRING})
_MANIFEST: Json = {
    "capability_id": STRING,
    "version": STRING,
    "kind": {"type": "string", "enum": ["skill", "tool"]},
    "name": STRING,
    "description": STRING,
    "input_schema": {"type": "object"},
    "output_schema": {"type": ["object", "null"]},
    "prompt_template": MAYBE_STRING,
    "resources": {
        "type": ["array", "null"],
        "items": schema_of({"uri": STRING, "name": STRING, "mimeType": STRING}),
    },
    "required_permissions": {"type": ["array", "null"], "items": STRING},
    "tools": array_of(_REFERENCE) | {"description": "The tools of a skill."},
}
_FILE: Json = schema_of(
    {"cap_uri": STRING, "ipfs_cid": STRING, "sha256": STRING, "verdict": MAYBE_STRING}
)

MANIFEST_SCHEMA: Json = schema_of(_MANIFEST | {"package": _FILE, "as_of": AS_OF}, "tools")

MANIFESTS_SCHEMA: Json = schema_of(
    {
        "capabilities": array_of(schema_of(_MANIFEST, "tools")),
        "next_cursor": MAYBE_STRING,
        "as_of": AS_OF,
    }
)

LEVEL_SCHEMA: Json = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("domain", "tool", "version", "command", "summary"), STRING),
        "domains": STRINGS,
        "counts": {"type": "object", "additionalProperties": INTEGER},
        "tools": array_of(schema_of(dict.fromkeys(("name", "summary", "version"), STRING))),
        "intents": array_of(
            schema_of({"patterns": STRINGS, "confirm": _BOOLEAN, "command": STRING}, "command")
        ),
        "commands": array_of(
            schema_of({"command": STRING, "params": STRINGS, "required": STRINGS})
        ),
        "params": {"type": "object"},
        "examples": array_of(
            schema_of(
                {"say": STRING, "command": STRING, "input": {"type": "object"}},
                *("command", "input"),
            )
        ),
        "next_cursor": MAYBE_STRING,
        "as_of": AS_OF,
    },
    "required": ["as_of"],
}

_FILE_OF_A_CHANGE = ("cap_uri", "semver", "ipfs_cid", "sha256")  # absent where it is deleted
CHANGES_SCHEMA: Json = schema_of(
    {
        "changes": array_of(
            schema_of(
                {
                    "name": STRING,
                    "revision": INTEGER,
                    "deleted": {
                        "type": "boolean",
                        "description": "True if this name has no latest release.",
                    },
                    **dict.fromkeys(_FILE_OF_A_CHANGE, STRING),
                },
                *_FILE_OF_A_CHANGE,
            )
        ),
        "next_since": STRING,
        "more": _BOOLEAN,
        "as_of": AS_OF,
    }
)

_TIME: Json = {"type": "string", "format": "date-time"}
SERVER_SCHEMA: Json = schema_of(
    {
        "server": schema_of(
            {
                "$schema": {"type": "string", "format": "uri"},
                "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
                "title": {"type": "string", "minLength": 1, "maxLength": 100},
                "description": {"type": "string", "minLength": 1, "maxLength": 100},
                "version": {"type": "string", "maxLength": 255},
                "websiteUrl": STRING,
                "repository": schema_of({"url": STRING, "source": STRING}),
                "remotes": array_of(
                    schema_of({"type": {"const": "streamable-http"}, "url": STRING})
                ),
            },
            *("websiteUrl", "repository", "remotes"),
        ),
        "_meta": schema_of(
            {
                "io.modelcontextprotocol.registry/official": schema_of(
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

SERVERS_SCHEMA: Json = schema_of(
    {
        "servers": array_of(SERVER_SCHEMA),
        "metadata": schema_of({"count": INTEGER, "nextCursor": STRING}, "nextCursor"),
    }
)

PROBLEM_SCHEMA: Json = schema_of(
    {
        "type": STRING,
        "title": STRING,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "code": {"type": "string", "description": "The code of the error (P16)."},
        "message": STRING,
        "retryable": _BOOLEAN,
        "details": {"type": ["object", "null"]},
    }
) | {"description": "A problem document (RFC 9457)."}
