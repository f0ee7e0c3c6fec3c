"""`capdex add-to`: the plan, the question, the file, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def claude(clean_environment: Path) -> Path:
    """The file of Claude Code in the test's home."""
    file = clean_environment / ".claude.json"
    file.write_text('{\n  "numStartups": 3\n}\n')
    return file


def test_the_plan_is_shown_and_nothing_done_without_a_yes(capdex: Any, claude: Path) -> None:
    before = claude.read_text()
    done = capdex("add-to", "claude")
    assert done.exit_code == 4
    assert str(claude) in done.stderr
    assert '+ capdex: {"type": "stdio", "command": ' in done.stderr
    assert capdex.json("add-to", "claude", "--dry-run")["action"] == "planned"
    assert claude.read_text() == before


def test_the_router_is_added_once_and_removed(capdex: Any, claude: Path) -> None:
    before = json.loads(claude.read_text())
    added = capdex.json("add-to", "claude", "--yes")
    assert {**added, "backup": None} == {
        "schema": "capdex.host/1",
        "host": "claude",
        "scope": "user",
        "file": str(claude),
        "action": "added",
        "backup": None,
    }
    assert Path(added["backup"]).read_text() == '{\n  "numStartups": 3\n}\n'
    entry = json.loads(claude.read_text())["mcpServers"]["capdex"]
    assert (entry["type"], entry["args"]) == ("stdio", ["router"])
    assert Path(entry["command"]).is_absolute()
    assert Path(entry["env"]["CAPDEX_HOME"]).is_absolute()
    assert capdex.json("add-to", "claude")["action"] == "unchanged"
    assert capdex.json("add-to", "claude", "--remove", "--yes")["action"] == "removed"
    assert json.loads(claude.read_text()) == {**before, "mcpServers": {}}
    assert capdex.json("add-to", "claude", "--remove")["action"] == "unchanged"


def test_a_project_s_file_names_the_program_alone(capdex: Any, folder: Path) -> None:
    assert capdex("add-to", "vscode", "--scope", "project", "--yes").exit_code == 0
    found = json.loads((folder / ".vscode/mcp.json").read_text())
    assert found == {
        "servers": {"capdex": {"type": "stdio", "command": "capdex", "args": ["router"]}}
    }


def test_a_broken_file_is_refused_with_its_place(capdex: Any, claude: Path) -> None:
    claude.write_text('{\n  "a": }\n')
    done = capdex("add-to", "claude", "--yes", "--json")
    assert done.exit_code == 1
    error = json.loads(done.stderr)
    assert error["details"]["why"].startswith("line 2, column 8")
    assert claude.read_text() == '{\n  "a": }\n'


def test_hosts_are_listed(capdex: Any, claude: Path) -> None:
    capdex("add-to", "zed", "--yes")
    claude.write_text("{")
    rows = {one["host"]: one["state"] for one in capdex.json("add-to")["results"]}
    assert list(rows) == ["claude", "cursor", "vscode", "zed", "codex", "gemini"]
    assert (rows["zed"], rows["codex"]) == ("added", "not added")
    assert "line 1" in rows["claude"]


def test_an_unknown_host_is_a_usage_error(capdex: Any) -> None:
    assert capdex("add-to", "emacs").exit_code == 2
