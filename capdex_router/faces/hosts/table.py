"""The hosts that `capdex add-to` knows: where each keeps its MCP servers, and in which form.

Sources: the hosts' pages on MCP, and, where npm has them, the hosts themselves, November 2026. On
macOS a host is where it is on Linux, unless `mac` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

Scope = Literal["user", "project"]
Entry = Mapping[str, Any]  # `command`, `args`, and `env` if there is one

VSCODE_MAC: Final = "Library/Application Support/Code/User"


def _typed(entry: Entry) -> dict[str, Any]:
    return {"type": "stdio", **entry}


def _copilot(entry: Entry) -> dict[str, Any]:
    return {"type": "local", **entry, "tools": ["*"]}


def _opencode(entry: Entry) -> dict[str, Any]:
    environment = {"environment": entry["env"]} if "env" in entry else {}
    command = [entry["command"], *entry["args"]]
    return {"type": "local", "command": command, **environment, "enabled": True}


def _goose(entry: Entry) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": "capdex",
        "description": "Finds, installs and runs capabilities",
        "cmd": entry["command"],
        "args": entry["args"],
        "envs": entry.get("env", {}),
        "timeout": 300,
    }


@dataclass(frozen=True, slots=True)
class Host:
    """A host, and how an entry is written for it.

    `user` is a path below `base`, a directory in the user's home that `variable` moves; `mac` is
    the path below the home on macOS, if it is another. `project` is a path below a project. A host
    that lacks one of them has no such file. A file of the names `also` in the same directory is
    taken if it is there. Servers stand under `key`, each as `shape` makes it. `check` is how a
    person sees that the host has the router; `asks` and `asks_project` say what it wants besides.
    """

    name: str
    title: str
    key: str
    user: str = ""
    project: str = ""
    base: str = ""
    variable: str = ""
    mac: str = ""
    also: tuple[str, ...] = ()
    shape: Callable[[Entry], dict[str, Any]] = dict
    check: str = ""
    asks: str = ""
    asks_project: str = ""

    def file(
        self, scope: Scope, *, home: Path, project: Path, environ: Mapping[str, str], mac: bool
    ) -> Path | None:
        """Return the file of a scope in which the host keeps its servers, None if it has none."""
        if scope == "project":
            return self._there(project / self.project) if self.project else None
        if not self.user:
            return None
        if mac and self.mac:
            return home / self.mac
        moved = environ.get(self.variable) if self.variable else None
        return self._there((Path(moved) if moved else home / self.base) / self.user)

    def _there(self, file: Path) -> Path:
        others = [file.with_name(name) for name in self.also]
        return file if file.is_file() else next((x for x in others if x.is_file()), file)


HOSTS: Final = {
    host.name: host
    for host in (
        Host(
            "claude", "Claude Code", "mcpServers", ".claude.json", ".mcp.json",
            variable="CLAUDE_CONFIG_DIR", shape=_typed, check="claude mcp list",
            asks_project="it asks once, in a session of this project, before it starts the server",
        ),
        Host(
            "claude-desktop", "Claude Desktop", "mcpServers", "Claude/claude_desktop_config.json",
            base=".config", variable="XDG_CONFIG_HOME",
            mac="Library/Application Support/Claude/claude_desktop_config.json",
            check="Settings > Developer",
        ),
        Host(
            "codex", "Codex", "mcp_servers", "config.toml", ".codex/config.toml",
            base=".codex", variable="CODEX_HOME", check="codex mcp list",
            asks_project="it reads the file in projects that you trust, which it asks at its start",
        ),
        Host(
            "gemini", "Gemini CLI", "mcpServers", "settings.json", ".gemini/settings.json",
            base=".gemini", check="gemini mcp list",
            asks="it starts servers in trusted folders alone; to trust one: /permissions trust",
        ),
        Host(
            "cursor", "Cursor", "mcpServers", "mcp.json", ".cursor/mcp.json",
            base=".cursor", check="Customize > MCPs",
        ),
        Host(
            "vscode", "VS Code", "servers", "Code/User/mcp.json", ".vscode/mcp.json",
            base=".config", variable="XDG_CONFIG_HOME", mac=f"{VSCODE_MAC}/mcp.json",
            shape=_typed, check="MCP: List Servers",
            asks="it asks whether you trust the server before it starts it",
        ),
        Host(
            "zed", "Zed", "context_servers", "zed/settings.json", ".zed/settings.json",
            base=".config", variable="XDG_CONFIG_HOME", mac=".config/zed/settings.json",
            check="agent: open settings",
            asks_project="it starts the server where you trust the project",
        ),
        Host(
            "opencode", "opencode", "mcp", "opencode/opencode.jsonc", "opencode.json",
            base=".config", variable="XDG_CONFIG_HOME",
            also=("opencode.json", "opencode.jsonc"),
            shape=_opencode, check="opencode mcp list",
        ),
        Host(
            "goose", "goose", "extensions", "goose/config.yaml",
            base=".config", variable="XDG_CONFIG_HOME", shape=_goose, check="goose info -v",
        ),
        Host(
            "windsurf", "Windsurf", "mcpServers", "mcp_config.json",
            base=".codeium/windsurf", check="the MCP icon of Cascade",
        ),
        Host(
            "jetbrains", "Junie of JetBrains", "mcpServers", "mcp.json", ".junie/mcp/mcp.json",
            base=".junie/mcp", check="/mcp",
        ),
        Host(
            "amp", "Amp", "amp.mcpServers", "amp/settings.json", ".amp/settings.json",
            base=".config", variable="XDG_CONFIG_HOME", check="amp mcp list",
            asks_project="it starts the server after: amp mcp approve capdex",
        ),
        Host(
            "copilot", "Copilot CLI", "mcpServers", "mcp-config.json",
            base=".copilot", variable="COPILOT_HOME", shape=_copilot, check="copilot mcp list",
        ),
        Host(
            "cline", "Cline", "mcpServers", "data/settings/cline_mcp_settings.json",
            base=".cline", variable="CLINE_DIR", check="cline config mcp",
        ),
        Host(
            "roo", "Roo Code", "mcpServers",
            "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ".roo/mcp.json", base=".config", variable="XDG_CONFIG_HOME",
            mac=f"{VSCODE_MAC}/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            check="the MCP icon of its panel",
        ),
        Host(
            "continue", "Continue", "mcpServers", project=".continue/mcpServers/capdex.json",
            check="/mcp of cn",
        ),
        Host(
            "kiro", "Kiro", "mcpServers", "settings/mcp.json", ".kiro/settings/mcp.json",
            base=".kiro", check="kiro-cli mcp list",
        ),
        Host("lm-studio", "LM Studio", "mcpServers", "mcp.json", base=".lmstudio", check="Program"),
        Host(
            "qwen", "Qwen Code", "mcpServers", "settings.json", ".qwen/settings.json",
            base=".qwen", check="qwen mcp list",
            asks_project="it starts the server after: qwen mcp approve capdex",
        ),
    )
}  # fmt: skip
ALIASES: Final = {"claude-code": "claude", "gemini-cli": "gemini", "junie": "jetbrains"}
