"""A call of every tool, each with an answer about the capability `note`."""

from __future__ import annotations

from typing import Any

CALLS: dict[str, dict[str, Any]] = {
    "resolve_capability": {"cap_uri": "did:nuwa:cap:note@^1"},
    "search_capabilities": {"query_string": "takes notes"},
    "get_capability": {"cap_uri": "did:nuwa:cap:note"},
}
