"""Where hosts keep their servers."""

from __future__ import annotations

from pathlib import Path

from capdex_router.faces.hosts.table import HOSTS, Scope

HOME, PROJECT = Path("/home/a"), Path("/src/p")


def file(host: str, scope: Scope = "user", *, mac: bool = False, **environ: str) -> str:
    found = HOSTS[host].file(scope, home=HOME, project=PROJECT, environ=environ, mac=mac)
    return found.as_posix() if found else ""


def test_variables_and_macos_move_the_user_s_files() -> None:
    assert file("claude", CLAUDE_CONFIG_DIR="/c") == "/c/.claude.json"
    assert file("codex", CODEX_HOME="/x") == "/x/config.toml"
    assert file("zed", XDG_CONFIG_HOME="/g") == "/g/zed/settings.json"
    assert file("zed", mac=True, XDG_CONFIG_HOME="/g") == "/home/a/.config/zed/settings.json"
    assert file("vscode", XDG_CONFIG_HOME="") == "/home/a/.config/Code/User/mcp.json"
    assert "Library/Application Support/Code/User" in file("vscode", mac=True)
    assert "Library/Application Support/Claude" in file("claude-desktop", mac=True)
    assert file("goose", mac=True) == "/home/a/.config/goose/config.yaml"


def test_a_host_may_have_no_file_of_a_scope() -> None:
    assert file("goose", "project") == file("continue") == file("continue", mac=True) == ""
