"""A runtime over a directory: files for its user alone, which two processes may share."""

from __future__ import annotations

import asyncio
import stat
import sys
from pathlib import Path

import pytest
from mcp.client.stdio import StdioServerParameters

from capdex_router import runtime
from capdex_router.home.audit_log import AuditLog
from capdex_router.runtime import open_runtime

FOREIGN = str(Path(__file__).with_name("catalog") / "foreign.py")
SKILL = "---\nname: plain\ndescription: Write plainly.\n---\nUse short words.\n"


async def test_two_runtimes_share_one_directory(tmp_path: Path) -> None:
    home = tmp_path / "router"
    async with open_runtime(home) as one, open_runtime(home) as other:
        assert one.catalog is not other.catalog
        with AuditLog(home / "audit.jsonl") as log:
            log.write("test")
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
    assert files["audit.jsonl"] == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


async def test_folders_of_skills_are_there(tmp_path: Path) -> None:
    (tmp_path / "skills" / "plain").mkdir(parents=True)
    (tmp_path / "skills" / "plain" / "SKILL.md").write_text(SKILL)
    folders = [tmp_path / "skills"]
    async with open_runtime(tmp_path / "router", folders=folders) as runtime:
        assert runtime.catalog.find("plain").prompt == "Use short words."
        assert runtime.search.domains() == {"skills": 1}


async def test_a_server_that_does_not_start_takes_no_other_tool_away(tmp_path: Path) -> None:
    servers = {
        "gone": StdioServerParameters(command="/nonexistent"),
        "foreign": StdioServerParameters(command=sys.executable, args=[FOREIGN]),
    }
    async with open_runtime(tmp_path / "router", servers=servers) as runtime:
        assert [server.name for server in runtime.servers if server.down] == ["gone"]
        assert runtime.catalog.find("mcp:foreign#read").name == "read"


async def test_a_silent_server_keeps_no_other_tool_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "START_S", 0.01)
    silent = StdioServerParameters(command="sleep", args=["1000"])
    async with asyncio.timeout(20):
        async with open_runtime(tmp_path / "router", servers={"silent": silent}) as found:
            (server,) = found.servers
            assert server.down is not None
            assert "being started" in server.down.fix
