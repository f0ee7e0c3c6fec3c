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

# From connecting to the tools of the package being known. A structure has names of members, and a
# CID of each of ten hits.
BUDGET_TOKENS = {"text": 1200, "structure": 2000}


@dataclass
class Model:
    """A model by script: sees what its host hands on, and makes the call that it says is next."""

    wish: str
    seen: list[str] = field(default_factory=list)

    def next_call(self) -> tuple[str, dict[str, Any]] | None:
        """Return the tool to call and its arguments; None once the tools of a package are known."""
        if self.tools():
            return None
        last = self.seen[-1]
        said = json.loads(last)["next"] if last.startswith("{") else last.rpartition("next: ")[2]
        tool, _, arguments = said.partition(" ")
        if not arguments.startswith("{"):
            return "search_capabilities", {"query_string": self.wish}
        return tool, json.loads(arguments)

    def tools(self) -> list[str]:
        """Return the tools of the package that was fetched."""
        if self.seen[-1].startswith("{"):
            return [str(x).partition("(")[0] for x in json.loads(self.seen[-1]).get("tools", ())]
        return re.findall(r"^- ([\w.-]+)\(", self.seen[-1], re.MULTILINE)


@pytest.mark.parametrize("handed", ["text", "structure"])
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
    path: str,
    wish: str,
    tools: set[str],
    handed: str,
    examples_url: str,
    count_tokens: Callable[[str], int],
) -> None:
    model, calls = Model(wish), []
    async with mcp.Client(examples_url + path) as client:
        for tool in (await client.list_tools()).tools:
            schema = json.dumps(tool.input_schema, separators=(",", ":"))
            model.seen.append(f"{tool.name}\n{tool.description}\n{schema}")
        model.seen.append(client.instructions or "")
        while (call := model.next_call()) is not None:
            answer: Any = await client.call_tool(*call)
            assert not answer.is_error
            calls.append(call)
            structure = json.dumps(answer.structured_content, ensure_ascii=False)
            model.seen.append(structure if handed == "structure" else answer.content[0].text)
            assert len(calls) < 3
        assert [name for name, _ in calls] == ["search_capabilities", "get_capability"]
        assert tools <= set(model.tools())
        spent = sum(map(count_tokens, [*model.seen, *(json.dumps(given) for _, given in calls)]))
        assert spent <= BUDGET_TOKENS[handed]

        # What the host installs comes with the same call, whole.
        whole: Any = await client.call_tool(calls[-1][0], calls[-1][1] | {"detail": "full"})
    package = whole.structured_content
    assert hashlib.sha256(package["package"].encode()).hexdigest() == package["sha256"]
    assert {x["function"]["name"] for x in package["tools"]} == set(model.tools())
    assert {"prompt", "schema", "tool_bindings", "ipfs_cid", "verification"} <= package.keys()
