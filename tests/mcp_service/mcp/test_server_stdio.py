"""MCP over stdin and stdout, as a host starts it: one real process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_starts_it_and_asks(database: str, tmp_path: Path, mode: str) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "capdex", "mcp", "--db", database], cwd=tmp_path
    )
    with (tmp_path / "stderr").open("w") as errors:
        async with mcp.Client(stdio_client(command, errlog=errors), mode=mode) as client:
            assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
            assert len((await client.list_tools()).tools) == 6
            found = await client.call_tool(
                "resolve_capability", {"cap_uri": "did:nuwa:cap:note@^1"}
            )
            large = await client.call_tool(
                "search_capabilities", {"query_string": "large", "limit": 50}
            )
            wrong = await client.call_tool("resolve_capability", {"cap_uri": "note"})
    assert found.structured_content is not None
    assert found.structured_content["semver"] == "1.1.0"
    assert large.structured_content is not None
    assert large.structured_content["total"] == 8
    assert wrong.structured_content is not None
    assert (wrong.is_error, wrong.structured_content["code"]) == (True, "INVALID_INPUT")
    assert (tmp_path / "stderr").read_text() == ""


def test_a_wrong_database_is_told_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "capdex", "mcp", "--db", f"sqlite:///{tmp_path / 'none.db'}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "none.db cannot be opened" in done.stderr
    assert not (tmp_path / "none.db").exists()
