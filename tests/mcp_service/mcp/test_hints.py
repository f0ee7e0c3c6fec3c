"""What an error of a call says to write instead, to a model that has read no page of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp
import pytest

from capdex_service.mcp.calls import EXAMPLES
from capdex_service.mcp.tools import TOOLS

ClientOf = Callable[..., mcp.Client]


async def fix_of(client: mcp.Client, tool: str, **arguments: Any) -> str:
    """The `fix` of a call that must fail, which the text for a model has as well."""
    result: Any = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    fix: str = result.structured_content["details"]["fix"]
    assert fix[:40] in result.content[0].text
    return fix


def said_of(result: Any) -> str:
    """The text of a result."""
    text: str = result.content[0].text
    return text


@pytest.mark.parametrize(
    ("key", "value"),
    [("limit", 5), ("cursor", "x"), ("detail", "full"), ("facets", []), ("query_string", "x")],
)
async def test_an_argument_among_the_filters_is_told_its_place(
    client_of: ClientOf, key: str, value: Any
) -> None:
    async with client_of() as client:
        given = {"query_string": "rain", "filters": {key: value}}
        fix = await fix_of(client, "search_capabilities", **given)
        assert fix.startswith('write {"query_string": "…", "filters": […], ')
        assert f'"{key}": ' in fix


@pytest.mark.parametrize("tool", ["resolve_capability", "get_capability"])
@pytest.mark.parametrize("name", ["weather", "weather@^1.2"])
async def test_a_bare_name_is_answered_with_the_uri(
    client_of: ClientOf, tool: str, name: str
) -> None:
    async with client_of() as client:
        assert await fix_of(client, tool, cap_uri=name) == f"write did:nuwa:cap:{name}"
        assert "<name>" in await fix_of(client, tool, cap_uri="Not a name!")
        for near in (f" {name}", f"capdex://{name}", f"DID:NUWA:CAP:{name.upper()}"):
            assert await fix_of(client, tool, cap_uri=near) == f"write did:nuwa:cap:{name}"


@pytest.mark.parametrize(
    ("tool", "key"),
    [
        (name, key)
        for name, tool in TOOLS.items()
        for key in tool["inputSchema"].get("required", ())
    ],
)
async def test_a_missing_argument_is_answered_with_an_example_that_works(
    client_of: ClientOf, tool: str, key: str
) -> None:
    async with client_of() as client:
        assert f'for example {{"{key}":' in await fix_of(client, tool)
        result: Any = await client.call_tool(tool, EXAMPLES[tool])
        if result.is_error:  # the growing registry need not have such a name
            assert result.structured_content["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("tool", "given", "came"),
    [
        ("search_capabilities", {"query": "rain", "n": 3}, "it has query, n"),
        ("search_capabilities", {}, "it has none"),
        ("search_capabilities", {"query_string": "rain", "limit": "many"}, "it is 'many'"),
        ("search_capabilities", {"query_string": ["rain"]}, "it is a list"),
        ("search_capabilities", {"query_string": "rain", "facets": ["colour"]}, "it is 'colour'"),
        ("resolve_capability", {"cap_uri": "did:nuwa:cap:guide", "include": ["x"]}, "it is 'x'"),
        ("resolve_capability", {"cap_uri": "did:nuwa:cap:guide", "proof": True}, "it is true"),
        ("resolve_capability", {"cap_uri": "did:nuwa:cap:guide", "detail": "all"}, "it is 'all'"),
        ("capability_list", {"kind": 5}, "it is 5"),
        ("capability_browse", {"level": 1}, "it is 1"),
    ],
)
async def test_an_error_says_what_came_and_what_to_give(
    client_of: ClientOf, tool: str, given: dict[str, Any], came: str
) -> None:
    async with client_of() as client:
        assert await fix_of(client, tool, **given)
        assert f"; {came}; " in said_of(await client.call_tool(tool, given))


@pytest.mark.parametrize(
    ("tool", "given", "fix"),
    [
        ("capability_browse", {"level": "manifests"}, "the level domains lists them"),
        ("capability_browse", {"level": "schema"}, "the level manifests lists them"),
        ("route_message", {"message": " "}, "give what the user said"),
        ("resolve_capability", {"cap_uri": "did:nuwa:cap:guide@latest"}, "leave it out"),
    ],
)
async def test_an_error_says_where_the_right_value_is_found(
    client_of: ClientOf, tool: str, given: dict[str, Any], fix: str
) -> None:
    async with client_of() as client:
        assert fix in await fix_of(client, tool, **given)


async def test_no_match_of_a_message_speaks_of_no_filters_that_were_given(
    client_of: ClientOf,
) -> None:
    async with client_of() as client:
        found: Any = await client.call_tool("route_message", {"message": "qwertyzxcv"})
    assert "fewer filters if you gave any" in said_of(found)
