"""Learned tools in the catalogue and the pipeline: consent, the sandbox, a program that changed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import Code, InvalidInput, UsageError
from capdex.json import Json
from capdex_router.commands.intents.manifest import CommandManifest, CommandTool, parse_intent
from capdex_router.commands.sandbox.bubblewrap import Sandbox
from capdex_router.commands.source import LearnedTools, refs
from capdex_router.invoke.invoke import Caller
from capdex_router.model.refs import InvokeResult
from capdex_router.runtime import Runtime, open_runtime
from tests.router.commands.programs import (
    emails,
    learned_inbox,
    study_inbox,
    write_boxes,
    write_inbox,
)
from tests.router.simulated import Person

SUMMARY, DELETE = "learned:inboxd#check-email", "learned:inboxd#delete-emails"
SORT = "learned:sort#run"
IDS = {"ids": ["abc123", "def456"]}


async def call(
    runtime: Runtime,
    name: str,
    given: Any,
    person: Person | None = None,
    version: str | None = None,
) -> dict[str, Any]:
    caller = Caller(person) if person else Caller()
    return (await runtime.invoker.invoke(name, version, given, caller)).to_json()


async def test_a_learned_tool_is_found_described_and_called(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        hits = runtime.search.find("unread count", 1)
        assert [hit.listed.ref.capability_id for hit in hits] == [SUMMARY]
        assert runtime.search.domains() == {"email": 1}
        found = runtime.catalog.get(SUMMARY).manifest()
        assert (found["version"], found["kind"], found["name"]) == ("1.0.0", "tool", "check-email")
        assert "command" not in str(found)
        called = await call(runtime, SUMMARY, {})
    assert called["output"] == {"result": [{"name": "work", "unread": 3}]}
    assert called["ok"]


async def test_what_may_destroy_is_asked_for_each_time(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        refused = await call(runtime, DELETE, IDS)
        assert refused["error"]["reason"] == "CONFIRM_NEEDED"
        no, yes = Person(agrees=False), Person()
        assert (await call(runtime, DELETE, IDS, no))["error"]["reason"] == "NO_CONSENT"
        assert emails(tmp_path) == ["abc123", "def456", "ghi789"]
        called = await call(runtime, DELETE, IDS, yes)
        assert called["output"] == {"deleted": 2, "ids": ["abc123", "def456"]}
        await call(runtime, DELETE, {"ids": ["ghi789"]}, yes)
    assert len(yes.asked) == 2
    program = str(tmp_path / "inbox")
    argv = [program, "delete", "--ids=abc123,def456", "--confirm"]
    assert yes.asked[0].lines[0] == "run " + " ".join(f'"{part}"' for part in argv)


@pytest.mark.parametrize("does", ["may change", "reads"])
async def test_a_run_is_asked_about_with_the_folder_that_it_sees(tmp_path: Path, does: str) -> None:
    (work := tmp_path / 'my "work"').mkdir()
    async with open_runtime(tmp_path / "router", work=work) as runtime:
        learned = await runtime.learning.study("sort")
        runtime.learning.keep(replace(learned, writable=does == "may change"))
        await call(runtime, SORT, {}, person := Person(agrees=False))
    folder = str(work.resolve()).replace('"', '\\"')
    assert f'  {does} the folder "{folder}"' in person.asked[0].lines


async def test_a_program_is_called_by_its_help_alone(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/notes.txt").write_text("9\n10\n-x\n")
    async with open_runtime(tmp_path / "router", work=tmp_path / "work") as runtime:
        runtime.learning.keep(await runtime.learning.study("sort"))
        hits = runtime.search.find("sorted concatenation", 1)
        assert [hit.listed.ref.capability_id for hit in hits] == [SORT]
        given = {"numeric_sort": True, "reverse": True, "file": ["notes.txt"]}
        refused = await call(runtime, SORT, given)
        assert refused["error"]["reason"] == "CONFIRM_NEEDED"
        yes = Person()
        for _ in range(2):
            called = await call(runtime, SORT, given, yes)
            assert called["output"] == {"lines": ["10", "9", "-x"]}
    assert len(yes.asked) == 2
    assert yes.asked[0].lines[0].endswith('sort" "--numeric-sort" "--reverse" "notes.txt"')


@pytest.mark.parametrize(
    "given", [{"files": ["x"]}, {"parallel": "2"}, {"file": "x"}, {"reverse": 1}, {"file": ["-o"]}]
)
async def test_an_input_that_the_help_does_not_have_runs_nothing(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    async with open_runtime(tmp_path / "router", work=tmp_path / "work") as runtime:
        runtime.learning.keep(await runtime.learning.study("sort"))
        person = Person()
        found = await call(runtime, SORT, given, person)
    assert found["error"]["code"] == "INVALID_INPUT"
    assert person.asked == []


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    subprocess.run(["git", "init", "--quiet", work], check=True)
    (work / "notes.txt").write_text("x\n")
    return work


async def test_a_command_that_only_reads_is_not_asked_for(tmp_path: Path, repository: Path) -> None:
    async with open_runtime(tmp_path / "router", work=repository) as runtime:
        runtime.learning.keep(await runtime.learning.study("git"))
        found = await call(runtime, "learned:git#status", {"short": True})
        assert found["output"] == {"lines": ["?? notes.txt"]}
        refused = await call(runtime, "learned:git#add", {"pathspec": ["notes.txt"]})
        assert refused["error"]["reason"] == "CONFIRM_NEEDED"


async def test_a_program_that_changed_is_learned_again_by_its_help(tmp_path: Path) -> None:
    program = write_boxes(tmp_path)
    (tmp_path / "work").mkdir()
    async with open_runtime(tmp_path / "router", work=tmp_path / "work") as runtime:
        runtime.learning.keep(await runtime.learning.study(str(program)))
        listing = "learned:boxes#list"
        assert (await call(runtime, listing, {"all": True}, Person()))["output"] == {
            "lines": ["--all"]
        }
        program.write_text(program.read_text().replace("--all", "--every"))
        found = await call(runtime, listing, {"every": True})
        assert found["error"]["reason"] == "CONFIRM_NEEDED"
        assert (await call(runtime, listing, {"all": True}))["error"]["code"] == "INVALID_INPUT"


async def test_an_input_that_breaks_the_schema_is_refused(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        for given in ({}, {"ids": "a"}, {"ids": [1]}):
            found = await call(runtime, DELETE, given, Person())
            assert found["error"]["code"] == "INVALID_INPUT"


async def test_a_program_that_changed_is_learned_again_and_asked_for_again(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        program = tmp_path / "inbox"
        program.write_text(program.read_text().replace("1.0.0", "1.1.0"))
        found = await call(runtime, SUMMARY, {})
        assert found["error"]["reason"] == "CONFIRM_NEEDED"
        assert runtime.catalog.get(SUMMARY).ref.version == "1.1.0"
        assert (await call(runtime, SUMMARY, {}, version="1.0.0"))["error"]["code"] == "NOT_FOUND"
        person = Person()
        assert (await call(runtime, SUMMARY, {}, person))["ok"]
        assert (await call(runtime, SUMMARY, {}))["ok"]
    assert len(person.asked) == 1


async def test_a_program_that_lost_an_option_does_not_run(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        program = tmp_path / "inbox"
        program.write_text(program.read_text().replace('"--ids"', '"--names"'))
        found = await call(runtime, SUMMARY, {}, Person())
        assert found["error"]["code"] == "INVALID_INPUT"
        assert "--ids" in found["error"]["message"]
        program.unlink()
        person = Person()
        found = await call(runtime, DELETE, IDS, person)
        assert found["error"]["code"] == "NOT_FOUND"
        assert found["error"]["details"]["fix"].endswith("capdex learn inboxd --remove")
        assert person.asked == []  # what cannot run is not asked about


async def test_a_grant_dies_with_what_a_run_may_do(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        before = runtime.catalog.get(SUMMARY).owner.digest
        found = await study_inbox(runtime, tmp_path)
        assert found.content == before
        for changed in ({"writable": False}, {"readable": ()}, {"digest": "ab" * 32}):
            assert replace(found, **changed).content != before


@pytest.mark.parametrize(
    ("own", "work", "readable"),
    [
        ("work/router", "work", "."),
        ("router", "router/learned", "."),
        ("work", "work", "."),
        ("a/router", "work", "a"),
    ],
)
async def test_the_directory_of_the_router_is_not_shown_to_programs(
    tmp_path: Path, own: str, work: str, readable: str
) -> None:
    write_inbox(tmp_path)
    async with open_runtime(tmp_path / own, work=tmp_path / work) as runtime:
        learned = await study_inbox(runtime, tmp_path)
        more = () if readable == "." else (tmp_path / readable,)
        runtime.learning.keep(replace(learned, readable=(*learned.readable, *more)))
        found = await call(runtime, SUMMARY, {}, Person())
    assert "do not see" in found["error"]["message"]
    assert "--work" in found["error"]["details"]["fix"]


async def test_without_a_sandbox_a_tool_is_described_and_does_not_run(tmp_path: Path) -> None:
    def missing() -> Sandbox:
        raise UsageError("no sandbox", fix="install bubblewrap")

    async with learned_inbox(tmp_path) as runtime:
        tools = LearnedTools(
            runtime.learning, work=tmp_path / "work", own=tmp_path / "router", sandbox=missing
        )
        (ref,) = (one.ref for one in tools.listed() if one.ref.capability_id == SUMMARY)
        executor = tools.load(ref).executor
    assert executor is not None
    with pytest.raises(InvalidInput, match="no sandbox"):
        executor.requests({})


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ([["Search for!"], ["search for"], ["re:x", "Search  For"]],
         ["search-for", "search-for-2", "search-for-3"]),
        ([["re:x"], ["日本"], ["-"]], ["run", "run-2", "run-3"]),
        ([["a" * 60]], ["a" * 48]),
    ],
)  # fmt: skip
def test_each_intent_has_a_name(patterns: Sequence[list[str]], names: list[str]) -> None:
    intents = tuple(parse_intent({"patterns": one, "command": "x"}) for one in patterns)
    found = refs(CommandTool(CommandManifest("d", "x", "", "1.0.0", "x"), intents))
    assert [ref.capability_id for ref in found] == [f"learned:x#{name}" for name in names]


async def test_a_wish_reaches_no_command_that_was_made_from_a_help(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "router", work=tmp_path) as runtime:
        runtime.learning.keep(await runtime.learning.study(str(write_boxes(tmp_path))))
        for want in ("list", "boxes list", "Show the boxes", "run"):
            with pytest.raises(InvalidInput) as unknown:
                runtime.learned.named(want)
            assert unknown.value.code == Code.NOT_FOUND


async def wish(runtime: Runtime, want: str, given: Json, caller: Caller) -> InvokeResult:
    """Run the intent that a wish names."""
    return await runtime.invoker.invoke(runtime.learned.named(want), None, given, caller)


async def test_a_wish_is_the_way_to_an_intent_too(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        found = await wish(runtime, "check my email", {}, Caller())
        assert found.output == {"result": [{"name": "work", "unread": 3}]}
        found = await wish(runtime, "check my email", {"mailbox": "home"}, Caller())
        assert found.error is not None
        assert found.error["reason"] == "INVALID_INPUT"  # it would have answered for another one
        person = Person()
        found = await wish(runtime, "delete these emails", IDS, Caller(person))
        assert found.ok
        with pytest.raises(InvalidInput):
            await wish(runtime, "do not delete emails", IDS, Caller(person))
    assert len(person.asked) == 1
