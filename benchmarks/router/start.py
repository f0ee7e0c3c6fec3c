"""Processor time of a start: until a host has the tools, and until a first call is answered.

`python benchmarks/router/start.py [RUNS]` starts `capdex router`, `capdex mcp` and a minimal server
of the SDK in turn, sends what hosts send, and ends the process when the answer is read. Python's
own start is part of each figure. The database of `capdex mcp` is only named: no call reads it here.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RUNS = 11
MINIMAL = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def tools(*_):
    return types.ListToolsResult(tools=[types.Tool(name="find", input_schema={"type": "object"})])

async def call(*_):
    return types.CallToolResult(content=[])

async def main():
    server = Server("minimal", on_list_tools=tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "a host", "version": "1"},
}
MESSAGES: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "find", "arguments": {"want": ""}},
    },
]


def processor_s(command: Sequence[str], folder: str, last: int) -> float:
    """Return the seconds of user and system of a process until the answer with the id `last`."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environment(folder)
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for message in MESSAGES:
        if message.get("id", 0) <= last:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
    while json.loads(process.stdout.readline()).get("id") != last:
        pass
    process.kill()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdin.close()
    process.stdout.close()
    return used.ru_utime + used.ru_stime


def environment(folder: str) -> dict[str, str]:
    """Return an environment in which nothing is installed, and modules are compiled once."""
    kept = {x: y for x, y in os.environ.items() if x not in ("PYTHONDONTWRITEBYTECODE",)}
    return kept | {"XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}


def main(runs: str = str(RUNS)) -> None:
    """Print a table; the ratio is to the minimal server of the same run."""
    capdex = (sys.executable, "-m", "capdex")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "index.db").touch()
        (Path(folder) / "minimal.py").write_text(MINIMAL)
        rows: dict[str, tuple[tuple[str, ...], int]] = {
            "minimal server of the SDK: tools": ((sys.executable, "minimal.py"), 1),
            "capdex router: tools": ((*capdex, "router"), 1),
            "capdex mcp: tools": ((*capdex, "mcp", "--db", "sqlite:///index.db"), 1),
            "minimal server of the SDK: first call": ((sys.executable, "minimal.py"), 2),
            "capdex router: first call": ((*capdex, "router"), 2),
        }
        found: dict[str, list[float]] = {title: [] for title in rows}
        for _ in range(int(runs) + 1):  # the first run compiles modules
            for title, (command, last) in rows.items():
                found[title].append(processor_s(command, folder, last))
    medians = {title: statistics.median(times[1:]) for title, times in found.items()}
    unit = medians["minimal server of the SDK: tools"]
    print(f"{os.cpu_count()} CPUs, median of {runs} runs, seconds of processor time")
    for title, median in medians.items():
        print(f"{title:40}{median:8.3f}{median / unit:8.2f}x", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
