"""The MCP Inspector's command line: lists and calls every tool, over HTTP and stdio."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from .calls import CALLS

pytestmark = pytest.mark.real

INSPECTOR = Path(__file__).parents[3] / "node_modules" / ".bin" / "mcp-inspector"
Inspect = Callable[..., Awaitable[tuple[int, Any, str]]]


@pytest.fixture(params=["http", "stdio"])
def over(request: pytest.FixtureRequest) -> str:
    """The transports."""
    return str(request.param)


@pytest.fixture
def inspect(
    over: str,
    node_binary: str,
    node_url: str,
    stdio: tuple[str, ...],
    tmp_path: Path,
) -> Inspect:
    """Run one method; its exit code, the JSON that it prints and its stderr."""
    target = (f"{node_url}/mcp", "--transport", "http") if over == "http" else stdio

    async def inspect(*args: str) -> tuple[int, Any, str]:
        process = await asyncio.create_subprocess_exec(
            # Its own limit of 15 s is too short for a node that starts while all tests run.
            *(node_binary, str(INSPECTOR), "--cli", *target, "--connect-timeout", "60000", *args),
            env={**os.environ, "HOME": str(tmp_path)},
            cwd=tmp_path,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 120)
        code = process.returncode
        assert code is not None
        return code, json.loads(out) if out.strip() else None, err.decode()

    return inspect


async def test_the_inspector_finds_nothing_wrong_with_the_tools_and_calls_each(
    over: str, inspect: Inspect
) -> None:
    code, listed, errors = await inspect("--method", "tools/list", "--strict")
    assert (code, errors) == (0, "")
    assert {tool["name"] for tool in listed["tools"]} == set(CALLS)
    for tool, (given, word) in CALLS.items():
        if over == "stdio" and tool != "resolve_capability":
            continue  # it starts a server anew for each call, and one shows that calls arrive
        pairs = [f"{key}={_argument(value)}" for key, value in given.items()]
        call = ["--method", "tools/call", "--tool-name", tool]
        for pair in pairs:
            call += "--tool-arg", pair
        code, answer, errors = await inspect(*call)
        if answer and answer["isError"] and answer["structuredContent"]["code"] == "PENDING":
            code, answer, errors = await inspect(*call)  # it starts anew with each call
        assert (code, errors) == (0, ""), answer
        assert word in answer["content"][0]["text"]


async def test_the_inspector_shows_the_message_of_an_error(inspect: Inspect) -> None:
    call = ("--method", "tools/call", "--tool-name", "resolve_capability")
    _, answer, _ = await inspect(*call, "--tool-arg", "cap_uri=did:nuwa:cap:nothing-like-it")
    assert answer["isError"]
    assert "NOT_FOUND" in answer["content"][0]["text"]


def _argument(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
