"""Pins of remote MCP tools: the definition that was there at first use, by its hash.

A service can change what its tools mean after a person agreed to them. A changed definition stays
refused until a person has looked at it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from capdex.errors import Code, Refused
from capdex_router.home.shared_file import texts_file


def fingerprint(name: str, description: str | None, input_schema: dict[str, Any]) -> str:
    """Return the sha256, in hex, of a tool's name, description and input schema."""
    definition = {"name": name, "description": description or "", "inputSchema": input_schema}
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Pins:
    """Fingerprints by capability, service and tool, kept in a file.

    Several routers share the file: what one of them pins holds for all.
    """

    def __init__(self, path: Path) -> None:
        # A damaged file is not taken as empty: that would accept whatever the services say now.
        fix = "remove it, and look at the tools of your MCP services again"
        self._file = texts_file(path, fix)

    def check(self, capability: str, service_uri: str, action: str, current: str) -> None:
        """Pin a tool that is new; raise Refused PERMISSION_DENIED for one that changed."""
        key = _key(capability, service_uri, action)
        pinned = self._file.read().get(key)
        if pinned is None:  # unless another router pinned it meanwhile
            pinned = self._file.change(lambda pins: {key: current, **pins}).get(key, current)
        if pinned != current:
            raise Refused(
                f"the service changed its tool {action[:64]!r} since its first use",
                Code.PERMISSION_DENIED,
                why="its description or input schema is not what it was",
                fix=f"a person can accept it: capdex remove {capability}, then install it again",
                details={"service": service_uri, "tool": action, "was": pinned, "is": current},
            )

    def forget(self, capability: str) -> None:
        """Remove the pins of a capability, as its removal does."""
        mine = _key(capability, "", "").removesuffix('"",""]')
        self._file.change(
            lambda pins: {key: x for key, x in pins.items() if not key.startswith(mine)}
        )


def _key(capability: str, service_uri: str, action: str) -> str:
    return json.dumps([capability, service_uri, action], separators=(",", ":"))
