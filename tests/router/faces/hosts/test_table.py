"""Where hosts keep their servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.faces.hosts.table import HOSTS, Scope

HOME, PROJECT = Path("/home/a"), Path("/src/p")


def file(host: str, scope: Scope = "user", *, mac: bool = False, **environ: str) -> str:
    found = HOSTS[host].file(scope, home=HOME, project=PROJECT, environ=environ, mac=mac)
    return found.as_posix()


@pytest.mark.parametrize(
    ("host", "user", "project", "key"),
    [
        ("claude", ".claude.json", ".mcp.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", ".vscode/mcp.json", "servers"),
        ("zed", ".config/zed/settings.json", ".zed/settings.json", "context_servers"),
        ("codex", ".codex/config.toml", ".codex/config.toml", "mcp_servers"),
        ("gemini", ".gemini/settings.json", ".gemini/settings.json", "mcpServers"),
    ],
)
def test_each_host_has_a_file_for_its_user_and_for_a_project(
    host: str, user: str, project: str, key: str
) -> None:
    assert file(host) == f"/home/a/{user}"
    assert file(host, "project") == f"/src/p/{project}"
    assert HOSTS[host].key == key


def test_variables_and_macos_move_the_user_s_files() -> None:
    assert file("claude", CLAUDE_CONFIG_DIR="/c") == "/c/.claude.json"
    assert file("codex", CODEX_HOME="/x") == "/x/config.toml"
    assert file("zed", XDG_CONFIG_HOME="/g") == "/g/zed/settings.json"
    assert file("zed", mac=True, XDG_CONFIG_HOME="/g") == "/home/a/.config/zed/settings.json"
    assert file("vscode", XDG_CONFIG_HOME="") == "/home/a/.config/Code/User/mcp.json"
    assert "Library/Application Support/Code/User" in file("vscode", mac=True)
