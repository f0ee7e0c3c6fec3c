"""The two tools as clients see them: names, descriptions and schemas."""

from __future__ import annotations

from typing import Final

import mcp_types as types

from indexer.query import FILTER_NAMES, MAX_QUERY_CHARS
from mcp_service.answers import schemas
from mcp_service.queries.proofs import PROOF_KINDS

MAX_PAGE: Final = 50
DEFAULT_PAGE: Final = 10

_FILTER_TEXT: Final = {
    "name": "exact capability name",
    "tag": "one of the package's tags",
    "domain": "the package's domain, like weather or productivity",
    "language": "a language the package speaks, like en or zh",
    "author": "DID of the author",
    "publisher": "account that published, 0x…",
    "license": "SPDX licence expression",
    "permission": "a permission the package requires, like state.create",
    "binding": "a binding type: http_get, http_post, nuwa_a2a or mcp_service",
    "tool": "exact name of a tool of the package",
}

_READ_ONLY: Final = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

RESOLVE: Final = types.Tool(
    name="resolve_capability",
    title="Resolve a capability URI",
    description=(
        "Resolve a capability URI to one verified release. did:nuwa:cap:<name> gives the latest, "
        "@1.2.3 an exact version, @^1.2 the highest in a range (npm grammar)."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "cap_uri": {
                "type": "string",
                "description": "e.g. did:nuwa:cap:note, did:nuwa:cap:note@1.0.0, "
                "did:nuwa:cap:note@^1",
            },
            "proof": {
                "type": "string",
                "enum": list(PROOF_KINDS),
                "default": "none",
                "description": "add a storage proof (EIP-1186), to check the answer by a block "
                "hash: exact proves this release, list every release of the name, and so that it "
                "is the latest",
            },
            "proof_block": {
                "type": ["string", "integer"],
                "description": "the block to prove at, by hash (0x…) or number; if not given, the "
                "one that the node has indexed",
            },
        },
        "required": ["cap_uri"],
        "additionalProperties": False,
    },
    output_schema=schemas.RESOLUTION_SCHEMA,
    annotations=_READ_ONLY,
)

SEARCH: Final = types.Tool(
    name="search_capabilities",
    title="Search capabilities",
    description=(
        "Full-text search over verified capabilities: names, descriptions, summaries, tags, "
        "triggers and tools, in any language. Say what is wanted in plain words. An empty query "
        "lists capabilities by name."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query_string": {
                "type": "string",
                "maxLength": MAX_QUERY_CHARS,
                "description": "what is wanted, e.g. convert miles to kilometres",
            },
            "filters": {
                "type": "object",
                "properties": {
                    name: {"type": "string", "description": _FILTER_TEXT[name]}
                    for name in FILTER_NAMES
                },
                "additionalProperties": False,
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_PAGE,
                "default": DEFAULT_PAGE,
            },
            "cursor": {"type": "string", "description": "next_cursor of the page before"},
        },
        "required": ["query_string"],
        "additionalProperties": False,
    },
    output_schema=schemas.RESULTS_SCHEMA,
    annotations=_READ_ONLY,
)

TOOLS: Final = {tool.name: tool for tool in (RESOLVE, SEARCH)}
