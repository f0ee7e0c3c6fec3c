"""From an MCP server of others to a capability that a wish in words finds, by typed commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "node_modules" / ".bin" / "mcp-server-everything"


def test_import_edit_two_lines_validate_sign_publish_and_find(
    network: Any, shell: Any, node_binary: str, eventually: Callable[..., Any]
) -> None:
    assert network
    command = shlex.join([node_binary, str(SERVER.resolve()), "stdio"])
    made = shell.json(
        *("init", "try-things", "--title", "Try Things", "--from-mcp", command),
        *("--service", "https://mcp.rain.dev/mcp"),
    )
    assert {"document"} <= {row["source"] for row in made["notes"]}
    [to_edit] = made["to_edit"]
    assert "description: " in to_edit
    refused = shell("publish", "try-things.acp.yaml", "--yes", code=1)
    assert "lines of the template that are not edited" in refused.stderr

    path = shell / "try-things.acp.yaml"
    text = path.read_text("utf-8")
    text, edited = re.subn(
        r'(?m)^  description: ".*"$',
        '  description: "Adds two numbers, echoes a sentence and draws a tiny picture."',
        text,
        count=1,
    )
    text, more = re.subn(r'value: "try things"', 'value: "add two numbers"', text)
    assert (edited, more) == (1, 1)
    path.write_text(text, "utf-8")

    checked = shell.json("validate", path.name)
    assert checked["ok"]
    assert {x["severity"] for x in checked["problems"]} <= {"note"}
    shell("sign", path.name)
    published = shell.json("publish", path.name, "--yes")
    assert published["cap_uri"] == "did:nuwa:cap:try-things@0.1.0"

    def found() -> bool:
        hits = shell.json("search", "please add these two numbers for me")["results"]
        return bool(hits) and hits[0]["cap_uri"] == published["cap_uri"]

    eventually(found, "a hit for a wish in words")
    shown = shell("show", "try-things", "--format", "human").stdout
    assert "contacts     mcp.rain.dev" in shown
    assert re.search(r"^  echo +Echoes back the input string$", shown, re.M)
