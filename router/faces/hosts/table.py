"""The hosts that `capdex add-to` knows: where each keeps its MCP servers, and in which form.

Sources: the pages on MCP of Claude Code, Cursor, VS Code, Zed, Codex and Gemini CLI, November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Scope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class Host:
    """A host. `user` is a path below `base`, a directory in the user's home that `variable` moves.

    `mac` is the path below the home on macOS, if it is another. `project` is a path below a
    project. Servers stand under `key`; with `typed` an entry says its transport.
    """

    name: str
    title: str
    key: str
    user: str
    project: str
    base: str = ""
    variable: str = ""
    mac: str = ""
    typed: bool = False
    note: str = ""

    def file(
        self, scope: Scope, *, home: Path, project: Path, environ: Mapping[str, str], mac: bool
    ) -> Path:
        """Return the file in which the host keeps its servers."""
        if scope == "project":
            return project / self.project
        if mac and self.mac:
            return home / self.mac
        moved = environ.get(self.variable) if self.variable else None
        return (Path(moved) if moved else home / self.base) / self.user


HOSTS: Final = {
    host.name: host
    for host in (
        Host(
            "claude", "Claude Code", "mcpServers", ".claude.json", ".mcp.json",
            variable="CLAUDE_CONFIG_DIR", typed=True,
            note="it asks once before it starts a project's server",
        ),
        Host("cursor", "Cursor", "mcpServers", "mcp.json", ".cursor/mcp.json", base=".cursor"),
        Host(
            "vscode", "VS Code", "servers", "Code/User/mcp.json", ".vscode/mcp.json",
            base=".config", variable="XDG_CONFIG_HOME", typed=True,
            mac="Library/Application Support/Code/User/mcp.json",
        ),
        Host(
            "zed", "Zed", "context_servers", "zed/settings.json", ".zed/settings.json",
            base=".config", variable="XDG_CONFIG_HOME", mac=".config/zed/settings.json",
        ),
        Host(
            "codex", "Codex", "mcp_servers", "config.toml", ".codex/config.toml",
            base=".codex", variable="CODEX_HOME",
            note="it reads a project's file only where it trusts the project",
        ),
        Host(
            "gemini", "Gemini CLI", "mcpServers", "settings.json", ".gemini/settings.json",
            base=".gemini",
        ),
    )
}  # fmt: skip
