"""An agent with a scripted model: from a wish to a package at hand, within a context budget."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mcp
import pytest

BUDGET_TOKENS = 1200  # from connecting to the tools of the package being known


@dataclass
class Model:
    """A model by script: sees texts alone, and decides on the next call by what they say."""

    wish: str
    seen: list[str] = field(default_factory=list)

    def next_call(self) -> tuple[str, dict[str, Any]] | None:
        """Return the tool to call and its arguments; None once the tools of a package are known."""
        if self.tools():
            return None
        hit = re.search(r"^([a-z0-9-]+) \S+ \[verified\]", self.seen[-1], re.MULTILINE)
        if hit is None:
            return "search_capabilities", {"query_string": self.wish}
        return "get_capability", {"cap_uri": f"did:nuwa:cap:{hit[1]}"}

    def tools(self) -> list[str]:
        """Return the tools of the package that was fetched, as its text lists them."""
        return re.findall(r"^- ([\w.-]+)\(", self.seen[-1], re.MULTILINE)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/minimal"])
@pytest.mark.parametrize(
    ("wish", "tools"),
    [
        ("how warm is it in a city now", {"find_place", "get_forecast"}),
        ("when is the next public holiday", {"list_next_holidays"}),
        ("how many dollars is that in yen", {"get_rate"}),
        ("save a note about a web page", {"state.create", "fetch_web_content"}),
    ],
)
async def test_an_agent_finds_a_package_by_a_wish_and_knows_its_tools_within_its_budget(
    path: str, wish: str, tools: set[str], examples_url: str, count_tokens: Callable[[str], int]
) -> None:
    model, calls = Model(wish), []
    async with mcp.Client(examples_url + path) as client:
        model.seen.append(client.instructions or "")
        for tool in (await client.list_tools()).tools:
            schema = json.dumps(tool.input_schema, separators=(",", ":"))
            model.seen.append(f"{tool.name}\n{tool.description}\n{schema}")
        while (call := model.next_call()) is not None:
            answer: Any = await client.call_tool(*call)
            assert not answer.is_error
            calls.append((call[0], json.dumps(call[1]), answer.structured_content))
            model.seen.append(answer.content[0].text)
            assert len(calls) < 3
    assert [name for name, *_ in calls] == ["search_capabilities", "get_capability"]
    assert tools <= set(model.tools())
    spent = sum(map(count_tokens, [*model.seen, *(given for _, given, _ in calls)]))
    assert spent <= BUDGET_TOKENS

    package = calls[-1][2]
    if path == "/mcp/minimal":  # for hosts that hand the structure to the model, not the text
        assert all(structure is None for *_, structure in calls)
        return
    # What the host installs came with the same answer, whole.
    assert hashlib.sha256(package["package"].encode()).hexdigest() == package["sha256"]
    assert {x["function"]["name"] for x in package["tools"]} == set(model.tools())
    assert {"prompt", "schema", "tool_bindings", "ipfs_cid", "verification"} <= package.keys()
