"""Effects of a tool: what its package states, and else what its kind implies (P10)."""

from __future__ import annotations

from typing import Final, NamedTuple

from capdex.manifest.manifest import Manifest
from capdex.manifest.tools import Annotations, Tool

READS: Final = frozenset({"http_get", "GET", "state.query"})
WRITES: Final = frozenset({"PUT", "PATCH", "DELETE"})  # methods of `http`, whatever is stated
KEEPS: Final = frozenset({"state.create", "state.update"})  # what can be undone


class Effects(NamedTuple):
    """Effects of a tool, with MCP's cautious values where nothing is known."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False


def effects(manifest: Manifest, tool: Tool) -> Effects:
    """Return the effects of a tool; what a package states about a built-in tool is not read."""
    binding = manifest.bindings.get(tool.name, {})
    kind = tool.name if tool.built_in else binding.get("type")
    kind = str(binding.get("method")) if kind == "http" else kind
    if kind in WRITES:
        return Effects(idempotent=bool(tool.annotations.idempotent))
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
