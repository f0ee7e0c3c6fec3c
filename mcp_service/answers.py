"""The JSON of a node's answers (P15), its schemas, and the errors that clients may see (P16).

Names of NIP-7 (`acp_metadata`, `ipfs_cid`, `list_of_results`) are kept. Each answer also has all
that a client needs to check it against the chain.
"""

from __future__ import annotations

from typing import Any, Final

import structlog

from capdex.errors import CapdexError, Code, Unavailable
from indexer.query import IndexedRelease, NameState, Page, Position

# All other codes are for the operator and may name files and addresses.
PUBLIC: Final = frozenset(
    {
        *(Code.NOT_FOUND, Code.YANKED, Code.INVALID_INPUT, Code.UNVERIFIED, Code.PENDING),
        *(Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.TOO_LARGE, Code.RATE_LIMITED),
        *(Code.STALLED, Code.TIMEOUT),
    }
)

Json = dict[str, Any]

log = structlog.get_logger(part="mcp")


def release(found: IndexedRelease) -> Json:
    """Return the JSON of one release."""
    return {
        "acp_metadata": found.metadata,
        "ipfs_cid": found.cid,
        "cap_uri": found.cap_uri,
        "semver": found.semver,
        "sha256": found.sha256,
        "status": found.status,
        "verification": {
            "verdict": None if found.verdict is None else str(found.verdict),
            "signer": found.signer,
            "checks": list(found.checks),
            "lint": found.lint,
        },
        "chain": found.chain | {"finality": found.finality},
        "first_claimed_by": dict(found.first_claimed_by),
        "warnings": list(found.warnings),
    }


def resolution(found: IndexedRelease, position: Position) -> Json:
    """Return the answer of `resolve_capability`."""
    return release(found) | {"as_of": as_of(position)}


def results(page: Page, position: Position) -> Json:
    """Return the answer of `search_capabilities`, best hit first."""
    return {
        "list_of_results": [
            release(hit.release) | {"score": round(hit.score, 6), "matched": list(hit.matched)}
            for hit in page.hits
        ],
        "total": page.total,
        "next_cursor": page.next_cursor,
        "as_of": as_of(position),
    }


def releases(name: str, found: list[IndexedRelease], state: NameState, position: Position) -> Json:
    """Return the page of a name: its state and all its releases, rejected ones included.

    Releases that the node's operator denies lack the texts of their author.
    """
    return {
        "name": name,
        "ownership": {
            "owner": state.owner,
            "pending_owner": state.pending_owner,
            "maintainers": sorted(state.maintainers),
            "renounced": state.renounced,
        },
        # decimal text: the contract counts in 256 bits
        "votes": {"up": str(state.upvotes), "down": str(state.downvotes)},
        "releases": [
            release(x)
            | {
                "latest": x.latest,
                "availability": None if x.availability is None else str(x.availability),
                "reason": None if x.reason is None else str(x.reason),
                "message": x.message,
                "problems": list(x.problems),
                "denied": None if x.denied is None else x.denied.to_json(),
            }
            for x in found
        ],
        "as_of": as_of(position),
    }


def as_of(position: Position) -> Json:
    """Return the block that an answer is of, and the chain's head and finalized block."""
    return {
        "block_number": position.block_number,
        "block_hash": position.block_hash,
        "head_number": position.head,
        "finalized_number": position.finalized,
    }


def with_warning(answer: Json, warning: str | None) -> Json:
    """Return the answer with the reason why the node may not be up to date, if it has one."""
    if warning is not None and "as_of" in answer:
        return answer | {"as_of": answer["as_of"] | {"warning": warning}}
    return answer


def public_error(error: Exception) -> CapdexError:
    """Return the error for a client; one for the operator is logged, and no bug is described."""
    if isinstance(error, CapdexError):
        if error.code in PUBLIC:
            return error
        log.error("cannot answer", code=str(error.code), what=error.message, why=error.why)
        if error.code is not Code.INTERNAL:
            return Unavailable("the node cannot read its index now", Code.DATABASE_UNAVAILABLE)
    return Unavailable("the node failed to answer; this is its fault", Code.INTERNAL)


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
