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

RESOLUTION_SCHEMA: Json = _object(_RELEASE | {"as_of": _AS_OF, "proof": _PROOF}, "proof")

RESULTS_SCHEMA: Json = _object(
    {
        "list_of_results": {
            "type": "array",
            "items": _object(_RELEASE | {"score": {"type": "number"}, "matched": _STRINGS}),
        },
        "total": _INTEGER,
        "next_cursor": _MAYBE_STRING,
        "as_of": _AS_OF,
    }
)
