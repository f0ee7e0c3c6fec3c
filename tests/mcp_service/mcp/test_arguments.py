"""Arguments as frameworks send them: null, the default and an absent one have the same answer."""

from __future__ import annotations

from typing import Any

import mcp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capdex_indexer.query.search.filters import FILTER_NAMES, OTHERS
from capdex_service.mcp.calls import call
from capdex_service.mcp.server import build_server
from capdex_service.mcp.tools import TOOLS
from capdex_service.queries.reader import Reader

GIVEN: dict[str, dict[str, Any]] = {
    "resolve_capability": {"cap_uri": "did:nuwa:cap:guide"},
    "search_capabilities": {"query_string": "place"},
    "route_message": {"message": "where is Oslo?"},
    "get_capability": {"cap_uri": "did:nuwa:cap:guide"},
    "capability_list": {},
    "capability_describe": {"capability_id": "did:nuwa:cap:guide#ask"},
    "capability_browse": {"level": "domains"},
}
DEFAULTS: dict[str, Any] = {"proof": "none", "detail": "brief", "limit": 10, "include": []}
DEFAULTS |= {"filters": {}, "facets": []}
TRAVEL = {"domain": "travel"}
NOTHING: list[Any] = [
    *({key: ""} for key in (*FILTER_NAMES, *OTHERS)), {"tag": []}, {"not": {"tag": ""}},
    ["tag:"], ["not.tag:"], ["published_since:"],
]  # fmt: skip
OPTIONAL = [
    (tool, key)
    for tool, one in TOOLS.items()
    for key in one["inputSchema"]["properties"]
    if key not in GIVEN[tool]
]


def same_as_absent(tool: str, key: str) -> list[Any]:
    """Values that say what an absent argument says."""
    default = 5 if (tool, key) == ("route_message", "limit") else DEFAULTS.get(key)
    digits = [str(default), float(default)] if isinstance(default, int) else []
    return [None, "", default, *digits]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_null_the_default_and_an_absent_argument_have_the_same_answer(
    tools_reader: Reader, data: st.DataObject
) -> None:
    tool = data.draw(st.sampled_from(sorted(GIVEN)))
    keys = [key for of, key in OPTIONAL if of == tool]
    more = {
        key: data.draw(st.sampled_from(same_as_absent(tool, key)))
        for key in data.draw(st.lists(st.sampled_from(keys), unique=True))
    }
    plain = await call(tools_reader, tool, GIVEN[tool])
    assert await call(tools_reader, tool, GIVEN[tool] | more) == plain
    assert not plain.failed


@pytest.mark.parametrize(("tool", "key"), OPTIONAL)
async def test_null_is_an_absent_argument(tools_reader: Reader, tool: str, key: str) -> None:
    plain = await call(tools_reader, tool, GIVEN[tool])
    assert await call(tools_reader, tool, GIVEN[tool] | {key: None}) == plain


@pytest.mark.parametrize(
    ("tool", "one", "other"),
    [
        ("search_capabilities", {"filters": "domain:travel"}, {"filters": {"domain": "travel"}}),
        ("search_capabilities", {"facets": "domain"}, {"facets": ["domain"]}),
        ("search_capabilities", {"filters": {"tag": None}}, {}),
        ("search_capabilities", {"filters": '{"domain": "travel"}'}, {"filters": TRAVEL}),
        ("search_capabilities", {"filters": '["domain:travel"]'}, {"filters": TRAVEL}),
        ("search_capabilities", {"filters": ["domain: travel"]}, {"filters": TRAVEL}),
        (
            "search_capabilities",
            {"filters": [" not.tag : x ", "context_window: 8000"]},
            {"filters": {"not": {"tag": "x"}, "context_window": 8000}},
        ),
        ("search_capabilities", {"filters": "[]"}, {}),
        ("search_capabilities", {"facets": '["domain"]'}, {"facets": ["domain"]}),
        *(("search_capabilities", {"filters": filters}, {}) for filters in NOTHING),
        ("resolve_capability", {"include": '["tools"]'}, {"include": ["tools"]}),
        ("resolve_capability", {"include": "tools"}, {"include": ["tools", None]}),
        ("capability_list", {"limit": "2"}, {"limit": 2}),
        ("capability_list", {"kind": "Skill"}, {"kind": "skill"}),
        ("capability_browse", {"level": "Domains"}, {}),
        ("resolve_capability", {"detail": "Full", "proof": "NONE"}, {"detail": "full"}),
        ("resolve_capability", {"include": "tools,prompt"}, {"include": ["tools", "prompt"]}),
        ("search_capabilities", {"facets": "domain, kind"}, {"facets": ["domain", "kind"]}),
        (
            "search_capabilities",
            {"filters": "domain:travel, has_prompt:True"},
            {"filters": ["domain:travel", "has_prompt:true"]},
        ),
    ],
    ids=str,
)
async def test_values_whose_meaning_is_beyond_doubt_are_read(
    tools_reader: Reader, tool: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    first = await call(tools_reader, tool, GIVEN[tool] | one)
    assert not first.failed
    assert first == await call(tools_reader, tool, GIVEN[tool] | other)


async def test_the_thin_front_and_the_sdk_read_them_alike(tools_url: str) -> None:
    asked = GIVEN["resolve_capability"] | {"include": None, "proof": None, "proof_block": None}
    for mode in ("auto", "legacy"):
        async with mcp.Client(f"{tools_url}/mcp", mode=mode) as client:
            assert not (await client.call_tool("resolve_capability", asked)).is_error


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("resolve_capability", {}),
        ("resolve_capability", {"include": ["tools"]}),
        ("resolve_capability", {"detail": "full"}),
        ("get_capability", {"detail": "full"}),
        ("search_capabilities", {"detail": "full"}),
        ("route_message", {"detail": "full"}),
    ],
    ids=str,
)
async def test_the_whole_answer_comes_on_request_alone(
    tools_reader: Reader, tool: str, arguments: dict[str, Any]
) -> None:
    async with mcp.Client(build_server(tools_reader)) as client:
        found = (await client.call_tool(tool, GIVEN[tool] | arguments)).structured_content
    assert found is not None
    release = found["list_of_results"][0] if "list_of_results" in found else found
    whole = {"sha256", "chain", "first_claimed_by"}
    assert whole & release.keys() == (whole if arguments else set())
    assert {"acp_metadata", "ipfs_cid", "verification"} <= release.keys()
    assert ("as_of" in found) is bool(arguments)
    assert ("next" in found) is not bool(arguments)
