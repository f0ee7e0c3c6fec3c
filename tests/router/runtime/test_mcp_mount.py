"""A foreign MCP server: its tools take the same pipeline, and what it asks for is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from capdex.errors import Code, Unavailable
from router.runtime.mcp_mount import mounted
from tests.router.runtime.conftest import Person, Runtime

SERVER = StdioServerParameters(
    command=sys.executable, args=[str(Path(__file__).with_name("foreign.py"))]
)


async def test_its_tools_are_capabilities_with_the_whole_pipeline(
    runtime: Callable[..., Runtime],
) -> None:
    async with mounted("foreign", SERVER) as source:
        tools = [source.load(listed.ref) for listed in source.listed()]
        run = runtime(*tools)
        person = Person()

        async def call(name: str, given: Any) -> Any:
            return await run.call(f"mcp:foreign#{name}", given, person)

        assert (await call("read", {"a": 1}))["output"] == {"text": "read {'a': 1}"}
        assert (await call("read", {"a": 2}))["ok"]
        assert len(person.asked) == 1
        assert (await call("read", {"a": "x"}))["error"]["code"] == "INVALID_INPUT"
        assert (await call("wipe", {"a": 1}))["ok"]
        assert (await call("wipe", {"a": 1}))["ok"]
        assert len(person.asked) == 3  # each call that may destroy something
        assert (await call("fail", {"a": 1}))["error"]["code"] == "EXECUTION_FAILED"
        assert (await call("asks", {"a": 1}))["error"]["code"] == "PERMISSION_DENIED"
    assert {tool.ref.version for tool in tools} == {"3.1.0"}
    assert len({tool.owner.digest for tool in tools}) == 4


async def test_a_server_that_does_not_start_is_unavailable() -> None:
    with pytest.raises(Unavailable) as refused:
        async with mounted("none", StdioServerParameters(command="/nonexistent")):
            pass
    assert refused.value.code == Code.NODE_UNAVAILABLE
