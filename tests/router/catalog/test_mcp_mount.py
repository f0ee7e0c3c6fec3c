"""A foreign MCP server: its tools take the same pipeline, and what it asks for is refused."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp.client.stdio import StdioServerParameters
from structlog.testing import capture_logs

from capdex.errors import CapdexError, Code, ExecutionFailed, Refused, Unavailable
from capdex.json import Json
from capdex_router.bindings import mcp_session, mcp_transport
from capdex_router.bindings.mcp_transport import MAX_LINE_BYTES
from capdex_router.catalog import mcp_mount
from capdex_router.catalog.mcp_mount import Mounted
from capdex_router.faces.actions import Actions
from capdex_router.faces.arguments import Wanted
from capdex_router.faces.tools import LEVELS, MAX_HITS
from capdex_router.home.audit_log import tail
from capdex_router.invoke.invoke import Caller
from capdex_router.model.capability import Capability
from capdex_router.policy.consent import Refuse, clean
from capdex_router.policy.grants import Grant
from capdex_router.runtime import open_runtime
from tests.router.catalog.hostile import (
    ANSWERS,
    ERRORS,
    HINTS,
    LINES,
    NAMES,
    STRAYS,
    UNSEEN,
    USABLE,
)
from tests.router.simulated import Person
from tests.router.small_runtime import Runtime

SERVER = StdioServerParameters(
    command=sys.executable, args=[str(Path(__file__).with_name("foreign.py"))]
)
HOSTILE = str(Path(__file__).with_name("hostile.py"))


def hostile_server(mode: str, file: Path) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[HOSTILE, mode, str(file)])


@asynccontextmanager
async def started(name: str, server: StdioServerParameters) -> AsyncIterator[Mounted]:
    """A server that runs; raises Unavailable."""
    async with Mounted(name, server) as source:
        await source.session()
        yield source


@asynccontextmanager
async def hostile(mode: str, file: Path) -> AsyncIterator[Capability]:
    """The tool of the hostile server."""
    async with started("hostile", hostile_server(mode, file)) as source:
        (listed,) = source.listed()
        yield source.load(listed.ref)


async def run(tool: Capability) -> Json:
    assert tool.executor is not None
    return await tool.executor.run({}, timeout_s=60)


async def test_its_tools_are_capabilities_with_the_whole_pipeline(
    runtime: Callable[..., Runtime],
) -> None:
    async with started("foreign", SERVER) as source:
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


async def test_a_server_gets_no_variable_but_those_that_every_program_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CAPDEX_PASSPHRASE", "API_KEY", "USER"):
        monkeypatch.setenv(name, "x")
    told = tmp_path / "told"
    args = ["-c", 'env > "$0"; exec "$@"', str(told), SERVER.command, *SERVER.args]
    async with started("foreign", StdioServerParameters(command="sh", args=args)):
        names = {line.partition("=")[0] for line in told.read_text("utf-8").splitlines()}
    assert {"PATH", "USER"} <= names
    assert names - {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"} <= {"PWD", "SHLVL", "_"}


async def test_a_tool_whose_name_finds_nothing_or_forges_a_line_is_left_out_with_a_line(
    tmp_path: Path,
) -> None:
    servers = {"hostile": hostile_server("names", tmp_path / "x")}
    with capture_logs() as logs:
        async with open_runtime(tmp_path / "home", servers=servers) as runtime:
            actions = Actions(runtime.catalog, runtime.search, runtime.invoker, runtime.results)
            listed = (await actions.manage("list", "", Refuse())).splitlines()
            found = (await actions.find("It answers", MAX_HITS)).splitlines()
            for name in USABLE:
                described = actions.describe(f"mcp:hostile#{name}")
                assert isinstance(described, dict)
                wanted = Wanted(described["uri"], None, {})
                assert (await actions.call(wanted, Caller(Person())))[0].ok
    assert [line.removesuffix("@1.0.0 It answers.") for line in listed] == [
        f"mcp:hostile#{name}" for name in USABLE
    ]
    assert len(found) == len(USABLE)
    left_out = [line for line in logs if line["event"] == "capability left out"]
    assert len(left_out) == len(NAMES) - len(USABLE)
    assert all(clean(line["id"]) == line["id"] for line in left_out)


async def test_what_nobody_sees_in_the_words_of_a_server_is_written_out(tmp_path: Path) -> None:
    servers = {"hostile": hostile_server("unseen", tmp_path / "x")}
    async with open_runtime(tmp_path / "home", servers=servers) as runtime:
        actions = Actions(runtime.catalog, runtime.search, runtime.invoker, runtime.results)
        shown = [await actions.find("t"), *(actions.describe("mcp:hostile#t", x) for x in LEVELS)]
        failed, _ = await actions.call(Wanted("mcp:hostile#t", None, {}), Caller(Person()))
    assert failed.error is not None
    for answer in (*shown, failed.error):
        said = orjson.dumps(answer).decode()
        assert not set(UNSEEN).intersection(said), said
    written = json.dumps(UNSEEN)[1:-1]
    assert f'"description":"{json.dumps(written)[1:-1]}"' in orjson.dumps(shown[3]).decode()
    assert set(failed.error["details"]["input_schema"]["properties"]) == {"x", f"x{written}"}


async def test_a_server_that_does_not_start_is_unavailable(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    with pytest.raises(Unavailable) as refused:
        async with started("none", StdioServerParameters(command=gone)):
            pass
    assert refused.value.code == Code.NODE_UNAVAILABLE
    assert refused.value.why == f"its program does not start: {gone}: No such file or directory"


async def test_a_pattern_of_the_server_is_checked_in_linear_time(
    tmp_path: Path, runtime: Callable[..., Runtime]
) -> None:
    async with hostile("pattern", tmp_path / "x") as tool:
        found = await runtime(tool).call("mcp:hostile#t", {}, Person())
    assert found["error"]["reason"] == "OUTPUT_INVALID"


async def test_an_output_schema_that_cannot_be_used_says_that_the_tool_ran(
    tmp_path: Path, runtime: Callable[..., Runtime]
) -> None:
    async with hostile("no schema", tmp_path / "x") as tool:
        found = await runtime(tool).call("mcp:hostile#t", {}, Person())
    assert found["error"]["reason"] == "OUTPUT_INVALID"
    assert found["error"]["message"].startswith("the tool ran, ")
    assert "schema" in found["error"]["details"]["why"]


@pytest.mark.parametrize("mode", ERRORS)
async def test_an_error_of_the_server_is_told_whatever_its_code_and_words(
    mode: str, tmp_path: Path
) -> None:
    async with hostile(mode, tmp_path / "x") as tool:
        with pytest.raises(ExecutionFailed) as failed:
            await run(tool)
    said = orjson.loads(ERRORS[mode])
    assert failed.value.why == f"it says {json.dumps(said['message'])}"
    assert failed.value.details == {"jsonrpc_code": int(said["code"])}


async def test_a_server_that_ends_in_a_call_is_unavailable(tmp_path: Path) -> None:
    async with hostile("ends", tmp_path / "x") as tool:
        for sent in ({"sent": True}, None):  # the second call is not made
            with pytest.raises(Unavailable, match="the session with the MCP server ended") as ended:
                await run(tool)
            assert ended.value.why == "its program ended with status 0"
            assert re.fullmatch(
                "it is started again at its next use, [0-9]+ s from now or later", ended.value.fix
            )
            assert ended.value.details == sent


async def test_a_program_that_ends_before_its_child_is_unavailable(tmp_path: Path) -> None:
    async with hostile("ends before its child", tmp_path / "x") as tool:
        with pytest.raises(Unavailable) as ended:
            await run(tool)
    assert ended.value.why == "its program ended with status 0"


async def test_a_server_that_ended_is_started_again_by_its_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_mount, "RETRY_S", 0.0)
    async with hostile("ends once", tmp_path / "x") as tool:
        with pytest.raises(Unavailable) as ended:
            await run(tool)
        assert ended.value.fix == "it is started again at its next use"
        assert await run(tool) == {"text": ""}


async def test_a_tool_that_changed_with_a_start_does_not_run_as_the_one_that_was_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_mount, "RETRY_S", 0.0)
    async with started("hostile", hostile_server("other then", tmp_path / "x")) as source:
        (before,) = [source.load(listed.ref) for listed in source.listed()]
        with pytest.raises(Unavailable):
            await run(before)
        with pytest.raises(Refused, match="changed"):
            await run(before)
        (after,) = [source.load(listed.ref) for listed in source.listed()]
        assert await run(after) == {"text": ""}
    assert after.owner.digest != before.owner.digest


async def test_a_tool_that_its_running_server_changes_is_another_from_its_next_use_on(
    tmp_path: Path,
) -> None:
    async with started("hostile", hostile_server("tells", tmp_path / "x")) as source:
        (before,) = [source.load(listed.ref) for listed in source.listed()]
        assert await run(before) == {"text": ""}
        with pytest.raises(Refused, match="changed"):
            await run(before)
        (after,) = [source.load(listed.ref) for listed in source.listed()]
        assert await run(after) == {"text": ""}
    assert after.owner.digest != before.owner.digest


async def test_a_server_that_tells_of_another_list_and_never_gives_it_keeps_its_tools(
    tmp_path: Path,
) -> None:
    server = hostile_server("tells alone", tmp_path / "x")
    async with started("hostile", server) as source, asyncio.timeout(50):
        (tool,) = [source.load(listed.ref) for listed in source.listed()]
        assert await run(tool) == {"text": ""}
        await source.awake(0.1)
        await source.session()  # which waits for no list


async def test_a_server_that_tells_of_a_list_again_and_again_is_not_waited_for_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_session, "QUICK_S", 0.0)
    monkeypatch.setattr(mcp_session, "PAUSE", 10**6)
    server = hostile_server("tells always", tmp_path / "x")
    async with started("hostile", server) as source, asyncio.timeout(50):
        (tool,) = [source.load(listed.ref) for listed in source.listed()]
        assert await run(tool) == {"text": ""}
        await source.awake(0.5)
        await source.session()  # which waits for no list


async def test_a_call_waits_for_no_other_server_than_its_own(tmp_path: Path) -> None:
    names = {"deaf": "tells always", "good": "plain"}
    servers = {name: hostile_server(names[name], tmp_path / name) for name in names}
    async with open_runtime(tmp_path / "home", servers=servers) as runtime:
        actions = Actions(
            runtime.catalog, runtime.search, runtime.invoker, runtime.results,
            servers=runtime.servers,
        )  # fmt: skip
        for name in names:
            assert (await actions.call(Wanted(f"mcp:{name}#t", None, {}), Caller(Person())))[0].ok
        assert (tmp_path / "deaf").read_text().isdigit()  # it was not asked for its list


async def test_a_list_that_changes_while_it_is_given_is_asked_for_again(tmp_path: Path) -> None:
    async with hostile("tells while it lists", tmp_path / "x") as tool:  # used once since its start
        assert tool.output_schema == {"type": "object"}


@pytest.mark.parametrize("use", ["find", "list", "call"])
async def test_a_server_that_did_not_start_is_told_and_started_again_at_the_next_use(
    use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "server"
    servers = {"late": StdioServerParameters(command=str(program))}
    async with open_runtime(tmp_path / "home", servers=servers) as runtime:
        actions = Actions(
            runtime.catalog, runtime.search, runtime.invoker, runtime.results,
            servers=runtime.servers,
        )  # fmt: skip
        wanted, caller = Wanted("mcp:late#t", None, {}), Caller(Person())
        with pytest.raises(Unavailable, match="does not answer") as early:
            await actions.call(wanted, caller)
        assert "s from now or later" in early.value.fix
        for text in (await actions.find("t"), await actions.manage("list", "", Refuse())):
            assert "mcp:late is missing: the MCP server late does not answer" in text
        command = shlex.join([sys.executable, HOSTILE, "plain", str(tmp_path / "x")])
        program.write_text(f"#!/bin/sh\nexec {command}\n")
        program.chmod(0o700)
        monkeypatch.setattr(runtime.servers[0], "_next", 0.0)
        match use:
            case "find":
                assert "mcp:late#t" in await actions.find("t")
            case "list":
                assert await actions.manage("list", "", Refuse()) == "mcp:late#t@1.0.0"
            case _:
                assert (await actions.call(wanted, caller))[0].ok
    lines = [
        line for line in tail(tmp_path / "home" / "audit.jsonl", 9) if line["event"] == "mount"
    ]
    assert len(lines) == 1


def test_starts_of_a_server_that_ends_are_ever_further_apart() -> None:
    pauses = [0.0]
    for _ in range(8):
        pauses.append(mcp_mount.next_pause(pauses[-1], 0.001))
    assert pauses[1:] == [30, 60, 120, 240, 480, 960, 960, 960]
    assert mcp_mount.next_pause(960, 961) == 30


@pytest.mark.parametrize("mode", ["blocks", "icons", "keys"])
async def test_a_result_of_many_parts_is_refused_before_the_sdk_compares_them(
    mode: str, tmp_path: Path
) -> None:
    async with hostile(mode, tmp_path / "x") as tool:
        with pytest.raises(ExecutionFailed) as failed:
            await run(tool)
    assert failed.value.why.startswith("it is an answer of over 20000 parts")


async def test_structured_content_may_have_many_parts(tmp_path: Path) -> None:
    async with hostile("free", tmp_path / "x") as tool:
        assert len((await run(tool))["x"]) == 30_000


@pytest.mark.parametrize("mode", ["list", "nothing"])
async def test_a_result_that_is_not_that_of_a_tool_is_a_failure(mode: str, tmp_path: Path) -> None:
    async with hostile(mode, tmp_path / "x") as tool:
        with pytest.raises(ExecutionFailed, match="not MCP") as failed:
            await run(tool)
    assert failed.value.details == {"sent": True}


@pytest.mark.parametrize("mode", [*ANSWERS, *LINES])
async def test_an_answer_that_is_none_fails_its_call_at_once(mode: str, tmp_path: Path) -> None:
    async with hostile(mode, tmp_path / "x") as tool:
        with pytest.raises(ExecutionFailed) as failed:
            await run(tool)
    assert failed.value.message == "the answer of the MCP server cannot be used"
    assert "expected was an object" in failed.value.why
    assert failed.value.fix
    assert failed.value.details == {"sent": True}


@pytest.mark.parametrize("mode", STRAYS)
async def test_the_error_of_the_deadline_tells_what_came_and_was_no_answer(
    mode: str, tmp_path: Path
) -> None:
    async with hostile(mode, tmp_path / "x") as tool:
        assert tool.executor is not None
        with pytest.raises(Unavailable) as late:
            await tool.executor.run({}, timeout_s=0.01)
    assert late.value.code == Code.TIMEOUT
    assert f"it sent {STRAYS[mode][1]}" in late.value.why
    assert "\\n" not in late.value.why
    assert "stdout" in late.value.fix


@pytest.mark.parametrize("mode", ["flood", "many changes"])  # which the SDK reads, one by one
async def test_a_flood_of_what_nobody_asked_for_ends_its_server(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_transport, "MAX_UNASKED_BYTES", 1024 * 1024)
    async with hostile(mode, tmp_path / "x") as tool:
        with pytest.raises(ExecutionFailed, match="was ended"):
            await run(tool)


async def test_an_empty_cursor_is_that_of_the_last_page(tmp_path: Path) -> None:
    async with hostile("empty cursor", tmp_path / "x") as tool:
        assert tool.name == "t"


async def test_a_line_without_end_ends_its_server_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "x"
    async with started("foreign", SERVER) as source, hostile("long", file) as tool:
        for _ in range(2):
            with pytest.raises(ExecutionFailed) as failed:
                await run(tool)
            assert str(MAX_LINE_BYTES) in str(failed.value.why)
        other = source.load(next(x.ref for x in source.listed() if x.name == "read"))
        assert other.executor is not None
        assert await other.executor.run({"a": 1}, timeout_s=60) == {"text": "read {'a': 1}"}
    # The rest stayed unread: the program could not write it.
    assert int(file.read_text()) < 4 * MAX_LINE_BYTES


async def test_a_server_that_asks_and_reads_no_answer_is_ended(tmp_path: Path) -> None:
    async with hostile("pings", tmp_path / "x") as tool:
        with pytest.raises(ExecutionFailed, match="was ended"):
            await run(tool)


async def test_lines_that_are_no_message_are_passed_over(tmp_path: Path) -> None:
    async with hostile("logs", tmp_path / "x") as tool:
        assert tool.ref.version == "1.0.0"


async def test_a_server_that_never_answers_meets_the_deadline(tmp_path: Path) -> None:
    async with hostile("silent", tmp_path / "x") as tool:
        assert tool.executor is not None
        with pytest.raises(Unavailable) as late:
            await tool.executor.run({}, timeout_s=0.01)
    assert late.value.code == Code.TIMEOUT


async def test_a_server_that_never_greets_is_given_no_time_to_say_goodbye(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CONNECT_S", "CLOSE_S"):
        monkeypatch.setattr(mcp_session, name, 3600.0)
    mute = StdioServerParameters(command="sleep", args=["3600"])
    async with asyncio.timeout(60), Mounted("mute", mute) as source:
        await source.awake(0.1)
        assert source.down is not None
        assert source.down.message == "the MCP server mute does not answer"  # no session ended


@pytest.mark.parametrize("mode", ["silent", "stubborn"])
async def test_a_server_ends_with_its_mount(mode: str, tmp_path: Path) -> None:
    async with hostile(mode, tmp_path / "pid"):
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("mode", ["long list", "no list", "one page"])
async def test_a_list_of_tools_that_cannot_be_used_is_unavailable(
    mode: str, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable) as refused:
        async with hostile(mode, tmp_path / "x"):
            pass
    assert refused.value.code == Code.NODE_UNAVAILABLE


async def test_a_server_that_refuses_to_list_its_tools_is_unavailable_with_its_words(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unavailable) as refused:
        async with hostile("refuses", tmp_path / "x"):
            pass
    assert "the disk is full" in refused.value.why


async def test_a_protocol_that_nobody_knows_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as refused:
        async with hostile("other protocol", tmp_path / "x"):
            pass
    assert "9999-01-01" in refused.value.why


async def test_resources_that_do_not_come_are_none_and_their_reading_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_mount, "RESOURCES_S", 0.01)
    async with started("hostile", hostile_server("silent", tmp_path / "x")) as source:
        assert await source.resources() == []
        with pytest.raises(Unavailable) as late:
            await source.read("a://b")
    assert late.value.code == Code.TIMEOUT


async def test_a_definition_that_would_fill_a_context_is_shown_in_parts(tmp_path: Path) -> None:
    servers = {"hostile": hostile_server("long words", tmp_path / "x")}
    async with open_runtime(tmp_path / "home", servers=servers) as runtime:
        actions = Actions(runtime.catalog, runtime.search, runtime.invoker, runtime.results)
        described = actions.describe("mcp:hostile#t0")
        assert isinstance(described, dict)
        assert described["bytes"] > 2_000_000
        assert len(orjson.dumps(described)) < 40_000
        rest, _ = await actions.call(
            Wanted(described["result"], None, {"offset": 9}), Caller(Person())
        )
        assert rest.ok
        assert len(str(actions.describe("mcp:hostile#t0", 2)).splitlines()) == 65
        failed, _ = await actions.call(Wanted("mcp:hostile#t0", None, {}), Caller(Person()))
        assert len(orjson.dumps(failed.to_json())) < 40_000


async def test_a_program_that_ends_at_once_is_unavailable() -> None:
    with pytest.raises(CapdexError) as refused:
        async with started("true", StdioServerParameters(command="true")):
            pass
    assert refused.value.code == Code.NODE_UNAVAILABLE


async def test_hints_and_output_schema_belong_to_the_digest(tmp_path: Path) -> None:
    digests = []
    for mode in ("plain", "plain", "schema", *HINTS):
        async with hostile(mode, tmp_path / "x") as tool:
            digests.append(tool.owner.digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 2 + len(HINTS)


async def test_what_is_granted_to_a_tool_is_not_granted_to_its_copy_on_another_server(
    tmp_path: Path, runtime: Callable[..., Runtime]
) -> None:
    server = hostile_server("plain", tmp_path / "x")
    async with started("good", server) as one, started("copy", server) as other:
        tools = [source.load(listed.ref) for source in (one, other) for listed in source.listed()]
        run, person = runtime(*tools), Person()
        granted = [Grant(x.owner.name, x.owner.digest, x.name, "effects") for x in tools[:1]]
        run.rights.grant(granted)
        for tool in tools:
            await run.call(tool.ref.capability_id, {}, person)
    dangers = [question.summary.startswith("It may destroy") for question in person.asked]
    assert dangers == [False, True]


async def test_what_is_granted_to_a_server_is_not_granted_to_another_program_of_its_name(
    tmp_path: Path, runtime: Callable[..., Runtime]
) -> None:
    person = Person()
    for folder in ("work", "work", "home"):
        async with started("files", hostile_server("plain", tmp_path / folder)) as source:
            (tool,) = (source.load(listed.ref) for listed in source.listed())
            run = runtime(tool)
            await run.call(tool.ref.capability_id, {}, person)
            run.rights.grant([Grant(tool.owner.name, tool.owner.digest, tool.name, "effects")])
    dangers = [question.summary.startswith("It may destroy") for question in person.asked]
    assert dangers == [True, False, True]
    first, second = ("\n".join(question.lines) for question in person.asked[::2])
    assert f'the command of this server: run "{sys.executable}" "' in first
    assert f'"{tmp_path / "work"}"' in first
    assert f'"{tmp_path / "home"}"' in second
