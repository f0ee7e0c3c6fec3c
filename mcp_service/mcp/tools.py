"""The tools as clients see them: names, descriptions and input schemas, in few tokens.

No tool has an output schema: hosts hand a schema's whole text to the model or drop it, and clients
that check answers against one refuse our error answers before the model can read them. The schemas
of all answers are in the OpenAPI document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types

from capdex.profiles.cap import KINDS
from indexer.query import FILTER_NAMES
from mcp_service.answers.cmp import LEVELS
from mcp_service.queries.proofs import PROOF_KINDS
from mcp_service.queries.resolve import INCLUDES
from mcp_service.queries.search import DETAILS, FACETS

_READ_ONLY: Final = types.ToolAnnotations(read_only_hint=True)
_STRING: Final = {"type": "string"}
_URI: Final = {"type": "string", "description": "did:nuwa:cap:<name>, or with @1.2.3 or @^1.2"}


def _tool(name: str, description: str, required: list[str], **properties: Any) -> types.Tool:
    return types.Tool(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": properties}
        | ({"required": required} if required else {}),
        annotations=_READ_ONLY,
    )


RESOLVE: Final = _tool(
    "resolve_capability",
    "Resolve a capability URI (latest, exact or range) to one verified release.",
    ["cap_uri"],
    cap_uri=_URI,
    include={"type": "array", "items": {"enum": list(INCLUDES)}},
    proof={"enum": list(PROOF_KINDS)},
    proof_block={"anyOf": [_STRING, {"type": "integer"}]},
)

SEARCH: Final = _tool(
    "search_capabilities",
    "Find verified capabilities by what they do, in plain words.",
    ["query_string"],
    query_string=_STRING,
    filters={
        "type": "object",
        "description": f"{', '.join(FILTER_NAMES)}: value or list; "
        "not: {…}; published_since; context_window; has_prompt",
    },
    limit={"type": "integer"},
    cursor=_STRING,
    detail={"enum": list(DETAILS)},
    facets={"type": "array", "items": {"enum": list(FACETS)}},
)

ROUTE: Final = _tool(
    "route_message",
    "Capabilities for a message, by triggers and words.",
    ["message"],
    message=_STRING,
    limit={"type": "integer"},
)

GET: Final = _tool(
    "get_capability",
    "All to install one release: file, tools with bindings, prompt, state schema.",
    ["cap_uri"],
    cap_uri=_URI,
)

LIST: Final = _tool(
    "capability_list",
    "CAP manifests of packages (skills) and their tools, by name.",
    [],
    kind={"enum": list(KINDS)},
    limit={"type": "integer"},
    cursor=_STRING,
)

DESCRIBE: Final = _tool(
    "capability_describe",
    "CAP manifest of a skill (did:nuwa:cap:<name>) or of its tool (…#<tool>).",
    ["capability_id"],
    capability_id=_STRING,
    version=_STRING,
)

BROWSE: Final = _tool(
    "capability_browse",
    "CMP by level: domains, manifests of one, of a package.",
    ["level"],
    level={"enum": list(LEVELS)},
    of={"type": "string", "description": "domain or package"},
    cursor=_STRING,
)

ALL: Final = (RESOLVE, SEARCH, ROUTE, GET, LIST, DESCRIBE, BROWSE)
TOOLS: Final = {tool.name: tool for tool in ALL}


@dataclass(frozen=True, slots=True)
class Profile:
    """The tools that a client sees; with `text_only` answers have no structured content.

    Some hosts give a model the structured content instead of the text, which is far longer.
    """

    tools: tuple[types.Tool, ...]
    text_only: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools."""
        return frozenset(tool.name for tool in self.tools)


PROFILES: Final = {"default": Profile(ALL), "minimal": Profile((SEARCH, GET), text_only=True)}
