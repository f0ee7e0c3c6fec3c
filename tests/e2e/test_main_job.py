"""The main job: from a new account to a package that every kind of client finds and verifies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

REPOSITORY = Path(__file__).resolve().parents[2]
INSPECTOR = REPOSITORY / "node_modules" / ".bin" / "mcp-inspector"
ERAS = ("legacy", "2026-07-28")  # the handshake, and the stateless revision
TOOLS = {
    *("resolve_capability", "search_capabilities", "route_message", "get_capability"),
    *("capability_list", "capability_describe", "capability_browse"),
}
NAME = "weather"
Answer = tuple[bool, dict[str, Any]]


async def over_mcp(target: Any, tool: str, mode: str = "auto", **arguments: Any) -> Answer:
    """Whether a tool failed, and its whole answer; the tools listed are always the same."""
    async with Client(target, mode=mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        result = await client.call_tool(tool, {"detail": "full"} | arguments)
    assert isinstance(result.structured_content, dict)
    (text,) = result.content
    named = result.structured_content.get("code", NAME)  # the text is for a model, in few words
    assert named in text.text or "No capability" in text.text
    return bool(result.is_error), result.structured_content


# The status of a release that nobody said anything against.
STANDING = {
    "yanked": False,
    "yank_reason": None,
    "deprecated": False,
    "deprecation_message": None,
    "name_deprecated": False,
    "name_message": None,
    "replaced_by": None,
}


def inspector(url: str, *args: str, home: Path) -> Any:
    """What the MCP Inspector's command line prints."""
    node = shutil.which("node", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    if node is None or not INSPECTOR.exists():
        pytest.fail("the MCP Inspector is missing: run `make dev`", pytrace=False)
    done = subprocess.run(
        [node, str(INSPECTOR), "--cli", url, "--transport", "http", *args],
        env={**os.environ, "HOME": str(home)},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


async def test_a_published_package_is_found_verified_and_fetched_by_every_client(
    shell: Any, begin: Callable[..., Any], kubo: Any, http: Callable[..., Any], database_url: str
) -> None:
    author = begin(shell, kubo.api)
    node, url = author.start_node(database_url)
    path = author.write(NAME, description="Tells the weather of a city.")

    done = shell.json("publish", path.name, "--yes")
    published, cid, cap_uri = path.read_bytes(), done["cid"], f"did:nuwa:cap:{NAME}@0.1.0"
    assert (done["cap_uri"], done["already"]) == (cap_uri, False)
    assert done["served_after_s"] is not None, "publish waits until its node serves it"

    # the bytes: at Kubo as one raw block, at the node's gateway, and through `get`
    block = http(f"{kubo.api}/api/v0/block/get?arg={cid}", b"")
    assert block == (200, published)
    assert http(f"{url}/ipfs/{cid}?format=raw") == (200, published)
    got = shell.json("get", NAME, "--output", "copy.acp.yaml")
    assert (shell / "copy.acp.yaml").read_bytes() == published
    assert (got["verdict"], got["cid"]) == ("verified", cid)
    assert got["signer"].partition("#")[0] == author.did

    # resolve and search, over both eras of MCP, over stdio, and by the Inspector
    stdio = StdioServerParameters(
        command=sys.executable,
        args=["-m", "capdex", "mcp", "--db", database_url],
        env={"CAPDEX_HOME": str(shell / "home")},
    )
    clients = [(f"{url}/mcp", mode) for mode in ERAS] + [(stdio_client(stdio), "auto")]
    asked = {"query_string": "what is the weather in a city", "filters": {"author": author.did}}
    for target, mode in clients[:2]:
        failed, answer = await over_mcp(target, "resolve_capability", mode, cap_uri=cap_uri)
        assert not failed
        assert_is_the_release(answer, author, done)
        failed, results = await over_mcp(target, "search_capabilities", mode, **asked)
        assert not failed
        assert [x["cap_uri"] for x in results["list_of_results"]] == [cap_uri]
        assert_is_the_release(results["list_of_results"][0], author, done)
    failed, answer = await over_mcp(clients[2][0], "resolve_capability", cap_uri=cap_uri)
    assert not failed
    assert_is_the_release(answer, author, done)

    listed = inspector(f"{url}/mcp", "--method", "tools/list", home=shell.folder)
    assert {tool["name"] for tool in listed["tools"]} == TOOLS
    called = ("--method", "tools/call", "--tool-name", "resolve_capability")
    given = ("--tool-arg", f"cap_uri=did:nuwa:cap:{NAME}", "--tool-arg", "detail=full")
    answer = inspector(f"{url}/mcp", *called, *given, home=shell.folder)
    assert_is_the_release(answer["structuredContent"], author, done)

    assert node.stop() == 130


def assert_is_the_release(found: dict[str, Any], author: Any, done: dict[str, Any]) -> None:
    assert found["cap_uri"] == done["cap_uri"]
    assert (found["ipfs_cid"], found["sha256"]) == (done["cid"], done["sha256"])
    assert found["verification"]["verdict"] == "verified"
    assert found["verification"]["signer"].partition("#")[0] == author.did
    assert found["acp_metadata"]["id"] == done["cap_uri"]
    assert found["chain"]["contract"] == author.registry
    assert found["chain"]["publisher"] == author.address
    assert found["chain"]["tx_hash"] == done["tx_hash"]
    assert found["chain"]["block_number"] == done["block_number"]
    assert found["status"] == STANDING
    assert found["warnings"] == []


async def test_a_yanked_release_leaves_latest_and_search_and_comes_back(
    shell: Any, begin: Callable[..., Any], kubo: Any, database_url: str
) -> None:
    author = begin(shell, kubo.api)
    _, url = author.start_node(database_url)
    mcp, old, new = f"{url}/mcp", f"did:nuwa:cap:{NAME}@0.1.0", f"did:nuwa:cap:{NAME}@0.2.0"
    path = author.write(NAME)
    first = path.read_text("utf-8")
    shell("publish", path.name, "--yes")
    path.write_text(first.replace("@0.1.0", "@0.2.0"), "utf-8")
    shell("publish", path.name, "--yes")

    async def latest() -> Any:
        _, found = await over_mcp(mcp, "resolve_capability", cap_uri=f"did:nuwa:cap:{NAME}")
        _, results = await over_mcp(mcp, "search_capabilities", query_string=NAME)
        hits = [x["cap_uri"] for x in results["list_of_results"]]
        return found.get("cap_uri", found.get("code")), hits

    assert await latest() == (new, [new])
    shell("yank", f"{NAME}@0.2.0", "--reason", "it invents sunshine", "--yes")
    assert await latest() == (old, [old])
    failed, exact = await over_mcp(mcp, "resolve_capability", cap_uri=new)
    assert not failed
    assert exact["status"] == STANDING | {"yanked": True, "yank_reason": "it invents sunshine"}
    assert any("yanked" in warning for warning in exact["warnings"])
    got = shell("get", f"{NAME}@0.2.0", "--output", "yanked.acp.yaml")
    assert "yanked" in got.stderr
    assert (shell / "yanked.acp.yaml").read_bytes() == path.read_bytes()

    shell("yank", f"{NAME}@0.1.0", "--yes")
    assert await latest() == ("YANKED", [])
    shell("unyank", f"{NAME}@0.2.0", "--yes")
    assert await latest() == (new, [new])
    _, exact = await over_mcp(mcp, "resolve_capability", cap_uri=new)
    assert (exact["status"], exact["warnings"]) == (STANDING, [])
