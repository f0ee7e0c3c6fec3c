"""The MCP face: five tools that never change, answers, and consent by a person."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import mcp_types as types
import orjson
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from capdex.errors import Unavailable
from capdex_router.faces.actions import Actions
from capdex_router.faces.server import build_server
from capdex_router.faces.tools import INSTRUCTIONS, TOOLS
from capdex_router.home.audit_log import verify
from capdex_router.runtime import open_runtime
from tests.router.faces import demo
from tests.router.faces.conftest import ERAS, Connect, User, audit, said
from tests.router.small_runtime import Echo, tool

ECHO = "did:nuwa:cap:demo#echo"
DESTROY = {"uri": "did:nuwa:cap:demo#destroy", "input": {"text": "all"}}
OFFSETS = [(None, 0), ("", 0), ("16384", 16_384), (16_384.0, 16_384)]
RESULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "output": {"type": "object"},
        "error": {
            "type": "object",
            "required": ["code", "reason", "message"],
            "properties": {
                "code": {
                    "enum": [
                        "NOT_FOUND", "INVALID_INPUT", "PERMISSION_DENIED", "EXECUTION_FAILED",
                        "TIMEOUT",
                    ]
                }
            },
        },
    },
    "required": ["ok"],
    "additionalProperties": False,
    "if": {"properties": {"ok": {"const": True}}},
    "then": {"required": ["output"], "maxProperties": 2},
    "else": {"required": ["error"], "maxProperties": 2},
}  # fmt: skip


def result_of(found: types.CallToolResult) -> dict[str, Any]:
    """The InvokeResult of a call, checked against its schema and its text."""
    shown = found.structured_content
    assert shown is not None
    jsonschema.validate(shown, RESULT_SCHEMA)
    if shown["ok"]:
        assert orjson.loads(said(found)) == shown
    else:
        error = shown["error"]
        assert said(found).startswith(f"{error['reason']}: {error['message']}")
        assert error["details"].get("fix", "") in said(found)
        assert "\n" not in said(found)
    assert bool(found.is_error) is not shown["ok"]
    return dict(shown)


async def listed(connect: Connect, era: str, count: int) -> bytes:
    async with connect(era, count=count, stdio=True) as client:
        found = (await client.list_tools()).tools
        shown = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in found]
        return orjson.dumps([client.instructions, shown])


async def test_the_tools_are_the_same_from_nothing_to_ten_thousand_packages(
    connect: Connect, era: str
) -> None:
    few, many = await listed(connect, era, 0), await listed(connect, era, 10_000)
    assert few == many
    instructions, tools = orjson.loads(few)
    assert instructions == INSTRUCTIONS
    assert [tool["name"] for tool in tools] == ["find", "describe", "call", "route", "manage"]


def test_tools_and_instructions_are_within_500_tokens() -> None:
    with warnings.catch_warnings(action="ignore"):  # it reads its data in a deprecated way
        import bpe_openai

        encoding = bpe_openai.get_encoding("o200k_base")
    text = orjson.dumps(list(TOOLS.values())).decode() + INSTRUCTIONS
    assert len(encoding.encode_ordinary(text)) <= 500


async def test_an_agent_finds_describes_and_calls(connect: Connect, era: str) -> None:
    async with connect(era, stdio=True) as client:
        hits = said(await client.call_tool("find", {"want": "echo"}))
        assert hits.splitlines()[0] == "demo#echo the tool echo [exact name]"
        manifest = orjson.loads(said(await client.call_tool("describe", {"uri": ECHO})))
        assert manifest["input_schema"]["required"] == ["text"]
        found = await client.call_tool("call", {"uri": ECHO, "input": {"text": "hi"}})
        assert result_of(found)["output"] == {"text": "hi"}


async def test_find_without_a_wish_lists_domains(connect: Connect) -> None:
    async with connect("handshake", count=3) as client:
        assert said(await client.call_tool("find", {"want": ""})) == "domains: demo (5)"


@pytest.mark.parametrize(
    "arguments",
    [
        {"uri": "echo", "input": {"input": {"text": "hi"}}},
        {"uri": "echo", "arguments": {"text": "hi"}},
        {"uri": "echo", "input": '{"text": "hi"}'},
        {"uri": "echo", "text": "hi"},
        {"input": {"uri": "echo", "input": {"text": "hi"}}},
        {"arguments": {"uri": "echo", "text": "hi"}},
        {"input": {"uri": "echo"}, "args": None, "text": "hi"},
    ],
    ids=str,
)
async def test_shapes_that_models_give_by_mistake_are_put_right(
    connect: Connect, arguments: dict[str, Any]
) -> None:
    async with connect("handshake") as client:
        found = result_of(await client.call_tool("call", arguments))
    assert found["output"] == {"text": "hi"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"want": None, "input": {}, "input_json": '{"text": "hi"}'},
        {"want": "", "input": None, "input_json": '{"text": "hi"}'},
        {"want": None, "input": {"text": "hi"}, "input_json": ""},
    ],
    ids=str,
)
async def test_a_host_that_closes_the_input_gives_it_as_json_text(
    connect: Connect, era: str, arguments: dict[str, Any]
) -> None:
    """CrewAI, BeeAI and strict modes let an object without named properties hold nothing."""
    assert TOOLS["call"]["inputSchema"]["properties"]["input_json"]["type"] == "string"
    async with connect(era) as client:
        found = result_of(await client.call_tool("call", {"uri": ECHO, **arguments}))
    assert found["output"] == {"text": "hi"}


async def test_a_number_of_more_than_64_bits_in_json_text_is_refused_and_not_rounded(
    connect: Connect, era: str
) -> None:
    digits = 123_456_789_012_345_678_901
    async with connect(era) as client:
        for given in ({"input": {"text": digits}}, {"input_json": f'{{"text": {digits}}}'}):
            found = result_of(await client.call_tool("call", {"uri": ECHO, **given}))
            assert found["error"]["details"]["why"] == "Integer exceeds 64-bit range", found


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"text": "a, b", "count": None}, {"text": "a, b"}),
        ({"text": "hi", "count": "3"}, {"text": "hi", "count": 3}),
        ({"text": "", "loud": "True", "at": None}, {"text": "", "loud": True}),
        ({"text": "hi", "tags": '["a"]', "at": ""}, {"text": "hi", "tags": ["a"], "at": ""}),
        ({"text": "hi", "tags": "Paris, France"}, {"text": "hi", "tags": ["Paris, France"]}),
        ({"text": "hi", "more": [None]}, {"text": "hi", "more": [None]}),
    ],
    ids=str,
)
async def test_an_input_that_is_wrong_is_read_where_its_meaning_is_beyond_doubt(
    tmp_path: Path, given: dict[str, Any], read: dict[str, Any]
) -> None:
    properties = {
        "text": {"type": "string"}, "count": {"type": "integer"}, "loud": {"type": "boolean"},
        "at": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "array"},
    }  # fmt: skip
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    executor = Echo()
    found = demo.actions(tmp_path, 0, tool("odd", executor, input_schema=schema))
    async with Client(build_server(found)) as client:
        called = {"uri": "odd", "input": given}
        assert result_of(await client.call_tool("call", called))["ok"]
    assert executor.runs == [read]


async def test_an_input_is_read_through_the_references_of_its_schema(tmp_path: Path) -> None:
    text, pages = {"type": "string"}, {"type": "integer"}
    schema = {
        "type": "object",
        "properties": {"object": {"$ref": "#/$defs/note"}},
        "$defs": {"note": {"type": "object", "properties": {"text": text, "pages": pages}}},
    }
    executor = Echo()
    found = demo.actions(tmp_path, 0, tool("odd", executor, input_schema=schema))
    async with Client(build_server(found)) as client:
        for given in ('{"text": "hi", "pages": 2}', {"text": "hi", "pages": "2"}):
            await client.call_tool("call", {"uri": "odd", "input": {"object": given}})
    assert executor.runs == [{"object": {"text": "hi", "pages": 2}}] * 2


async def test_an_input_that_fits_the_schema_is_passed_as_it_is_given(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"input": {"type": "object"}}, "required": ["input"]}
    executor = Echo()
    found = demo.actions(tmp_path, 0, tool("odd", executor, input_schema=schema))
    async with Client(build_server(found)) as client:
        await client.call_tool("call", {"uri": "odd", "input": {"input": {"text": "x"}}})
    assert executor.runs == [{"input": {"text": "x"}}]


async def test_an_input_within_an_input_is_read_where_the_schema_has_no_such_parameter(
    tmp_path: Path,
) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    executor = Echo()
    found = demo.actions(tmp_path, 0, tool("odd", executor, input_schema=schema))
    async with Client(build_server(found)) as client:
        await client.call_tool("call", {"uri": "odd", "input": {"input": {"text": "x"}}})
    assert executor.runs == [{"text": "x"}]


async def test_the_example_of_a_tool_without_parameters_is_an_empty_input(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    found = demo.actions(tmp_path, 0, tool("odd", Echo(), input_schema=schema))
    assert "input_schema" not in (shown := found.describe("odd", 4))
    assert "{}" in str(shown)


async def test_a_null_in_a_list_is_not_left_out_of_it(tmp_path: Path) -> None:
    numbers = {"type": "array", "items": {"type": "number"}}
    schema = {"type": "object", "properties": {"at": numbers}}
    executor = Echo()
    found = demo.actions(tmp_path, 0, tool("odd", executor, input_schema=schema))
    async with Client(build_server(found)) as client:
        called = {"uri": "odd", "input": {"at": [59.9, None, 10.7]}}
        assert not result_of(await client.call_tool("call", called))["ok"]
    assert executor.runs == []


@pytest.mark.parametrize("properties", [{"at": {"$ref": "https://example.com/at.json"}}, 5, True])
async def test_a_capability_whose_schema_cannot_be_used_answers_so(
    properties: Any, tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": properties}
    found = demo.actions(tmp_path, 0, tool("odd", Echo(), input_schema=schema))
    async with Client(build_server(found)) as client:
        result = result_of(await client.call_tool("call", {"uri": "odd", "input": {"at": 1}}))
    assert result["error"]["reason"] == "INVALID_INPUT"
    assert "the schema cannot be used" in result["error"]["message"]


async def test_an_input_that_is_wrong_is_answered_with_schema_and_example(
    connect: Connect, era: str
) -> None:
    async with connect(era) as client:
        error = result_of(await client.call_tool("call", {"uri": ECHO, "input": {}}))["error"]
    assert error["code"] == "INVALID_INPUT"
    assert error["details"]["example"] == {"text": "text"}
    assert error["details"]["input_schema"]["required"] == ["text"]


async def test_a_number_of_more_than_64_bits_is_answered_as_any_wrong_input(
    connect: Connect, era: str
) -> None:
    async with connect(era) as client:
        found = await client.call_tool("call", {"uri": ECHO, "input": {"text": 10**20}})
    assert result_of(found)["error"]["code"] == "INVALID_INPUT"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("call", {"uri": "nothing"}, "NOT_FOUND"),
        ("call", {}, "INVALID_INPUT"),
        ("call", {"uri": 3}, "INVALID_INPUT"),
        ("call", {"uri": "result:unknown"}, "NOT_FOUND"),
        ("call", {"want": "delete emails"}, "INVALID_INPUT"),
        ("describe", {"uri": "nothing"}, "NOT_FOUND"),
        ("describe", {"uri": ECHO, "level": 9}, "INVALID_INPUT"),
        ("describe", {"uri": ECHO, "level": True}, "INVALID_INPUT"),
        ("describe", {}, "INVALID_INPUT"),
        ("route", {}, "INVALID_INPUT"),
        ("manage", {}, "INVALID_INPUT"),
        ("find", {"want": 3}, "INVALID_INPUT"),
        ("find", {"want": "x", "limit": "five"}, "INVALID_INPUT"),
        ("find", {"want": "x", "remote": "no"}, "INVALID_INPUT"),
        ("find", {"want": "x", "limit": True}, "INVALID_INPUT"),
        ("find", {"query": "x"}, "INVALID_INPUT"),
        ("call", {"want": 3}, "INVALID_INPUT"),
        ("call", {"uri": ECHO, "input": {"text": "x" * 1_100_000}}, "TOO_LARGE"),
        *(
            ("call", {"uri": "result:unknown", "input": {"offset": offset}}, "INVALID_INPUT")
            for offset in ("x", "-1", -1, 1.5, True)
        ),
        ("describe", {"uri": ECHO, "levels": 1}, "INVALID_INPUT"),
        ("route", {"message": "hi"}, "NOT_FOUND"),
        ("manage", {"action": "explode"}, "INVALID_INPUT"),
        ("call", {"uri": ECHO, "input": "text"}, "INVALID_INPUT"),
        ("manage", {"action": "install"}, "INVALID_INPUT"),
    ],
    ids=str,
)
async def test_each_error_is_a_result_with_a_code_and_says_what_to_do(
    connect: Connect, tool: str, arguments: dict[str, Any], code: str
) -> None:
    async with connect("handshake") as client:
        error = result_of(await client.call_tool(tool, arguments))["error"]
    assert error["reason"] == code
    assert error["details"]["fix"]


async def test_the_line_of_an_error_says_nothing_twice(connect: Connect) -> None:
    async with connect("handshake") as client:
        answer = await client.call_tool("describe", {"uri": f"{ECHO}@9.0.0"})
    assert result_of(answer)["error"]["details"]["versions"] == ["1.0.0"]
    assert said(answer) == f"NOT_FOUND: {ECHO} has no version 9.0.0 here; installed: 1.0.0"


async def test_the_line_of_an_error_has_no_mark_that_is_for_programs(tmp_path: Path) -> None:
    async def lost(arguments: Any, *, timeout_s: float) -> Any:
        details = {"sent": True, "status": 500, "jsonrpc_code": -3, "limit": 50}
        raise Unavailable("a.example answered with status 500", fix="try again", details=details)

    executor = Echo()
    executor.run = lost  # type: ignore[method-assign]
    found = demo.actions(tmp_path, 0, tool("lost", executor))
    async with Client(build_server(found)) as client:
        answer = await client.call_tool("call", {"uri": "lost", "input": {"text": "x"}})
    assert result_of(answer)["error"]["details"]["sent"] is True
    assert said(answer) == (
        "TIMEOUT: a.example answered with status 500; try again; jsonrpc_code -3; limit 50"
    )


@pytest.mark.parametrize(
    ("tool", "given", "key", "others"),
    [
        ("find", {"want": "echo"}, "limit", [5, "5", ""]),
        ("find", {"want": "echo"}, "remote", [True, "true", ""]),
        ("describe", {"uri": ECHO}, "level", [3, "3", ""]),
        ("call", {"uri": ECHO, "input": {"text": "hi"}}, "want", [""]),
        ("call", {"want": "wipe"}, "uri", [""]),
        ("call", {"uri": ECHO}, "input", [{}, ""]),
        ("manage", {"action": "list"}, "target", [""]),
    ],
)
async def test_null_and_the_default_are_an_absent_argument(
    connect: Connect, tool: str, given: dict[str, Any], key: str, others: list[Any]
) -> None:
    async with connect("handshake") as client:
        absent, *same = [
            (await client.call_tool(tool, given | more)).content[0].text
            for more in ({}, *({key: value} for value in (None, *others)))
        ]
    assert same == [absent] * len(same)


async def test_an_unknown_tool_is_a_protocol_error(connect: Connect, era: str) -> None:
    async with connect(era) as client:
        with pytest.raises(MCPError, match="but find, describe, call, route, manage"):
            await client.call_tool("explode", {})


@pytest.mark.parametrize(
    ("tool", "given", "came"),
    [
        ("find", {"want": ["x"]}, "it is a list"),
        ("find", {"want": "x", "limit": "many"}, "it is 'many'"),
        ("find", {"want": "x", "remote": "maybe"}, "it is 'maybe'"),
        ("describe", {"uri": ECHO, "level": "deep"}, "it is 'deep'"),
        ("call", {"uri": 5}, "it is 5"),
        ("call", {"uri": ECHO, "input": "text"}, "it is 'text'"),
        ("manage", {"action": "explode"}, "it is 'explode'"),
    ],
)
async def test_an_error_says_what_came(
    connect: Connect, tool: str, given: dict[str, Any], came: str
) -> None:
    async with connect("handshake") as client:
        assert f"; {came}; " in said(await client.call_tool(tool, given))


async def test_words_of_an_enumeration_and_booleans_are_read_in_any_case(connect: Connect) -> None:
    async with connect("handshake") as client:
        listed = said(await client.call_tool("manage", {"action": "list"}))
        assert said(await client.call_tool("manage", {"action": "List"})) == listed
        found = await client.call_tool("find", {"want": "echo", "remote": "False"})
    assert not found.is_error


async def test_a_destructive_call_runs_after_a_yes_that_is_on_record(
    connect: Connect, era: str, tmp_path: Path
) -> None:
    user = User()
    async with connect(era, user, stdio=True) as client:
        for _ in range(2):
            assert result_of(await client.call_tool("call", DESTROY))["ok"]
    assert len(user.asked) == 2
    assert "It may destroy or change something." in user.asked[0]
    assert "POST https://api.example.org/say" in user.asked[0]
    assert 'text: "all"' in user.asked[0]
    assert "content: sha256 " + "aa" * 32 in user.asked[0]
    events = Counter(line["event"] for line in audit(tmp_path))
    assert events == {"consent": 2, "call": 2}
    assert verify(tmp_path / "audit.jsonl").broken is None


@pytest.mark.parametrize(
    "user",
    [User("decline"), User("cancel"), User("decline", {"agree": True})],
    ids=str,
)
async def test_decline_and_cancel_are_a_no_that_says_what_a_person_can_run(
    connect: Connect, era: str, user: User, tmp_path: Path
) -> None:
    async with connect(era, user) as client:
        error = result_of(await client.call_tool("call", DESTROY))["error"]
    assert (error["code"], error["reason"]) == ("PERMISSION_DENIED", "NO_CONSENT")
    assert "a person can run: capdex grant " in error["details"]["fix"]
    assert [line.get("agreed") for line in audit(tmp_path)] == [False, None]


@pytest.mark.parametrize("content", [None, {}, {"agree": False}, {"agree": "true"}], ids=str)
async def test_accept_is_the_yes_whatever_content_a_host_sends(
    connect: Connect, era: str, content: Any
) -> None:
    async with connect(era, User(content=content)) as client:
        assert result_of(await client.call_tool("call", DESTROY))["ok"]


async def test_a_client_that_cannot_ask_gets_the_command_that_grants(
    connect: Connect, era: str, tmp_path: Path
) -> None:
    async with connect(era, stdio=True) as client:
        error = result_of(await client.call_tool("call", DESTROY | {"confirm": True}))["error"]
    assert (error["code"], error["reason"]) == ("PERMISSION_DENIED", "CONFIRM_NEEDED")
    assert error["details"]["fix"] == (
        "a person can run: capdex grant 'did:nuwa:cap:demo#destroy@1.0.0' host:api.example.org "
        f"effects --digest {'aa' * 32}"
    )
    assert [line["ok"] for line in audit(tmp_path)] == [False]


async def test_the_first_use_of_a_host_is_asked_once(connect: Connect, era: str) -> None:
    user = User()
    async with connect(era, user) as client:
        for _ in range(3):
            found = await client.call_tool("call", {"uri": "visit", "input": {"text": "a"}})
            assert result_of(found)["ok"]
    assert len(user.asked) == 1


async def test_an_answer_counts_once_and_for_its_call_alone(connect: Connect) -> None:
    async with connect("stateless", User()) as client:
        session = client.session

        async def call(text: str, **more: Any) -> Any:
            return await session.call_tool(
                "call", DESTROY | {"input": {"text": text}}, allow_input_required=True, **more
            )

        yes = {"consent": types.ElicitResult(action="accept")}
        asked = await call("one")
        assert isinstance(asked, types.InputRequiredResult)
        state = asked.request_state
        other = await call("two", input_responses=yes, request_state=state)
        assert isinstance(other, types.InputRequiredResult)
        again = await call("one", input_responses=yes, request_state=state)
        assert isinstance(again, types.InputRequiredResult)
        forged = await call("one", input_responses=yes, request_state="forged")
        assert isinstance(forged, types.InputRequiredResult)
        first = await call("one", input_responses=yes, request_state=forged.request_state)
        assert result_of(first)["ok"]
        replayed = await call("one", input_responses=yes, request_state=forged.request_state)
        assert isinstance(replayed, types.InputRequiredResult)


async def test_a_long_result_is_read_by_the_calls_that_its_slices_name(
    connect: Connect, era: str
) -> None:
    text = "a" * 40_000
    async with connect(era) as client:
        found = result_of(await client.call_tool("call", {"uri": ECHO, "input": {"text": text}}))
        whole, after = found["output"]["part"], found["output"]["next"]
        while after is not None:
            given = orjson.loads(after.removeprefix("call "))
            part = result_of(await client.call_tool("call", given))["output"]
            whole, after = whole + part["part"], part["next"]
    assert orjson.loads(whole) == {"text": text}


@pytest.mark.parametrize(("given", "read"), OFFSETS, ids=str)
async def test_an_offset_is_read_as_any_number_is(connect: Connect, given: Any, read: int) -> None:
    async with connect("handshake") as client:
        long = {"uri": ECHO, "input": {"text": "a" * 40_000}}
        handle = result_of(await client.call_tool("call", long))["output"]["result"]
        parts = [
            result_of(await client.call_tool("call", {"uri": handle, "input": {"offset": one}}))
            for one in (given, read)
        ]
    assert parts[0] == parts[1]


async def test_a_stored_result_takes_its_offset_alone(connect: Connect) -> None:
    async with connect("handshake") as client:
        long = {"uri": ECHO, "input": {"text": "a" * 40_000}}
        handle = result_of(await client.call_tool("call", long))["output"]["result"]
        other = {"uri": handle, "input": {"next": 16_384}}
        assert "it takes offset" in said(await client.call_tool("call", other))


async def test_the_list_names_packages_and_says_how_many_more(connect: Connect) -> None:
    async with connect("handshake", count=30) as client:
        shown = said(await client.call_tool("manage", {"action": "list"})).splitlines()
    assert shown[0] == "did:nuwa:cap:note@1.0.0 takes notes"
    assert shown[-1] == "and 14 more: use find"


async def test_a_program_is_learned_if_its_person_agrees_and_called_by_a_wish(
    tmp_path: Path, era: str
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/notes.txt").write_text("a b\nc\n")
    learn = {"action": "learn", "target": "wc"}
    wish = {"want": "how many words", "input": {"file": "notes.txt"}}
    user = User("decline")
    async with open_runtime(tmp_path / "router", work=tmp_path / "work") as runtime:
        actions = Actions(
            runtime.catalog, runtime.search, runtime.invoker, runtime.results,
            learned=runtime.learned,
        )  # fmt: skip
        server = build_server(actions)
        async with Client(server, mode=ERAS[era], elicitation_callback=user) as client:
            assert (await client.call_tool("manage", learn)).is_error
            assert (await client.call_tool("call", wish)).is_error
            user.action = "accept"
            assert said(await client.call_tool("manage", learn)) == (
                "learned:wc: learned\n"
                "describe, then call: learned:wc#count-lines, learned:wc#count-words"
            )
            called = result_of(await client.call_tool("call", wish))
            listed = said(await client.call_tool("manage", {"action": "list"}))
            domains = said(await client.call_tool("find", {"want": ""}))
    ran = {"uri": "learned:wc#count-words", "input": wish["input"]}
    assert list(called["output"].items()) == [("called", ran), ("lines", ["3 notes.txt"])]
    assert "learned:wc#count-words" in listed
    assert domains == "domains: files (1)"
    assert len(user.asked) == 2
    assert "sha256" in user.asked[0]


async def test_a_megabyte_of_matches_is_read_in_slices(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/notes.txt").write_text("alpha beta gamma\n" * 60_000)
    async with open_runtime(tmp_path / "router", work=tmp_path / "work") as runtime:
        runtime.learning.keep(await runtime.learning.study("grep"))
        found = Actions(
            runtime.catalog, runtime.search, runtime.invoker, runtime.results,
            learned=runtime.learned,
        )  # fmt: skip
        async with Client(build_server(found)) as client:
            wish = {"want": "search for", "input": {"query": "beta"}}
            output = result_of(await client.call_tool("call", wish))["output"]
            rest = orjson.loads(output["next"].removeprefix("call "))
            more = result_of(await client.call_tool("call", rest))["output"]
    assert output["bytes"] > 1_000_000
    assert len(output["part"]) <= 16_384
    assert "alpha beta gamma" in more["part"]
