"""Learning programs: what a person is shown, what is kept, what is refused."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from capdex.errors import CapdexError, Code, InvalidInput, Refused
from capdex_router.commands.learned import Learned, command_of
from capdex_router.home.audit_log import tail
from capdex_router.policy.consent import Refuse
from capdex_router.runtime import open_runtime
from tests.router.commands.programs import (
    INBOX,
    learned_inbox,
    study_inbox,
    write_boxes,
    write_inbox,
)
from tests.router.simulated import Person

ROOT = Path(__file__).parents[3]


async def test_a_known_program_is_learned_after_one_question(tmp_path: Path) -> None:
    person = Person()
    async with open_runtime(tmp_path / "router", work=tmp_path) as runtime:
        said = await runtime.learning.learn("wc", person)
        (learned,) = runtime.learning.store.all().values()
        assert said == "learned:wc"
        (question,) = person.asked
        assert question.kind == "learn"
        assert question.summary == f'Learn the program "{learned.program}" as a tool?'
        assert f"content: sha256 {learned.content}" in question.lines
        assert f'runs "{learned.program}", sha256 {learned.digest}' in question.lines
        assert question.command == ("capdex", "learn", "wc")
        (grant,) = runtime.grants.read().all
        assert f'it replaces "{learned.program}"' in runtime.learning.proposal(learned).lines
    assert (grant.name, grant.tool, grant.digest) == ("learned:wc", "*", learned.content)
    assert (grant.target, grant.until) == (f"process:{learned.program}", None)


@pytest.mark.parametrize("program", ["rg", "grep", "tar", "wc", "ls"])
async def test_each_known_program_has_the_options_of_its_commands(
    tmp_path: Path, program: str
) -> None:
    bundled = ROOT / "node_modules/@vscode/ripgrep-linux-x64/bin" / program
    path = shutil.which(program) or (str(bundled) if bundled.is_file() else None)
    if path is None:
        pytest.skip(f"no {program} on this machine")
    async with open_runtime(tmp_path / "router", work=tmp_path) as runtime:
        learned = await runtime.learning.study(path)
    assert learned.tool.manifest.version != "0.0.0"
    assert not any(2 in codes for codes in learned.successes)


async def test_an_agent_may_learn_again_what_its_person_has_learned(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "router", work=tmp_path) as runtime:
        runtime.learning.keep(await runtime.learning.study("wc"))
        assert await runtime.learning.learn("wc", Refuse()) == "learned:wc"


async def test_nothing_is_kept_without_a_yes(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(Refused) as refused:
            await runtime.learning.learn("wc", Person(agrees=False))
        assert refused.value.code == Code.NO_CONSENT
        with pytest.raises(Refused) as asked:
            await runtime.learning.learn("wc", Refuse())
        assert asked.value.code == Code.CONFIRM_NEEDED
        assert asked.value.fix == "a person can run: capdex learn wc"
        assert runtime.learning.store.all() == {}
    (line,) = tail(tmp_path / "router" / "audit.jsonl", 9)
    assert (line["event"], line["capability_id"]) == ("consent", "learned:wc")
    assert line["agreed"] is False


async def test_a_person_sees_what_may_destroy_and_what_is_reached(tmp_path: Path) -> None:
    write_inbox(tmp_path)
    async with open_runtime(tmp_path / "router") as runtime:
        found = await study_inbox(runtime, tmp_path)
        shown = runtime.learning.proposal(found).lines
    assert '"check email": "inbox summary --json"' in shown
    assert '"delete emails": "inbox delete --ids {ids} --confirm" (asks each time)' in shown
    assert "it changes files in the work directory of the router, without a network" in shown
    assert found.commands["delete"].options["--ids"]
    assert found.tool.manifest.version == "1.0.0"


async def test_a_program_without_intents_is_learned_by_its_help(tmp_path: Path) -> None:
    person = Person()
    async with open_runtime(tmp_path / "router", work=tmp_path) as runtime:
        assert await runtime.learning.learn("git", person) == "learned:git"
        (git,) = runtime.learning.store.all().values()
    shown = {line for line in person.asked[0].lines if line.startswith('"git ')}
    assert {'"git clone [options] -- {repo} {dir}" (asks each time)'} <= shown
    assert {'"git log [options] {revision_range} -- {path}"'} <= shown
    assert len(shown) == len(git.tool.intents) > 15
    quiet = {line.split()[1] for line in shown if "(asks each time)" not in line}
    assert quiet == {"diff", "log", "show", "status"}


async def test_a_name_in_the_next_column_describes_no_command(tmp_path: Path) -> None:
    program = tmp_path / "columns"
    page = "Standard commands\\nadd     list    remove\\n"
    use = 'printf "usage: columns $1 [-v] <thing>\\n"'
    program.write_text(f"#!/bin/sh\ncase $1 in -*) printf '{page}';; *) {use};; esac\n")
    program.chmod(0o755)
    async with open_runtime(tmp_path / "router", work=tmp_path) as runtime:
        learned = await runtime.learning.study(str(program))
    said = [intent.summary for intent in learned.tool.intents]
    assert said[0] == "columns add: columns add [options] {thing}"
    assert len(said) == 3


async def test_a_program_without_subcommands_is_one_tool(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "router") as runtime:
        found = await runtime.learning.study("sort")
    assert [one.template.text for one in found.tool.intents] == ["sort [options] {file}"]
    assert Learned.from_json(found.to_bytes()) == found


async def test_what_may_change_files_is_asked_for_each_time(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "router") as runtime:
        found = await runtime.learning.study("git", writable=True)
    assert all(one.confirm for one in found.tool.intents)


async def test_each_subcommand_with_a_help_of_its_own_is_a_tool(tmp_path: Path) -> None:
    program = write_boxes(tmp_path)
    async with open_runtime(tmp_path / "router") as runtime:
        found = await runtime.learning.study(str(program))
        lines = runtime.learning.proposal(found).lines
    assert [one.template.text for one in found.tool.intents] == [
        "boxes add [options] {box} {thing}",
        "boxes list [options]",
    ]
    assert [one.summary for one in found.tool.intents] == [
        "boxes add: Put things into a box",
        "boxes list: Show the boxes",
    ]
    assert found.tool.intents[0].input_schema()["properties"]["count"]["type"] == "integer"
    assert 'commands of its help that are no tools: 2, "remove watch"' in lines


async def test_the_version_is_that_of_the_program_and_not_of_its_language(tmp_path: Path) -> None:
    program = write_boxes(tmp_path, more="--version*) printf 'Python 3.11.7\\nBoxes 2.5\\n';;")
    async with open_runtime(tmp_path / "router") as runtime:
        found = await runtime.learning.study(str(program))
    assert found.tool.manifest.version == "2.5"


async def test_a_subcommand_that_waits_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex_router.commands.learning.PROBE_S", 1.0)
    program = write_boxes(tmp_path, more="watch) while :; do :; done;;")
    async with open_runtime(tmp_path / "router") as runtime:
        found = await runtime.learning.study(str(program))
    assert [command_of(one.template) for one in found.tool.intents] == [("add",), ("list",)]


async def test_the_number_of_subcommands_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex_router.commands.probe.MAX_COMMANDS", 1)
    async with open_runtime(tmp_path / "router") as runtime:
        found = await runtime.learning.study(str(write_boxes(tmp_path)))
    assert [command_of(one.template) for one in found.tool.intents] == [("add",)]


async def test_all_of_a_program_has_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex_router.commands.learning.LEARN_S", -1.0)
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(CapdexError) as late:
            await runtime.learning.study("sort")
    assert late.value.code == Code.TIMEOUT


async def test_what_is_too_long_to_read_again_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_runtime(tmp_path / "router") as runtime:
        found = await runtime.learning.study("sort")
        monkeypatch.setattr("capdex_router.commands.learned.MAX_LEARNED_BYTES", 1_000)
        with pytest.raises(InvalidInput, match="too many commands"):
            runtime.learning.keep(found)
        assert runtime.grants.read().all == ()


async def test_a_program_whose_help_says_nothing_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "quiet"
    program.write_text("#!/bin/sh\necho 'error: no such option, see --manual' >&2\nexit 2\n")
    program.chmod(0o755)
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(InvalidInput, match="no options and no usage") as unknown:
            await runtime.learning.study(str(program))
    assert unknown.value.code == Code.NOT_FOUND
    assert "--intents" in unknown.value.fix
    assert unknown.value.why == 'it says "error: no such option, see --manual\\n"'


async def test_a_program_of_several_names_is_learned_by_the_name_of_its_link(
    tmp_path: Path,
) -> None:
    (tmp_path / "box").write_text('#!/bin/sh\necho "Usage: ${0##*/} [-x] FILE"\n')
    (tmp_path / "box").chmod(0o755)
    (tmp_path / "list").symlink_to("box")
    async with open_runtime(tmp_path / "router") as runtime:
        learned = await runtime.learning.study(str(tmp_path / "list"))
    assert learned.program == tmp_path / "list"
    assert learned.tool.intents[0].summary == "list: list [options] {file}"


async def test_a_program_whose_interpreter_is_not_seen_is_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("/bin/sh")
    program = tmp_path / "tool"
    program.write_text(f"#!{tmp_path}/bin/sh\necho 'Usage: tool FILE'\n")
    program.chmod(0o755)
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(InvalidInput, match="tool did not start") as unseen:
            await runtime.learning.study(str(program))
        learned = await runtime.learning.study(str(program), readable=[tmp_path / "bin"])
    assert "--read DIR" in unseen.value.fix
    assert learned.tool.intents[0].template.text == "tool [options] {file}"


@pytest.mark.parametrize("program", ["no-such-program", "/etc", ""])
async def test_what_is_no_program_is_not_found(tmp_path: Path, program: str) -> None:
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(InvalidInput) as missing:
            await runtime.learning.study(program)
    assert missing.value.code == Code.NOT_FOUND


async def test_an_agent_names_no_path(tmp_path: Path) -> None:
    (tmp_path / "wc").write_text("#!/bin/sh\n")
    (tmp_path / "wc").chmod(0o755)
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(InvalidInput, match="name of a program"):
            await runtime.learning.learn(str(tmp_path / "wc"), Person())


async def test_intents_of_another_program_are_refused(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(InvalidInput, match="for inbox, not for wc"):
            await runtime.learning.study("wc", INBOX)


async def test_a_program_that_reports_no_help_has_none_of_the_options(tmp_path: Path) -> None:
    program = tmp_path / "inbox"
    program.write_text("#!/bin/sh\nexec cat /etc/passwd\n")
    program.chmod(0o755)
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(InvalidInput, match="does not list"):
            await runtime.learning.study(str(program), INBOX)


async def test_a_program_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex_router.commands.learning.PROBE_S", 1.0)
    program = tmp_path / "inbox"
    program.write_text("#!/bin/sh\nwhile :; do :; done\n")
    program.chmod(0o755)
    async with open_runtime(tmp_path / "router") as runtime:
        with pytest.raises(CapdexError) as late:
            await runtime.learning.study(str(program), INBOX)
    assert late.value.code == Code.TIMEOUT


async def test_a_tool_is_forgotten_by_its_name_or_its_program_s(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        learning = runtime.learning
        for name in ("inboxd", "inbox", "learned:inboxd", os.fspath(tmp_path / "inbox")):
            learned = learning.forget(name)
            assert learning.store.all() == {}
            assert runtime.grants.read().all == ()
            learning.keep(learned)
        with pytest.raises(InvalidInput, match="no tool"):
            learning.forget("other")


async def test_a_tool_is_forgotten_by_its_name_before_others_of_that_program(
    tmp_path: Path,
) -> None:
    async with learned_inbox(tmp_path) as runtime:
        learning = runtime.learning
        (first,) = learning.store.all().values()
        for name in ("about", "inbox"):
            manifest = replace(first.tool.manifest, name=name)
            learning.store.put(replace(first, tool=replace(first.tool, manifest=manifest)))
        assert learning.forget("inbox").tool.manifest.name == "inbox"
        with pytest.raises(InvalidInput, match="several tools") as refused:
            learning.forget("inbox")
        assert refused.value.why == "about, inboxd"
        assert list(learning.store.all()) == ["about", "inboxd"]
