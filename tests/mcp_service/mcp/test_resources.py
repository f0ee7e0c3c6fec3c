"""Releases as MCP resources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import mcp
import pytest
from mcp.shared.exceptions import MCPError

from capdex.errors import InvalidInput
from capdex_service.mcp.resources import ResourceUri

ERAS = ("auto", "legacy")


@pytest.mark.parametrize(
    ("text", "cap_uri"),
    [
        ("capdex://note", "did:nuwa:cap:note"),
        ("capdex://note/latest/package", "did:nuwa:cap:note"),
        ("capdex://note/1.0.0-rc.1/schema", "did:nuwa:cap:note@1.0.0-rc.1"),
    ],
)
def test_a_uri_names_a_release(text: str, cap_uri: str) -> None:
    assert ResourceUri.parse(text).cap_uri == cap_uri


@pytest.mark.parametrize(
    "text",
    [
        *("", "note", "capdex:note", "capdex://", "capdex://note/", "capdex://Note"),
        *("capdex://note/latest", "capdex://note/latest/other", "capdex://note/^1/package"),
        *("capdex://note/1.0/package", "capdex://note/latest/package/x", "file:///etc/passwd"),
        *("capdex://note/../package", "capdex://n%6fte", "capdex://" + "n" * 65, "c" * 10_000),
    ],
)
def test_anything_else_is_no_resource(text: str) -> None:
    with pytest.raises(InvalidInput):
        ResourceUri.parse(text)


@pytest.mark.parametrize("era", ERAS)
async def test_the_parts_of_a_release_are_read(
    era: str, growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    making = growing.making
    growing.publish("note", "1.0.0", tools=[making.tool("add", text="what")], prompt="Say {{x}}.")
    growing.publish("note", "1.1.0", prompt="Say it.")
    growing.follow()
    packages = {hashlib.sha256(x).hexdigest(): x for x in growing.chain.packages.values()}
    async with client_of(mode=era) as client:
        content = {}
        for part in ("package", "prompt", "tools", "schema"):
            (resource,) = (await client.read_resource(f"capdex://note/1.0.0/{part}")).contents
            content[part] = resource
        (latest,) = (await client.read_resource("capdex://note/latest/prompt")).contents
        (answer,) = (await client.read_resource("capdex://note")).contents
    assert latest.text == "Say it."
    assert json.loads(answer.text)["semver"] == "1.1.0"
    package = content["package"]
    assert package.mime_type == "application/yaml"
    assert package.meta is not None
    assert package.text.encode() == packages[package.meta["capdex/sha256"]]
    assert package.meta["capdex/cap_uri"] == "did:nuwa:cap:note@1.0.0"
    assert package.meta["capdex/verdict"] == "verified"
    assert content["prompt"].text == "Say {{x}}."
    tools = json.loads(content["tools"].text)
    assert [x["function"]["name"] for x in tools["tools"]] == ["add"]
    assert tools["tool_bindings"]["add"]["type"] == "http_get"
    assert json.loads(content["schema"].text)["$id"] == "did:nuwa:state:note#v1"


@pytest.mark.parametrize(("era", "code"), [("auto", -32602), ("legacy", -32002)])
async def test_what_is_not_there_has_the_error_of_its_revision(
    era: str, code: int, growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    growing.publish("mute", prompt=None)
    growing.publish("gone")
    growing.chain.mine(growing.making.yanked("gone"))
    growing.publish("loose", bound=False)
    growing.follow()
    expected = {
        "capdex://absent": "NOT_FOUND",
        "capdex://mute/2.0.0/package": "NOT_FOUND",
        "capdex://mute/latest/prompt": "NOT_FOUND",
        "capdex://gone/latest/package": "YANKED",
        "capdex://loose/latest/package": "UNVERIFIED",
        "file:///etc/passwd": "NOT_FOUND",
    }
    async with client_of(mode=era) as client:
        for uri, reason in expected.items():
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            error = refused.value.error
            assert (error.code, error.data["code"], error.data["uri"]) == (code, reason, uri)
            assert error.message.startswith(reason)
        with pytest.raises(MCPError) as refused:
            await client.read_resource("capdex://NOT-A-NAME")
        assert refused.value.error.code == -32602


@pytest.mark.parametrize("era", ERAS)
async def test_a_package_that_the_node_lacks_is_a_fault_that_may_pass(
    era: str, growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    growing.publish("note")
    growing.making.follow(growing.store, growing.chain)
    async with client_of(mode=era) as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource("capdex://note/1.0.0/package")
        assert (await client.read_resource("capdex://note")).contents
    error = refused.value.error
    assert (error.code, error.data["code"], error.data["retryable"]) == (-32603, "PENDING", True)


@pytest.mark.parametrize("era", ERAS)
async def test_the_list_does_not_grow_with_the_registry(
    era: str, growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    growing.publish("note")
    growing.publish("weather")
    growing.follow()
    async with client_of(mode=era) as client:
        (listed,) = (await client.list_resources()).resources
        assert listed.uri == "capdex://registry/changes"
        assert (await client.read_resource("capdex://weather/latest/package")).contents


@pytest.mark.parametrize("era", ERAS)
async def test_the_newest_changes_are_read(
    era: str, growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    for name in ("first", "second", "third"):
        growing.publish(name)
        growing.follow()
    growing.chain.mine(growing.making.yanked("first"))
    growing.follow()
    async with client_of(mode=era) as client:
        (content,) = (await client.read_resource("capdex://registry/changes")).contents
    found = json.loads(content.text)
    assert [(x["name"], x["deleted"]) for x in found["changes"]] == [
        *(("first", True), ("third", False), ("second", False)),
    ]
    assert found["revision"] >= found["changes"][0]["revision"]


@pytest.mark.parametrize("era", ERAS)
async def test_the_templates_give_resources(
    era: str, growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    growing.publish("note")
    growing.follow()
    async with client_of(mode=era) as client:
        templates = (await client.list_resource_templates()).resource_templates
        for template in templates:
            uri = template.uri_template.replace("{name}", "note").replace("{version}", "1.0.0")
            (found,) = (await client.read_resource(uri)).contents
            assert found.mime_type == template.mime_type
    assert len(templates) == 6


async def test_the_files_of_a_package_are_a_resource_and_named_to_a_model(
    growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    files = {f"{i}.md": b"A" for i in range(10)}
    growing.publish("note", files=files)
    growing.publish("bare")
    growing.follow()
    rows = [growing.making.file_row(path, data) for path, data in files.items()]
    async with client_of() as client:
        (found,) = (await client.read_resource("capdex://note/1.0.0/files")).contents
        assert json.loads(found.text) == rows
        (none,) = (await client.read_resource("capdex://bare/1.0.0/files")).contents
        assert json.loads(none.text) == []
        brief = await client.call_tool("get_capability", {"cap_uri": "did:nuwa:cap:note"})
        shown = [*list(files)[:8], "and 2 more"]
        assert brief.structured_content["files"] == shown
        assert f"files, on IPFS: {', '.join(shown)}" in brief.content[0].text
        asked = {"cap_uri": "did:nuwa:cap:note", "detail": "full"}
        full = await client.call_tool("get_capability", asked)
        assert full.structured_content["files"] == rows
        bare = await client.call_tool("get_capability", {"cap_uri": "did:nuwa:cap:bare"})
        assert "files" not in bare.structured_content
