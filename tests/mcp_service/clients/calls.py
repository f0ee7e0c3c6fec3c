"""A call of every tool, each with a word of its answer."""

from __future__ import annotations

from typing import Any

CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "resolve_capability": ({"cap_uri": "did:nuwa:cap:note@^1"}, "note 1.1.0"),
    "search_capabilities": ({"query_string": "takes notes"}, "note 1.1.0"),
    "route_message": ({"message": "/note buy milk"}, "note 1.1.0"),
    "get_capability": ({"cap_uri": "did:nuwa:cap:note"}, "note 1.1.0"),
    "capability_list": ({"kind": "skill", "limit": 1}, "did:nuwa:cap:copy"),
    "capability_describe": ({"capability_id": "did:nuwa:cap:note"}, "did:nuwa:cap:note"),
    "capability_browse": ({"level": "manifests", "of": "other"}, "note"),
}
