"""Effects of a tool: what its package states, and else what its kind implies (P10)."""

from __future__ import annotations

from typing import Final, NamedTuple

from capdex.manifest.manifest import Manifest
from capdex.manifest.tools import Annotations, Tool

READS: Final = frozenset({"http_get", "state.query"})
KEEPS: Final = frozenset({"state.create", "state.update"})  # what can be undone


class Effects(NamedTuple):
    """Effects of a tool, with MCP's cautious values where nothing is known."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False


def effects(manifest: Manifest, tool: Tool) -> Effects:
    """Return the effects of a tool; what a package states about a built-in tool is not read."""
    kind = tool.name if tool.built_in else manifest.bindings.get(tool.name, {}).get("type")
    stated = Annotations() if tool.built_in else tool.annotations
    read_only = stated.read_only
    if read_only is None:
        read_only = kind in READS and not stated.destructive
    destructive = stated.destructive
    if destructive is None:
        destructive = not read_only and kind not in KEEPS
    return Effects(
        read_only, destructive, read_only if stated.idempotent is None else stated.idempotent
    )
