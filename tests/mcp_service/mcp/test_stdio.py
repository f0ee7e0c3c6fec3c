"""MCP over stdin and stdout, as a shell's pipe uses it (capdex/net/stdio.py)."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.capdex.net.test_introduction import ENVELOPE, hello, request
from tests.mcp_service.mcp.test_envelope import BAD, with_id


def answers(database: str, cwd: Path, lines: bytes) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "capdex", "mcp", "--db", database],
        input=lines,
        capture_output=True,
        cwd=cwd,
        check=True,
    )
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_line_is_answered_and_the_next_one_is_read(database: str, tmp_path: Path) -> None:
    wrong = [x for x in BAD if x and b"\xff" not in x]  # U+FFFD takes the place of \xff
    lines = b"".join(x + b"\n" for x in [*wrong, b"", b"  ", with_id('"last"')])
    *errors, last = answers(database, tmp_path, lines)
    assert [(x["error"]["code"], x["id"]) for x in errors] == [BAD[x] for x in wrong]
    assert last == {"jsonrpc": "2.0", "id": "last", "result": {}}


def test_requests_before_the_end_of_stdin_are_answered(database: str, tmp_path: Path) -> None:
    client = {"name": "a pipe", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    call = {"name": "search_capabilities", "arguments": {"query_string": "notes"}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    messages += (
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
        for number in range(1, 21)
    )
    found = answers(database, tmp_path, b"".join(json.dumps(x).encode() + b"\n" for x in messages))
    assert sorted(x["id"] for x in found) == list(range(21))
    assert all("result" in x for x in found)


def test_a_database_of_another_version_is_told_at_each_call(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "index.db")) as database:
        database.execute("CREATE TABLE other (value)")
    call = {"name": "search_capabilities", "arguments": {"query_string": "notes"}}
    messages = [
        *(hello(), request("tools/list", id_=2), request("tools/call", call, 3)),
        request("tools/call", call | {"_meta": ENVELOPE}, 4),
        request("resources/list", id_=5),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "capdex", "mcp", "--db", "sqlite:///index.db"],
        input="".join(f"{json.dumps(x)}\n" for x in messages),
        capture_output=True,
        cwd=tmp_path,
        text=True,
        check=False,
    )
    replies = {x["id"]: x for x in map(json.loads, done.stdout.splitlines())}
    assert done.returncode != 0
    assert "result" in replies[1]
    assert len(replies[2]["result"]["tools"]) == 7
    for id_ in (3, 4):
        error = replies[id_]["result"]["structuredContent"]
        assert replies[id_]["result"]["isError"]
        assert error["details"]["fix"] in replies[id_]["result"]["content"][0]["text"]
        assert error["message"] in done.stderr
    assert error["message"] in replies[5]["error"]["message"]
