"""What the two tools answer, and how they refuse; over the SDK's own client, in memory.

The golden listing is written anew with CAPDEX_GOLDEN=write in the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import mcp
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from capdex.problems import Verdict
from capdex.profiles import cap
from capdex.search.query import MAX_QUERY_CHARS
from capdex_indexer.query.index import Index
from capdex_indexer.query.search.filters import FILTER_NAMES, OTHERS
from capdex_indexer.store import Store
from capdex_service.answers.cmp import LEVELS
from capdex_service.answers.hit_schemas import RESULTS_SCHEMA
from capdex_service.answers.schemas import RESOLUTION_SCHEMA
from capdex_service.mcp import calls, tools
from capdex_service.mcp.server import build_server
from capdex_service.queries.proofs import PROOF_KINDS
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import INCLUDES, name_page
from capdex_service.queries.search import MAX_REPLY_BYTES

FREE = {
    "yanked": False,
    "yank_reason": None,
    "deprecated": False,
    "deprecation_message": None,
    "name_deprecated": False,
    "name_message": None,
    "replaced_by": None,
}
GOLDEN = Path(__file__).parent / "golden" / "tools.json"
WRITE = os.environ.get("CAPDEX_GOLDEN") == "write"  # before fixtures clean the environment
HOSTILE = Path(__file__).parents[2] / "vectors" / "search" / "hostile_queries.json"
EVERYTHING = ["copy", "note", "pushy", "weather", *(f"large-{i}" for i in range(8))]
SCHEMAS = {"resolve_capability": RESOLUTION_SCHEMA, "search_capabilities": RESULTS_SCHEMA}
BAD_SIGNATURE = {"verdict": "invalid", "reason": "BAD_SIGNATURE"}
VERIFIED = frozenset({Verdict.VERIFIED})


async def call(client: mcp.Client, tool: str, **arguments: Any) -> Any:
    """The whole structured answer of a call that must succeed."""
    result: Any = await client.call_tool(tool, {"detail": "full"} | arguments)
    assert not result.is_error, result.structured_content
    Draft202012Validator(SCHEMAS[tool]).validate(result.structured_content)
    return result.structured_content


async def refusal(client: mcp.Client, tool: str, **arguments: Any) -> Any:
    """The structured error of a call that must fail."""
    result: Any = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    assert result.content[0].text.startswith(result.structured_content["code"])
    assert set(result.structured_content) == {"code", "message", "retryable", "details"}
    return result.structured_content


async def resolve(client: mcp.Client, rest: str) -> Any:
    return await call(client, "resolve_capability", cap_uri=f"did:nuwa:cap:{rest}")


async def search(client: mcp.Client, query: str = "", **more: Any) -> Any:
    return await call(client, "search_capabilities", query_string=query, **more)


def names(page: Any) -> list[str]:
    uris = [hit["cap_uri"] for hit in page["list_of_results"]]
    return [uri.removeprefix("did:nuwa:cap:").partition("@")[0] for uri in uris]


async def test_the_tools_are_listed_as_in_the_golden_file(connect: Any) -> None:
    async with connect() as client:
        listed = await client.list_tools()
    tools = [x.model_dump(mode="json", by_alias=True, exclude_none=True) for x in listed.tools]
    if WRITE:
        GOLDEN.write_text(json.dumps(tools, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert tools == json.loads(GOLDEN.read_text("utf-8"))


def test_the_schemas_are_json_schemas_and_have_the_values_that_the_queries_take() -> None:
    for tool in tools.TOOLS.values():
        Draft202012Validator.check_schema(tool["inputSchema"])
        assert "outputSchema" not in tool  # clients would check errors against it
    values = {x: tool["inputSchema"]["properties"] for x, tool in tools.TOOLS.items()}
    assert values[tools.RESOLVE]["include"]["items"]["enum"] == list(INCLUDES)
    assert values[tools.RESOLVE]["proof"]["enum"] == list(PROOF_KINDS)
    assert all(tool["detail"]["enum"] == ["full"] for tool in values.values())
    assert values[tools.LIST]["kind"]["enum"] == list(cap.KINDS)
    assert values[tools.BROWSE]["level"]["enum"] == list(LEVELS)
    filters = values[tools.SEARCH]["filters"]["description"]
    assert all(name in filters for name in (*FILTER_NAMES, *OTHERS))


def test_the_tools_are_known_without_the_sdk_and_the_index() -> None:
    code = "import sys, capdex_service.mcp.tools; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"mcp", "mcp_types", "sqlalchemy", "indexer"} & set(loaded.stdout.split())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_protocol_eras_give_the_same_answers(connect: Any, mode: str) -> None:
    async with connect(mode=mode) as client:
        assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
        assert client.instructions == tools.INSTRUCTIONS
        assert (await resolve(client, "note"))["semver"] == "1.1.0"
        assert names(await search(client, "notes")) == ["note"]


@pytest.mark.parametrize(
    ("rest", "version"),
    [
        ("note", "1.1.0"),
        ("note@1.0.0", "1.0.0"),
        ("note@2.0.0-rc.1", "2.0.0-rc.1"),
        ("note@^1", "1.1.0"),
        ("note@~1.0", "1.0.0"),  # 1.0.1 is yanked
        ("note@>=2.0.0-rc.0", "2.0.0-rc.1"),
        ("note@1.0.0 || 1.1.0", "1.1.0"),
    ],
)
async def test_a_uri_means_its_latest_exact_or_highest_release(
    connect: Any, rest: str, version: str
) -> None:
    async with connect() as client:
        found = await resolve(client, rest)
    assert found["semver"] == version
    assert found["cap_uri"] == found["acp_metadata"]["id"] == f"did:nuwa:cap:note@{version}"
    assert found["status"]["yanked"] is False


async def test_an_answer_says_how_to_check_it(connect: Any, making: Any) -> None:
    async with connect() as client:
        found = await resolve(client, "note")
    assert found["verification"]["verdict"] == "verified"
    assert found["verification"]["signer"] == making.AUTHOR
    assert found["verification"]["checks"]
    of_note = {"description": "Takes notes", "tags": ["text"]}
    package = yaml.safe_load(making.package_bytes("note", "1.1.0", **of_note))
    assert found["acp_metadata"] == package["metadata"]
    assert making.Cid.parse(found["ipfs_cid"]).digest.hex() == found["sha256"]
    assert found["chain"]["contract"] == making.DEPLOYMENT.registry
    assert found["chain"]["chain_id"] == making.CHAIN_ID
    assert found["chain"]["finality"] == "finalized"
    assert found["chain"]["block_number"] <= found["as_of"]["block_number"]


async def test_a_yanked_release_named_exactly_comes_with_a_warning(connect: Any) -> None:
    async with connect() as client:
        found = await resolve(client, "note@1.0.1")
    assert found["status"] == FREE | {"yanked": True, "yank_reason": "loses notes"}
    assert any("yanked" in warning for warning in found["warnings"])


async def test_what_is_deprecated_is_served_with_the_words_of_its_owner(connect: Any) -> None:
    async with connect() as client:
        note, newer, weather = [await resolve(client, x) for x in ("note@1.0.0", "note", "weather")]
        hits = (await search(client, "weather"))["list_of_results"]
    assert note["status"] == FREE | {"deprecated": True, "deprecation_message": "use 1.1.0"}
    assert note["warnings"] == ['this release is deprecated: "use 1.1.0"']
    assert (newer["status"], newer["warnings"]) == (FREE, [])
    assert weather["status"] == FREE | {
        "name_deprecated": True,
        "name_message": "the source closes",
        "replaced_by": "climate",
    }
    assert weather["warnings"] == [
        "weather is deprecated by its owner, who names did:nuwa:cap:climate in its place:"
        ' "the source closes"'
    ]
    assert (hits[0]["status"], hits[0]["warnings"]) == (weather["status"], weather["warnings"])


async def test_text_that_may_steer_a_model_is_labelled_with_one_warning(connect: Any) -> None:
    async with connect() as client:
        pushy, note = [await resolve(client, x) for x in ("pushy", "note")]
        hits = (await search(client, "pushy"))["list_of_results"]
    codes = ["LINT_HIDDEN_MARKDOWN", "LINT_OVERRIDE"]
    assert pushy["verification"]["lint"] == {"score": 85, "label": "high", "codes": codes}
    assert pushy["warnings"] == [
        "labelled high: text that tells a model to set earlier instructions aside "
        "(LINT_OVERRIDE, LINT_HIDDEN_MARKDOWN); capdex never calls a package safe"
    ]
    assert hits[0]["verification"] == pushy["verification"]
    assert hits[0]["warnings"] == pushy["warnings"]
    assert note["verification"]["lint"] == {"score": 0, "label": None, "codes": []}
    assert note["warnings"] == []


async def test_who_was_first_with_a_schema_or_a_memory_scope_is_told(connect: Any) -> None:
    async with connect() as client:
        copy, note = [await resolve(client, x) for x in ("copy", "note")]
    assert note["first_claimed_by"] == {"schema_uri": None, "memory_scope": None}
    assert copy["first_claimed_by"] == {"schema_uri": "note", "memory_scope": "pushy"}
    assert copy["warnings"] == [
        "schema did:nuwa:state:note was first used by did:nuwa:cap:note (release 1.0.0)",
        'memory_scope "sc:pushy" was first used by did:nuwa:cap:pushy (release 1.0.0)',
    ]


async def test_a_signed_release_is_served_only_by_those_who_choose_to(connect: Any) -> None:
    async with connect() as client:
        refused = await refusal(client, "resolve_capability", cap_uri="did:nuwa:cap:loose")
    assert (refused["code"], refused["details"]["verdict"]) == ("UNVERIFIED", "signed")
    async with connect(serve=frozenset({Verdict.VERIFIED, Verdict.SIGNED})) as client:
        verification = (await resolve(client, "loose"))["verification"]
    assert (verification["verdict"], verification["lint"]["score"]) == ("signed", 0)


@pytest.mark.parametrize(
    ("rest", "code", "retryable", "details"),
    [
        ("nobody", "NOT_FOUND", False, {"did_you_mean": []}),
        ("wether", "NOT_FOUND", False, {"did_you_mean": ["did:nuwa:cap:weather"]}),
        ("note@3.0.0", "NOT_FOUND", False, {"versions": ["1.1.0", "1.0.0", "2.0.0-rc.1", "1.0.1"]}),
        ("gone", "YANKED", False, {"why": 'the reason given: "broken"'}),
        ("forged", "UNVERIFIED", False, BAD_SIGNATURE),
        ("forged@1.0.0", "UNVERIFIED", False, BAD_SIGNATURE),
        ("soon", "PENDING", True, {"cap_uri": "did:nuwa:cap:soon@1.0.0"}),
        ("soon@1.0.0", "PENDING", True, {"cap_uri": "did:nuwa:cap:soon@1.0.0"}),
        ("Note", "INVALID_INPUT", False, {}),
        ("note@", "INVALID_INPUT", False, {}),
        ("note@one", "INVALID_INPUT", False, {}),
        ("note@1.0.0#x", "INVALID_INPUT", False, {}),
        ("\ud800", "INVALID_INPUT", False, {}),
        ("note@" + "1" * 10_000, "INVALID_INPUT", False, {}),
    ],
)
async def test_a_uri_that_cannot_be_answered_says_why(
    connect: Any, rest: str, code: str, retryable: bool, details: dict[str, Any]
) -> None:
    async with connect() as client:
        error = await refusal(client, "resolve_capability", cap_uri=f"did:nuwa:cap:{rest}")
    assert (error["code"], error["retryable"]) == (code, retryable)
    assert error["message"]
    assert error["details"] | details == error["details"]


@pytest.mark.parametrize("value", [None, 1, True, [], {}, ["did:nuwa:cap:note"]])
async def test_a_uri_that_is_no_text_is_refused(connect: Any, value: Any) -> None:
    async with connect() as client:
        error = await refusal(client, "resolve_capability", cap_uri=value)
        assert (await refusal(client, "resolve_capability"))["code"] == "INVALID_INPUT"
    assert (error["code"], error["retryable"]) == ("INVALID_INPUT", False)
    assert "cap_uri" in error["message"]


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("resolve_capability", {"cap_uri": "did:nuwa:cap:note", "cap_url": ""}, "cap_uri"),
        ("search_capabilities", {"query_string": "", "filter": {}}, "filters"),
        ("search_capabilities", {"query": "note"}, "query_string"),
        ("search_capabilities", {"query_string": "", "zzzz": 1}, "limit"),
    ],
)
async def test_an_unknown_argument_is_refused_with_a_hint(
    connect: Any, tool: str, arguments: dict[str, Any], hint: str
) -> None:
    async with connect() as client:
        error = await refusal(client, tool, **arguments)
    assert error["code"] == "INVALID_INPUT"
    assert hint in error["details"]["fix"]


async def test_an_unknown_tool_is_a_fault_of_the_protocol(connect: Any) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("publish_capability", {})
    assert raised.value.error.code == INVALID_PARAMS
    assert "search_capabilities" in raised.value.error.message


@pytest.mark.parametrize(
    ("query", "filters", "found"),
    [
        ("notes", {}, ["note"]),
        ("weather in my city", {}, ["weather"]),
        ("did:nuwa:cap:note@^1", {}, ["note"]),
        ("", {"tag": "city"}, ["weather"]),
        ("", {"license": "MIT"}, ["weather"]),
        ("", {"name": "note"}, ["note"]),
        ("notes", {"tag": "city"}, []),
        ("", ["tag:city"], ["weather"]),
        ("", "tag:city", ["weather"]),
        ("", ["name:note", "name:weather", "not.tag:city"], ["note"]),
        ("", ["name:note", "has_prompt:true", "context_window:9000"], ["note"]),
        ("", {"name": "note", "has_prompt": "true", "context_window": "9000"}, ["note"]),
        ("", ["name:note", "published_since:2999-01-01T00:00Z"], []),
        ("zzzz", {}, []),
    ],
)
async def test_words_and_filters_find(
    connect: Any, query: str, filters: Any, found: list[str]
) -> None:
    async with connect() as client:
        page = await search(client, query, filters=filters)
    assert names(page) == found
    assert page["total"] == len(found)
    assert page["next_cursor"] is None


async def test_a_hit_says_where_its_words_stand_and_what_it_is(connect: Any) -> None:
    async with connect() as client:
        (hit,) = (await search(client, "notes"))["list_of_results"]
    assert hit["semver"] == "1.1.0"
    assert hit["score"] > 0
    assert "description" in hit["matched"]


FLIGHT = "book a flight to a city by tomorrow noon"


@pytest.mark.parametrize(
    ("tool", "arguments", "fits"),
    [
        ("search_capabilities", {"query_string": "notes"}, True),
        ("search_capabilities", {"query_string": "weather in my city"}, True),
        ("search_capabilities", {"query_string": "weath"}, True),  # the beginning of a word
        ("search_capabilities", {"query_string": "wether"}, True),
        ("search_capabilities", {"query_string": "did:nuwa:cap:note"}, True),
        ("search_capabilities", {"query_string": ""}, True),
        ("search_capabilities", {"query_string": FLIGHT}, False),
        ("route_message", {"message": "what is the weather in my city"}, True),
        ("route_message", {"message": FLIGHT}, False),
    ],
)
async def test_an_answer_says_whether_anything_fits_well(
    connect: Any, tool: str, arguments: dict[str, str], fits: bool
) -> None:
    async with connect() as client:
        found: Any = await client.call_tool(tool, arguments)
    assert found.structured_content["list_of_results"]
    assert ("related only" in found.content[0].text.splitlines()[0]) is not fits
    assert ("note" in found.structured_content) is not fits


async def test_an_empty_query_lists_by_name_only_what_is_served(connect: Any) -> None:
    async with connect() as client:
        page = await search(client, limit=50)
    found, total = names(page), page["total"]
    async with connect() as client:
        while page["next_cursor"]:
            page = await search(client, limit=50, cursor=page["next_cursor"])
            found += names(page)
    assert found == sorted(EVERYTHING)
    assert total == len(EVERYTHING)


@pytest.mark.parametrize("limit", [1, 3, 10])
@pytest.mark.parametrize("query", ["", "large note weather pushy copy"])
async def test_pages_follow_one_another_to_the_end_without_repeats(
    connect: Any, query: str, limit: int
) -> None:
    found: list[str] = []
    cursor = None
    async with connect() as client:
        while True:
            page = await search(client, query, limit=limit, cursor=cursor)
            assert 0 < len(page["list_of_results"]) <= limit
            found += names(page)
            cursor = page["next_cursor"]
            if cursor is None:
                break
    assert len(found) == page["total"]
    assert sorted(found) == sorted(EVERYTHING)


async def test_a_reply_stays_small_and_its_cursor_goes_on(connect: Any) -> None:
    async with connect() as client:
        result: Any = await client.call_tool(
            "search_capabilities", {"query_string": "", "limit": 50, "detail": "full"}
        )
    reply = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert len(json.dumps(reply)) <= MAX_REPLY_BYTES
    assert 1 <= len(reply["structuredContent"]["list_of_results"]) < len(EVERYTHING)
    assert reply["structuredContent"]["next_cursor"]
    assert reply["structuredContent"]["total"] == len(EVERYTHING)


@pytest.mark.parametrize("ails", [None, "this node may not be up to date (STALLED)"])
async def test_answers_say_beside_their_block_whether_the_node_is_well(
    index: Index, read: Any, ails: str | None
) -> None:
    server = build_server(read(index, warning=lambda: ails))
    async with mcp.Client(server) as client:
        for tool, arguments in (
            ("search_capabilities", {"query_string": ""}),
            ("resolve_capability", {"cap_uri": "did:nuwa:cap:note"}),
        ):
            answer: Any = await client.call_tool(tool, arguments)
            assert answer.structured_content.get("warning") == ails
            whole = await call(client, tool, **arguments)
            assert whole["as_of"].get("warning") == ails


@pytest.fixture
def copied(making: Any, tmp_path: Path) -> tuple[str, Any]:
    """A database URL, and a chain whose `weathr` is like the older `weather` of another owner."""
    chain = making.Chain()
    chain.publish("weather", title="Weather", publisher=making.OTHER)
    chain.publish("weathr", title="Weather")
    return f"sqlite:///{tmp_path / 'index.db'}", chain


async def test_a_hit_says_that_its_name_is_like_an_older_one_of_another_owner(
    making: Any, read: Any, copied: tuple[str, Any]
) -> None:
    url, chain = copied
    store = Store.open(url, making.DEPLOYMENT)
    making.follow(store, chain)
    store.close()
    index = Index(url)
    async with mcp.Client(build_server(read(index))) as client:
        full = (await search(client, "weather"))["list_of_results"]
        short: Any = await client.call_tool("search_capabilities", {"query_string": "weather"})
    index.close()
    assert [hit.get("like") for hit in full] == [None, "weather"]
    told = short.structured_content["list_of_results"]
    assert [hit.get("like") for hit in told] == [None, "weather"]
    lines = short.content[0].text.splitlines()
    (told,) = [x for x in lines if "like the older name weather of another owner" in x]
    assert told.startswith("weathr 1.0.0")


async def test_a_release_and_a_name_say_what_older_name_they_are_like_as_long_as_they_are(
    making: Any, read: Any, copied: tuple[str, Any]
) -> None:
    url, chain = copied
    with closing(Store.open(url, making.DEPLOYMENT)) as store, closing(Index(url)) as index:
        making.follow(store, chain)
        reader = read(index)
        for name, like in (("weathr", "weather"), ("weather", None), ("weathr", None)):
            index.find("")
            asked = {"cap_uri": f"did:nuwa:cap:{name}"}
            for _ in range(2):  # the second answer is a kept one
                brief = await calls.call(reader, "resolve_capability", asked)
                whole = await calls.call(reader, "resolve_capability", asked | {"detail": "full"})
                page = (await name_page(reader, name)).to_json()
                got = [json.loads(x.body).get("like") for x in (brief, whole)]
                assert [*got, page.get("like")] == [like] * 3
                told = json.loads(brief.text_json)
                assert told.startswith(f"like the older name {like} of another owner\n{name}") is (
                    like is not None
                )
            if name == "weather":
                chain.mine(making.yanked("weather"))
                making.follow(store, chain)


async def test_a_large_package_is_answered_in_full(making: Any, read: Any, tmp_path: Path) -> None:
    url, chain = f"sqlite:///{tmp_path / 'index.db'}", making.Chain()
    chain.publish("wide", notes=["é" * 1000] * 125)  # twice a package's bytes, six when escaped
    store = Store.open(url, making.DEPLOYMENT)
    making.follow(store, chain)
    store.close()
    index = Index(url)
    async with mcp.Client(build_server(read(index))) as client:
        asked = {"cap_uri": "did:nuwa:cap:wide", "detail": "full"}
        result: Any = await client.call_tool("resolve_capability", asked)
    index.close()
    assert not result.is_error
    assert len(result.structured_content["acp_metadata"]["notes"]) == 125
    reply = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert len(json.dumps(reply)) <= MAX_REPLY_BYTES


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 51}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": "five"}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"cursor": 1}, "cursor"),
        ({"cursor": "garbled"}, "cursor"),
        ({"cursor": "x" * 10_000}, "cursor"),
        ({"cursor": "WzEsICJ4Il0"}, "cursor"),
        ({"query_string": "x" * 4097}, "4097"),
        ({"query_string": None}, "query_string"),
        ({"query_string": ["note"]}, "query_string"),
        ({"filters": "tag"}, "filters"),
        ({"filters": False}, "filters"),
        ({"filters": {"tag": 1}}, "tag"),
        ({"filters": "city"}, "filters"),
        ({"filters": ["tags:"]}, "tags"),
        ({"filters": ["not:city", "not.tag:city"]}, "filters"),
        ({"filters": [{"tag": "city"}]}, "filters"),
        ({"filters": ["has_prompt:maybe"]}, "has_prompt"),
        ({"filters": ["context_window:many"]}, "context_window"),
        ({"detail": "everything"}, "detail"),
        ({"filters": {"tags": ""}}, "tags"),
        ({"filters": '{"tags": "city"}'}, "tags"),
        ({"filters": "{tag: city}"}, "{tag"),
        ({"filters": {"tag": "x" * 10_000}}, "tag"),
    ],
)
async def test_a_search_that_makes_no_sense_is_refused(
    connect: Any, arguments: dict[str, Any], word: str
) -> None:
    async with connect() as client:
        error = await refusal(client, "search_capabilities", **{"query_string": ""} | arguments)
    assert (error["code"], error["retryable"]) == ("INVALID_INPUT", False)
    assert word in error["message"]
    assert error["details"]["fix"]


async def test_an_unknown_filter_is_refused_with_the_one_meant(connect: Any) -> None:
    async with connect() as client:
        error = await refusal(
            client, "search_capabilities", query_string="", filters={"tags": "city"}
        )
    assert error["code"] == "INVALID_INPUT"
    assert error["details"]["fix"] == "did you mean tag?"


async def test_a_cursor_of_another_search_is_refused(connect: Any) -> None:
    async with connect() as client:
        page = await search(client, limit=1)
        error = await refusal(
            client, "search_capabilities", query_string="note", cursor=page["next_cursor"]
        )
    assert error["code"] == "INVALID_INPUT"
    assert "none of this search" in error["message"]


@pytest.mark.parametrize("filters", [None, {}, [], "", {"tag": None, "not": {"tag": None}}])
async def test_no_filters_may_be_said_in_any_way(connect: Any, filters: Any) -> None:
    async with connect() as client:
        assert names(await search(client, "notes", filters=filters)) == ["note"]


async def test_hostile_queries_never_fail(connect: Any) -> None:
    queries = json.loads(HOSTILE.read_text("utf-8"))
    async with connect() as client:
        for query in queries:
            result: Any = await client.call_tool(
                "search_capabilities", {"query_string": query, "limit": 1}
            )
            too_long = len(query) > MAX_QUERY_CHARS
            code = result.structured_content.get("code")
            assert (result.is_error, code) == (
                (True, "INVALID_INPUT") if too_long else (False, None)
            ), query


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from(sorted(SCHEMAS)),
    arguments=st.dictionaries(
        st.sampled_from(["cap_uri", "query_string", "filters", "limit", "cursor", "other"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["tag", "x"]), inner, max_size=2)
            ),
            max_leaves=4,
        ),
    ),
)
async def test_no_arguments_whatever_are_a_fault_of_the_node(
    reader: Reader, tool: str, arguments: dict[str, Any]
) -> None:
    async with mcp.Client(build_server(reader)) as client:
        result: Any = await client.call_tool(tool, arguments)
    assert (result.structured_content or {}).get("code") in (None, "INVALID_INPUT", "NOT_FOUND")


async def test_a_late_answer_is_a_timeout(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capdex_indexer.query.index.ANSWER_S", 0.0)
    async with connect() as client:
        error = await refusal(client, "search_capabilities", query_string="note")
    assert (error["code"], error["retryable"]) == ("TIMEOUT", True)
    await asyncio.get_running_loop().shutdown_default_executor()  # it answers nobody by now


@pytest.mark.parametrize(
    ("damage", "code", "retryable"),
    [
        ("vanished", "DATABASE_UNAVAILABLE", True),
        ("garbage", "DATABASE_UNAVAILABLE", True),
        ("ALTER TABLE release RENAME TO secret", "DATABASE_UNAVAILABLE", True),
        ("UPDATE release SET verdict = 'secret' WHERE verdict = 'verified'", "INTERNAL", False),
    ],
)
async def test_a_broken_index_is_told_without_its_secrets(
    damaged: Callable[[str], Index], read: Any, damage: str, code: str, retryable: bool
) -> None:
    async with mcp.Client(build_server(read(damaged(damage)))) as client:
        error = await refusal(client, "search_capabilities", query_string="")
    assert (error["code"], error["retryable"]) == (code, retryable)
    assert "secret" not in json.dumps(error)
    assert "sqlite" not in json.dumps(error)


@pytest.mark.parametrize("damage", ["vanished", "garbage"])
@pytest.mark.parametrize("tool", ["resolve_capability", "get_capability"])
async def test_a_kept_answer_of_a_broken_index_is_an_error_too(
    damaged: Callable[[str], Index], read: Any, damage: str, tool: str
) -> None:
    async with mcp.Client(build_server(read(damaged(damage)))) as client:
        error = await refusal(client, tool, cap_uri="did:nuwa:cap:note")
    assert error["code"] == "DATABASE_UNAVAILABLE"


async def test_the_line_of_a_hit_says_that_its_name_is_deprecated(connect: Any) -> None:
    async with connect() as client:
        found = await client.call_tool("search_capabilities", {"query_string": "weather"})
    assert "weather 1.0.0 [verified] (deprecated) " in found.content[0].text
