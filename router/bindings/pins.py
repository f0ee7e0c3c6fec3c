"""Pins of remote MCP tools: the definition that was there at first use, by its hash.

A service can change what its tools mean after a person agreed to them. A changed definition stays
refused until a person has looked at it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any, Final

import orjson

from capdex.errors import Code, Refused, UsageError

MAX_FILE_BYTES: Final = 4 * 1024 * 1024


def fingerprint(name: str, description: str | None, input_schema: dict[str, Any]) -> str:
    """Return the sha256, in hex, of a tool's name, description and input schema."""
    definition = {"name": name, "description": description or "", "inputSchema": input_schema}
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Pins:
    """Fingerprints by capability, service and tool; kept in a JSON file if a path is given."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._pins: dict[str, str] | None = None if path else {}

    def check(self, capability: str, service_uri: str, action: str, found: str) -> None:
        """Pin a tool that is new; raise Refused PERMISSION_DENIED for one that changed."""
        pinned = self._load().get(_key(capability, service_uri, action))
        if pinned is None:
            self.accept(capability, service_uri, action, found)
        elif pinned != found:
            raise Refused(
                f"the service changed its tool {action[:64]!r} since it was installed",
                Code.PERMISSION_DENIED,
                why="its name, description or input schema is not what was agreed to",
                fix="look at the new definition, and accept it if it is what you want",
                details={"service": service_uri, "tool": action, "was": pinned, "is": found},
            )

    def accept(self, capability: str, service_uri: str, action: str, found: str) -> None:
        """Pin a definition that a person looked at."""
        pins = self._load()
        pins[_key(capability, service_uri, action)] = found
        self._save(pins)

    def forget(self, capability: str) -> None:
        """Remove the pins of a capability, as its removal does."""
        pins = self._load()
        mine = _key(capability, "", "")[: -len(',"",""]')]
        kept = {key: pin for key, pin in pins.items() if not key.startswith(f"{mine},")}
        if kept != pins:
            self._pins = kept
            self._save(kept)

    def _load(self) -> dict[str, str]:
        if self._pins is None and self._path is not None:
            try:
                data = self._path.read_bytes() if self._path.exists() else b"{}"
                pins = orjson.loads(data) if len(data) <= MAX_FILE_BYTES else None
            except (OSError, ValueError):
                pins = None
            if not isinstance(pins, dict) or not all(isinstance(x, str) for x in pins.values()):
                # Not taken as empty: that would accept whatever the services say now.
                raise UsageError(
                    f"{self._path} cannot be read",
                    Code.UNREADABLE,
                    why="it holds the pins of remote tools, and is damaged",
                    fix="remove it, and look at the tools of your MCP services again",
                )
            self._pins = pins
        return self._pins or {}

    def _save(self, pins: dict[str, str]) -> None:
        self._pins = pins
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")
        try:
            with new.open("x", encoding="utf-8") as file:
                json.dump(pins, file, sort_keys=True, indent=0)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        finally:
            new.unlink(missing_ok=True)


def _key(capability: str, service_uri: str, action: str) -> str:
    return json.dumps([capability, service_uri, action], separators=(",", ":"))
