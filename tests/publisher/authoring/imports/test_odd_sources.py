"""Odd tools of a server, and lists of tools and skills in other forms than the usual one."""

from __future__ import annotations

import json
import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from capdex.errors import InvalidInput, Unavailable, UsageError
from capdex.manifest.manifest import read
from capdex_publisher.authoring.imports import mcp
from capdex_publisher.authoring.imports.detect import import_option_for
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.mcp import import_mcp
from capdex_publisher.authoring.imports.openai import import_openai
from capdex_publisher.authoring.imports.skill import import_skill
from capdex_publisher.authoring.imports.source import parse

STUB = Path(__file__).with_name("mcp_stub.py")
CHAIN = [(x, y) for y, x in pairwise("abcdefghijkl")]
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def command(case: str) -> str:
    return shlex.join([sys.executable, str(STUB), case])


async def imported(case: str, **more: Any) -> Imported:
    return write_package(await import_mcp(command(case), service="https://mcp.rain.dev/m", **more))


def tools(package: Imported) -> dict[str, Any]:
    return {x.name: x for x in read(package.text.encode()).require().tools}


@pytest.mark.parametrize(
    "case", ["notype", "empty", "noschema", "nullschema", "outarr", "badann", "wei", "modern"]
)
async def test_one_odd_tool_does_not_fail_its_server(case: str) -> None:
    found = tools(await imported(case))
    assert set(found) == {"good", "odd"}
    assert found["odd"].parameters["type"] == "object"


async def test_a_name_with_characters_that_are_not_seen_fails_its_tool_alone() -> None:
    package = await imported("unseen")
    assert tools(package)["good"].output_schema is None
    assert [(x.source, x.subject, x.fate) for x in package.notes if "not seen" in x.after] == [
        ("good", "output schema", "left out"),
        ("odd", "tool", "refused"),
        ("other", "tool", "refused"),
    ]


async def test_instructions_longer_than_a_prompt_are_cut_and_said() -> None:
    package = await imported("talks")
    assert read(package.text.encode()).require().prompt
    assert ("prompt", "99999 bytes") in [(x.subject, x.before) for x in package.notes]


async def test_a_choice_at_the_top_is_carried() -> None:
    assert len(tools(await imported("notype"))["odd"].parameters["oneOf"]) == 2


async def test_a_tuple_of_draft_07_is_written_as_prefix_items() -> None:
    schema = tools(await imported("draft7"))["odd"].parameters
    listed = {"type": "array", "prefixItems": [{"type": "string"}], "items": False}
    assert schema["properties"]["t"] == listed
    assert schema["$defs"] == {"N": {"type": "integer"}}


async def test_dependencies_of_draft_07_are_written_in_their_two_words() -> None:
    schema = tools(await imported("depends"))["odd"].parameters
    assert "dependencies" not in schema
    assert schema["dependentRequired"] == {"card": ["name"], "x": ["y"]}
    assert schema["dependentSchemas"] == {"name": {"required": ["card"]}}


async def test_definitions_of_both_names_are_kept_together() -> None:
    schema = tools(await imported("both"))["odd"].parameters
    assert schema["$defs"] == {"N": {"type": "integer"}, "M": {"type": "string"}}


async def test_arguments_that_may_be_null_keep_their_parameters() -> None:
    package = await imported("union")
    schema = tools(package)["odd"].parameters
    assert schema == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert not [x for x in package.notes if x.source == "odd"]


async def test_a_tool_that_runs_as_a_task_alone_is_refused() -> None:
    package = await imported("task")
    assert set(tools(package)) == {"good"}
    assert [x.fate for x in package.notes if x.source == "odd"] == ["refused"]


async def test_an_output_that_is_no_object_is_named() -> None:
    package = await imported("outarr")
    assert ("good", "output schema") in [(x.source, x.subject) for x in package.notes]


async def test_a_tool_is_carried_without_an_output_schema_that_is_too_large() -> None:
    package = await imported("outlarge")
    assert set(tools(package)) == {"good"}
    found = [(x.subject, x.fate, x.after) for x in package.notes if x.source == "good"]
    assert found == [("output schema", "left out", "too large")]


async def test_a_cursor_that_repeats_ends_the_list() -> None:
    assert set(tools(await imported("endless"))) == {"good"}


async def test_a_cursor_that_is_a_number_leads_on() -> None:
    assert set(tools(await imported("numbers"))) == {"first", "good"}


async def test_a_server_that_lists_more_than_a_router_reads_is_refused() -> None:
    with pytest.raises(InvalidInput, match="lists too many tools"):
        await imported("onandon")


@pytest.mark.parametrize(
    ("case", "row"),
    [
        ("hints", ("annotation readOnlyHint", "left out", "[]")),
        ("nohints", ("annotations", "left out", '["x"]')),
        ("hidden", ("description", "left out", "2 characters")),
        ("key", ("parameter api_key", "changed", "a secret by its name")),
    ],
)
async def test_what_of_a_tool_is_not_read_as_it_stands_is_said(
    case: str, row: tuple[str, ...]
) -> None:
    package = await imported(case)
    found = [(x.subject, x.fate, x.before) for x in package.notes if x.source in ("good", "odd")]
    assert found == [row]
    assert case != "hints" or tools(package)["good"].annotations.idempotent is True


async def test_each_word_of_a_tool_that_a_package_has_not_is_said() -> None:
    package = await imported("more")
    assert tools(package)["odd"].description == "Odd"
    found = [(x.source, x.subject, x.before) for x in package.notes if x.source != "document"]
    assert sorted(found) == [
        ("good", "_meta", '{"ui": "x"}'),
        ("good", "annotation title", "G"),
        ("good", "execution", '{"taskSupport": "optional"}'),
        ("good", "icons", '[{"src": "https://a.dev/i.png"}]'),
        ("good", "title", "Good"),
    ]


async def test_words_that_no_version_of_mcp_has_are_named() -> None:
    package = await imported("newwords")
    assert tools(package)["good"].annotations.read_only is True
    found = [(x.subject, x.before) for x in package.notes if x.source == "good"]
    assert found == [("cost", "3"), ("annotation category", "input")]


@pytest.mark.parametrize("case", ["nothing", "nolist"])
async def test_a_server_without_tools_is_told_so(case: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await imported(case)
    assert caught.value.why == "it lists none"


async def test_a_reply_that_does_not_follow_mcp_is_told_by_its_place() -> None:
    with pytest.raises(Unavailable) as caught:
        await imported("noversion")
    assert "its reply does not follow MCP at protocolVersion: Field required" in caught.value.why
    assert "\n" not in caught.value.why


async def test_the_cause_stands_beside_what_a_server_writes_at_its_start() -> None:
    with pytest.raises(Unavailable) as caught:
        await imported("otherversion")
    assert caught.value.why.endswith("version from the server: 1999-01-01; it wrote: started")


@pytest.mark.parametrize("service", ["http://mcp.rain.dev/m", "mcp.rain.dev/m", "https://10.0.0.1"])
async def test_an_address_that_others_cannot_reach_is_refused_before_a_server_is_asked(
    service: str,
) -> None:
    with pytest.raises(UsageError) as caught:
        await import_mcp("no-such-program", service=service)
    assert service in caught.value.message


async def test_of_two_tools_of_one_name_the_second_is_refused() -> None:
    package = await imported("twice")
    assert set(tools(package)) == {"good"}
    assert [x.after for x in package.notes if x.fate == "refused"] == [
        "another tool has this name, by which a server is called"
    ]


async def test_changed_names_are_said_and_kept_in_the_description() -> None:
    package = await imported("names")
    said = {x.before: x.after for x in package.notes if x.subject == "name"}
    found = tools(package)
    assert set(said) == {"a.b", "天気"}
    assert found[said["天気"]].description.startswith("天気")
    bindings = read(package.text.encode()).require().bindings
    assert bindings[said["a.b"]]["mcp_action"] == "a.b"


async def test_a_name_that_is_legal_is_kept_and_an_odd_one_gives_way() -> None:
    package = await imported("dots")
    assert set(tools(package)) == {"a_b_2", "a_b", "_c", "c", "a_b_3"}
    said = {x.before: x.after for x in package.notes if x.subject == "name"}
    assert said == {"a.b": "a_b_2", "a b": "a_b_3"}


async def test_a_package_of_no_tool_that_fits_is_not_made() -> None:
    with pytest.raises(InvalidInput, match="can carry none of these tools") as error:
        await imported("refext")
    assert "re: tool refused" in error.value.why


async def test_named_tools_alone_are_taken() -> None:
    assert set(tools(await imported("notype", wanted=["odd"]))) == {"odd"}
    with pytest.raises(UsageError, match="no tool 'none'") as error:
        await imported("notype", wanted=["none"])
    assert "good, odd" in error.value.why


async def test_what_a_server_says_as_it_ends_is_the_error() -> None:
    with pytest.raises(Unavailable) as error:
        await imported("die")
    assert "missing API key: set FOO_KEY" in error.value.why


async def test_an_error_that_a_server_answers_is_shown_with_what_it_wrote() -> None:
    with pytest.raises(Unavailable) as error:
        await imported("refuses")
    assert "the quota of this key is used up" in error.value.why
    assert "it wrote: waiting for the database" in error.value.why


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_the_status_of_a_refusal_over_http_is_told(status: int) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status, text="no")

    app = web.Application()
    app.router.add_route("*", "/mcp", refuse)
    async with TestServer(app) as server:
        with pytest.raises(Unavailable, match="did not list its tools") as error:
            await import_mcp(str(server.make_url("/mcp")))
    assert f"HTTP {status}" in error.value.why
    assert ("without authentication" in error.value.why) == (status != 500)
    assert ("needs no authentication" in error.value.fix) == (status != 500)  # not: with its path
    assert "by hand" not in error.value.fix


async def test_what_a_server_wrote_is_told_at_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "TIMEOUT_S", 3.0)
    with pytest.raises(Unavailable) as error:
        await imported("slow")
    assert "did not answer in 3 s; it wrote: waiting for the database" in error.value.why


async def test_variables_in_front_of_a_command_are_those_of_the_server(tmp_path: Path) -> None:
    script = "import os, sys; sys.exit('FOO is ' + os.environ['FOO'])"
    with pytest.raises(Unavailable) as error:
        await import_mcp(shlex.join(["FOO=1 2", sys.executable, "-c", script]))
    assert "FOO is 1 2" in error.value.why


async def test_the_one_server_of_a_configuration_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    one = {"command": sys.executable, "args": [str(STUB), "empty"], "env": {"FOO": "1"}}
    file.write_text(json.dumps({"mcpServers": {"x": one}}))
    assert import_option_for(file.read_bytes()) == "--from-mcp"
    draft = await import_mcp(str(file), service="https://mcp.rain.dev/m")
    assert {x.source for x in draft.tools} == {"good", "odd"}
    file.write_text(json.dumps({"mcpServers": {"x": one, "rain": {"url": "https://y.dev/mcp"}}}))
    with pytest.raises(UsageError, match="lists 2 MCP servers") as error:
        await import_mcp(str(file))
    assert "capdex init rain --from-mcp https://y.dev/mcp" in error.value.fix
    assert "FOO=VALUE " in error.value.fix


async def test_a_variable_of_a_configuration_is_that_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAIN_KEY", "it's 7")
    file = tmp_path / "mcp.json"
    script = "import os, sys; sys.exit('KEY is ' + os.environ['KEY'])"
    one = {"command": sys.executable, "args": ["-c", script], "env": {"KEY": "${RAIN_KEY}"}}
    file.write_text(json.dumps({"mcpServers": {"x": one}}))
    with pytest.raises(Unavailable) as error:
        await import_mcp(str(file))
    assert "KEY is it's 7" in error.value.why


async def test_a_command_may_be_a_list_and_a_url_has_the_words_of_its_host(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    one = {"command": [sys.executable, str(STUB), "empty"]}
    file.write_text(json.dumps({"mcpServers": {"x": one}}))
    draft = await import_mcp(str(file), service="https://mcp.rain.dev/m")
    assert {x.source for x in draft.tools} == {"good", "odd"}
    urls = {"rain": {"httpUrl": "https://a.dev/mcp"}, "tide": {"serverUrl": "https://b.dev/mcp"}}
    file.write_text(json.dumps({"mcpServers": {**urls, "c": {"disabled": True}}}))
    with pytest.raises(UsageError, match="lists 2 MCP servers") as error:
        await import_mcp(str(file))
    assert "init rain --from-mcp https://a.dev/mcp; or" in error.value.fix
    assert "init tide --from-mcp https://b.dev/mcp" in error.value.fix


@pytest.mark.parametrize("command", [sys.executable, "no-such-program"])
async def test_an_error_holds_no_key_of_a_configuration(tmp_path: Path, command: str) -> None:
    file = tmp_path / "mcp.json"
    one = {"command": command, "args": [str(STUB), "die"], "env": {"KEY": "s3cr3t-value"}}
    file.write_text(json.dumps({"mcpServers": {"x": one}}))
    with pytest.raises((Unavailable, UsageError)) as error:
        await import_mcp(str(file))
    assert "s3cr3t-value" not in json.dumps(error.value.to_json())
    assert command in error.value.message


# documents that would cost their reader too much ------------------------------------------------

DEEP = {
    "flow": b"a: " + b"[" * 1_000_000,
    "lists": b"- " * 400_000,
    "keys": b"? " * 200_000,
    "mappings": b"".join(b" " * i + b"a:\n" for i in range(200)),
}
BOMBS = {
    "aliases": ["a: &a [1, 2]"] + [f"{x}: &{x} [{', '.join([f'*{y}'] * 10)}]" for x, y in CHAIN],
    "merges": ["a: &a {k: 1}"]
    + [f"{x}: &{x} {{<<: [{', '.join([f'*{y}'] * 10)}]}}" for x, y in CHAIN],
    "itself": ["a: &a [*a]"],
}


@pytest.mark.parametrize("data", DEEP.values(), ids=DEEP)
def test_what_nests_too_deeply_is_refused_before_it_is_built(data: bytes) -> None:
    with pytest.raises(InvalidInput) as error:
        parse(data, "deep.yaml")
    # libyaml 0.2.6 itself reads no more than 1 000 levels
    assert re.search("nests deeper than 64 levels|maximum nesting depth", error.value.why)
    assert import_option_for(data) == ""


@pytest.mark.parametrize("lines", BOMBS.values(), ids=BOMBS)
def test_aliases_that_stand_for_too_much_are_refused(lines: list[str]) -> None:
    with pytest.raises(InvalidInput, match="cannot be read") as error:
        parse("\n".join(lines).encode(), "bomb.yaml")
    assert "alias" in error.value.why


def test_aliases_and_merges_of_a_document_are_read() -> None:
    text = "base: &b {type: object, x: 2020-01-31}\nmine: {<<: *b, title: T}\nagain: *b\n"
    value = parse(text.encode(), "small.yaml")
    assert value["mine"] == {**value["base"], "title": "T"}
    assert value["again"] == value["base"]


# lists of tools -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"model": "m", "functions": [{"name": "find", "parameters": SCHEMA}]},
        [{"type": "custom", "name": "find", "input_schema": SCHEMA}, {"type": "bash", "name": "b"}],
        {"tools": [{"type": "function", "name": "find", "parameters": SCHEMA, "strict": True}]},
        {"tools": [{"functionDeclarations": [{"name": "find", "parameters": SCHEMA}]}]},
        [{"function_declarations": [{"name": "find", "parametersJsonSchema": SCHEMA}]}],
        {
            "toolConfig": {
                "tools": [{"toolSpec": {"name": "find", "inputSchema": {"json": SCHEMA}}}]
            }
        },
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "find", "inputSchema": SCHEMA}]}},
    ],
    ids=["legacy", "anthropic", "responses", "gemini", "gemini-list", "bedrock", "tools/list"],
)
def test_lists_of_tools_in_other_forms_are_read(value: Any) -> None:
    data = json.dumps(value).encode()
    assert import_option_for(data) == "--from-openai"
    assert [x.after for x in import_openai(data, "大小").notes if x.subject == "name"] == [
        "my-tools"
    ]
    [tool] = import_openai(data, "mine").tools
    assert (tool.source, tool.parameters) == ("find", SCHEMA)


def test_all_lists_of_a_request_are_read() -> None:
    older = [{"name": "sort", "parameters": SCHEMA}]
    value = {"tools": [{"type": "function", "function": {"name": "find"}}], "functions": older}
    draft = import_openai(json.dumps(value).encode(), "mine")
    assert [x.source for x in draft.tools] == ["find", "sort"]


def test_a_list_of_tools_in_latin_1_is_converted_and_said() -> None:
    tool = {"name": "find", "description": "Für den Café-Besuch.", "parameters": SCHEMA}
    data = json.dumps([tool], ensure_ascii=False).encode("latin-1")
    assert import_option_for(data) == "--from-openai"
    draft = import_openai(data, "mine")
    assert draft.tools[0].description == "Für den Café-Besuch."
    assert ("encoding", "Latin-1") in [(x.subject, x.before) for x in draft.notes]


def test_a_list_that_is_not_read_is_told_what_is() -> None:
    with pytest.raises(InvalidInput, match="holds no list of tools") as error:
        import_openai(b'{"tools": []}', "mine")
    for form in ("OpenAI", "Anthropic", "Gemini", "Bedrock", "tools/list"):
        assert form in error.value.why


def test_types_in_capitals_are_those_of_gemini() -> None:
    schema = {"type": "OBJECT", "properties": {"q": {"type": "STRING", "nullable": True}}}
    data = json.dumps([{"functionDeclarations": [{"name": "find", "parameters": schema}]}])
    found = tools(write_package(import_openai(data.encode(), "mine")))["find"].parameters
    assert found == {"type": "object", "properties": {"q": {"type": ["string", "null"]}}}


def test_a_word_of_a_function_that_is_not_read_is_named() -> None:
    tool = {"name": "find", "inputs": {"q": {"type": "str", "required": True}}}
    package = write_package(import_openai(json.dumps([tool]).encode(), "mine"))
    assert ("find", "inputs", "left out") in [(x.source, x.subject, x.fate) for x in package.notes]


# skills -------------------------------------------------------------------------------------------


def skill(folder: Path, text: str, name: str = "SKILL.md", encoding: str = "utf-8") -> Path:
    (folder / name).write_bytes(text.encode(encoding))
    return folder


@pytest.mark.parametrize(
    "told",
    [
        *(
            "Use when: a chart is wanted",
            "Use when:",
            "@chart draws",
            "`chart` draws",
            "*all* use: it",
        ),
        *('"Charts" for: all', "[beta] draws", "it's 'a': \\"),
        *("{chart} draws", "> draws", "| a | b |"),
    ],
)
def test_a_text_that_lacks_its_quotes_is_read(tmp_path: Path, told: str) -> None:
    text = f"---\nname: chart\ndescription: {told}\n---\nDraw it.\n"
    assert import_skill(skill(tmp_path, text)).description == told


def test_a_text_on_two_lines_that_lacks_its_quotes_is_read(tmp_path: Path) -> None:
    text = "---\nname: 'chart'\r\ndescription: Use: a\n  chart: b\nmetadata:\n  a: b\n---\nDraw.\n"
    draft = import_skill(skill(tmp_path, text))
    assert (draft.name, draft.description) == ("chart", "Use: a chart: b")


def test_a_skill_is_known_by_its_whole_front_matter() -> None:
    front = f"description: {'Draws a chart. ' * 60}\nmetadata: {{a: b}}\nname: chart"
    assert import_option_for(f"---\n{front}\n---\nDraw.\n".encode()) == "--from-skill"
    assert import_option_for(b"---\nmetadata:\n  name: tea\n---\nname: x\n") == ""


def test_a_changed_name_and_a_licence_that_is_no_expression_are_said(tmp_path: Path) -> None:
    text = (
        "---\nname: 2fa-helper\ndescription: Helps.\nlicense: Proprietary. See LICENSE\n---\nDo.\n"
    )
    draft = import_skill(skill(tmp_path, text))
    made = write_package(draft)
    assert (draft.name, draft.title, "license:" in made.text) == ("fa-helper", "2fa-helper", False)
    assert {x.subject for x in made.notes} == {"name", "license"}
    named = import_skill(tmp_path, "two-factor").with_values(name="two-factor")
    assert "name" not in {x.subject for x in named.notes}


def test_the_name_that_is_given_names_a_skill_of_another_script(tmp_path: Path) -> None:
    folder = tmp_path / "表計算"
    folder.mkdir()
    text = "---\r\nname: 表計算\r\ndescription: 表を作る。\r\n---\r\n表を作ってください。\r\n"
    draft = import_skill(skill(folder, text, "skill.md"), "hyo")
    assert (draft.name, draft.title) == ("hyo", "表計算")


def test_a_key_that_stands_twice_in_front_matter_is_said(tmp_path: Path) -> None:
    text = "---\nname: rain\nname: snow\ndescription: Tells.\n---\nDo it.\n"
    draft = import_skill(skill(tmp_path, text))
    assert draft.name == "rain"
    assert [(x.subject, x.fate) for x in draft.notes] == [("front matter", "changed")]
    assert '"name" stands here again' in draft.notes[0].after


def test_latin_1_is_converted_and_said(tmp_path: Path) -> None:
    text = "---\nname: cafe\ndescription: Pour le café.\n---\nÀ table.\n"
    draft = import_skill(skill(tmp_path, text, encoding="latin-1"))
    assert (draft.description, draft.prompt) == ("Pour le café.", "À table.")
    assert [(x.subject, x.before) for x in draft.notes] == [("encoding", "Latin-1")]


async def test_headers_of_a_configuration_are_named_and_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    one = {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Tide-Key": "s3cr3t-of-nobody"}}
    file.write_text(json.dumps({"mcpServers": {"x": one}}))
    with pytest.raises(Unavailable) as error:
        await import_mcp(str(file))
    assert "its headers were not sent: X-Tide-Key" in error.value.why
    assert "s3cr3t" not in str(error.value) + error.value.fix


async def test_a_file_of_the_mcp_registry_is_told_what_to_give(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    value: dict[str, Any] = {"name": "dev.tides/mcp", "remotes": [{"url": "https://t.dev/mcp"}]}
    found = {"registryType": "npm", "identifier": "@tides/mcp", "version": "1.2.0"}
    value["packages"] = [found, {"registryType": "pypi", "identifier": "tides"}, 7]
    file.write_text(json.dumps(value))
    with pytest.raises(UsageError, match="describes a server of the MCP registry") as error:
        await import_mcp(str(file))
    assert "--from-mcp https://t.dev/mcp" in error.value.fix
    assert "--from-mcp 'npx -y @tides/mcp@1.2.0'" in error.value.fix
    assert "--from-mcp 'uvx tides'" in error.value.fix


CHART = "---\nname: chart\ndescription: Draws.\n---\nDraw it.\n"


@pytest.mark.parametrize("name", ["Skill.md", "SKILL.MD", "skill.md"])
def test_the_name_of_the_file_may_have_letters_of_any_case(tmp_path: Path, name: str) -> None:
    draft = import_skill(skill(tmp_path, CHART, name))
    assert (draft.name, draft.files, draft.notes) == ("chart", [], [])


@pytest.mark.parametrize(
    "text",
    [
        CHART.replace("\n", "\r\n"),
        CHART.replace("Draws.", ">-\n  Draws."),
        CHART.replace("Draws.", "|\n  Draws."),
    ],
)
def test_nothing_is_said_of_a_skill_that_is_carried_whole(tmp_path: Path, text: str) -> None:
    draft = import_skill(skill(tmp_path, text))
    assert (draft.description, draft.prompt, draft.notes) == ("Draws.", "Draw it.", [])


def test_text_of_windows_keeps_its_quotation_marks(tmp_path: Path) -> None:
    path = tmp_path / "SKILL.md"
    path.write_bytes(b"---\nname: tide\ndescription: d\n---\nIt\x92s \x93high\x94.\n")
    package = write_package(import_skill(path))
    assert read(package.text.encode()).require().prompt == "It’s “high”.\n"
    assert [(x.before, x.after) for x in package.notes] == [("Windows-1252", "UTF-8")]


def test_a_text_in_utf_16_is_converted_and_said(tmp_path: Path) -> None:
    draft = import_skill(skill(tmp_path, CHART, encoding="utf-16"))
    assert (draft.name, draft.prompt) == ("chart", "Draw it.")
    assert [(x.subject, x.before) for x in draft.notes] == [("encoding", "UTF-16")]


def test_what_stands_behind_a_number_sign_is_said(tmp_path: Path) -> None:
    text = CHART.replace("Draws.", "Writes C# and #tags").replace("chart\n", "'#1 chart' # b\n")
    draft = import_skill(skill(tmp_path, text))
    assert draft.description == "Writes C# and"
    said = {(x.subject, x.before) for x in draft.notes if x.fate == "left out"}
    assert said == {("description", "#tags")}


def test_hidden_characters_of_the_instructions_are_counted(tmp_path: Path) -> None:
    draft = import_skill(skill(tmp_path, CHART.replace("it", "i\u202et\x07")))
    assert draft.prompt == "Draw it."
    assert ("instructions", "2 characters") in [(x.subject, x.before) for x in draft.notes]


@pytest.mark.parametrize("word", ["name", "description", "license"])
def test_a_list_in_the_place_of_a_text_is_refused(tmp_path: Path, word: str) -> None:
    front = {"name": "a", "description": "b", word: "[a, b]"}
    text = "---\n" + "".join(f"{x}: {y}\n" for x, y in front.items()) + "---\nx\n"
    with pytest.raises(InvalidInput, match="is not an Agent Skill") as error:
        import_skill(skill(tmp_path, text))
    assert f"the {word} in its front matter is no text" in error.value.why


def test_a_description_that_is_cut_is_said(tmp_path: Path) -> None:
    package = write_package(import_skill(skill(tmp_path, CHART.replace("Draws.", "word " * 900))))
    assert ("description", "4499 bytes") in [(x.subject, x.before) for x in package.notes]
