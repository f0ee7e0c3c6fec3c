"""The `cli` binding with real programs: a mail program, and grep with hostile values."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import CapdexError, Code
from capdex_router.commands.executor import MAX_SHOWN_CHARS, CommandExecutor
from capdex_router.commands.intents.manifest import parse_capability
from capdex_router.commands.intents.template import CommandTemplate, Parameter
from capdex_router.commands.sandbox.bubblewrap import ProcessLimits, Sandbox, Surroundings
from capdex_router.model.requests import ProcessRequest

HERE = Path(__file__).parent
INTENTS = parse_capability((HERE / "data/inboxd.json").read_bytes())
SUMMARY, ANALYZE, DELETE, RESTORE, ACCOUNTS = (one.template for one in INTENTS)
GREP = Path(shutil.which("grep") or "/usr/bin/grep").resolve()
SEARCH = CommandTemplate.parse(
    "grep --recursive -- {query} {path}", (Parameter("query"), Parameter("path", default="."))
)


def command(program: Path, template: CommandTemplate, work: Path, **more: Any) -> CommandExecutor:
    room = Surroundings(work, writable=True, readable=(Path(sys.base_prefix),))
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    return CommandExecutor(
        program, digest, template, more.pop("sandbox", Sandbox.find()), room, **more
    )


def run(command: CommandExecutor, **arguments: Any) -> Any:
    return asyncio.run(command.run(arguments, timeout_s=30))


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    source = (HERE / "inbox.py").read_text()
    program = tmp_path / "inbox"
    shebang, rest = source.split("\n", 1)
    assert shebang == "#!/usr/bin/env python3"
    program.write_text(f"#!{Path(sys.executable).resolve()} -IS\n{rest}")
    program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    mailbox = {"emails": ["abc123", "def456", "ghi789"], "removed": []}
    (work / "mailbox.json").write_text(json.dumps(mailbox))
    return program


def emails(inbox: Path) -> list[str]:
    found: list[str] = json.loads((inbox.parent / "work/mailbox.json").read_text())["emails"]
    return found


def test_the_inbox_deletes_and_restores(inbox: Path) -> None:
    def call(template: CommandTemplate, **arguments: Any) -> Any:
        return run(command(inbox, template, inbox.parent / "work", kind="json"), **arguments)

    assert call(SUMMARY) == {"result": [{"name": "work", "unread": 3}]}
    assert call(DELETE, ids=["abc123", "def456"]) == {"deleted": 2, "ids": ["abc123", "def456"]}
    assert emails(inbox) == ["ghi789"]
    assert call(RESTORE) == {"restored": 2, "ids": ["abc123", "def456"]}
    assert call(ANALYZE, count=1) == {"result": ["ghi789"]}
    assert call(ACCOUNTS) == {"result": [{"name": "work", "email": "work@example.org"}]}


def test_a_failed_program_says_why(inbox: Path) -> None:
    delete = command(inbox, DELETE, inbox.parent / "work", kind="json")
    with pytest.raises(CapdexError) as refused:
        run(delete, ids=["nobody"])
    assert (refused.value.code, refused.value.why) == (
        Code.EXECUTION_FAILED,
        'it says "no email nobody"',
    )
    assert refused.value.details == {"exit_code": 1}
    assert f"no network, and changes {inbox.parent / 'work'};" in refused.value.fix
    assert refused.value.fix.endswith(f"capdex learn {inbox} --writable, or --read DIR")


def test_what_a_program_found_before_it_failed_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("two\n" * 5_000)
    program = Path(shutil.which("diff") or "/usr/bin/diff").resolve()
    compare = CommandTemplate.parse("diff -- {a} {b}", (Parameter("a"), Parameter("b")))
    with pytest.raises(CapdexError) as differ:
        run(command(program, compare, tmp_path), a="a", b="b")
    found, _, end = (differ.value.details or {}).pop("stdout").rpartition("\n")
    assert (found[:20], len(found)) == ("1c1,5000\n< one\n---\n>", MAX_SHOWN_CHARS)
    assert end == f"… and {18 + 6 * 5_000 - MAX_SHOWN_CHARS + 1} more characters"
    assert (differ.value.why, differ.value.details) == ("", {"exit_code": 1})


def test_what_a_program_that_succeeds_says_beside_its_output_is_told(tmp_path: Path) -> None:
    shell = Path("/bin/sh").resolve()
    script = "sh -c 'echo one file reformatted >&2; printf $0' {x}"
    done = CommandTemplate.parse(script, (Parameter("x"),))
    assert run(command(shell, done, tmp_path), x="a") == {
        "lines": ["a"], "stderr": "one file reformatted",
    }  # fmt: skip


def test_what_is_not_shown_begins_before_a_whole_emoji(tmp_path: Path) -> None:
    script = "sh -c 'printf %s $0 >&2' {x}"
    said = CommandTemplate.parse(script, (Parameter("x"),))
    letters, family = "a" * (MAX_SHOWN_CHARS - 1), "\U0001f468\u200d\U0001f469"
    shown = run(command(Path("/bin/sh").resolve(), said, tmp_path), x=letters + family)["stderr"]
    assert shown == f"{letters}\n… and 3 more characters"


def test_a_program_rewritten_with_its_size_and_time_kept_does_not_run(inbox: Path) -> None:
    summary = command(inbox, SUMMARY, inbox.parent / "work", kind="json")
    run(summary)
    before = inbox.stat()
    inbox.write_text(inbox.read_text().replace("unread", "evil_x"))
    os.utime(inbox, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CapdexError) as refused:
        run(summary)
    assert (refused.value.code, refused.value.why) == (Code.PERMISSION_DENIED, "its bytes changed")


def test_the_preflight_states_the_whole_argument_list(tmp_path: Path) -> None:
    found = command(GREP, SEARCH, tmp_path).requests({"query": "; rm -rf /"})
    argv = (str(GREP), "--recursive", "--", "; rm -rf /", ".")
    assert found == (ProcessRequest(argv, str(tmp_path), writable=True),)


@pytest.mark.parametrize(
    "query",
    ["-evil", "--pre=/bin/sh", "; rm -rf .", "$(touch x)", "`touch x`", "a'b\"c", "-f/etc/x"],
)
def test_hostile_queries_are_searched_for(tmp_path: Path, query: str) -> None:
    (tmp_path / "-evil.txt").write_text(f"before {query} after\n")
    found = run(command(GREP, SEARCH, tmp_path), query=query.replace("$", "[$]"))
    assert found == {"lines": [f"./-evil.txt:before {query} after"]}
    assert [path.name for path in tmp_path.iterdir()] == ["-evil.txt"]


def test_hostile_paths_are_files(tmp_path: Path) -> None:
    for name in ("-evil.txt", "; rm", "a\nb"):
        (tmp_path / name).write_text("alpha\n")
        found = run(command(GREP, SEARCH, tmp_path), query="alpha", path=name)
        assert "".join(found["lines"]) == f"{name}:alpha".replace("\n", "") or found == {
            "lines": ["alpha"]
        }


def test_a_nul_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(CapdexError) as refused:
        run(command(GREP, SEARCH, tmp_path), query="a\0b")
    assert refused.value.code == Code.INVALID_INPUT


def test_no_match_is_no_error_and_a_bad_pattern_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("alpha\n")
    search = command(GREP, SEARCH, tmp_path, successes=frozenset((0, 1)))
    assert run(search, query="absent") == {"lines": []}
    with pytest.raises(CapdexError) as refused:
        run(search, query="[")
    assert refused.value.code == Code.EXECUTION_FAILED


def test_a_megabyte_of_matches_is_cut_at_a_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("alpha beta gamma\n" * 60_000)
    sandbox = Sandbox.find(limits=ProcessLimits(stdout_bytes=100_000))
    found = run(command(GREP, SEARCH, tmp_path, sandbox=sandbox), query="alpha")
    assert found["truncated"]
    assert set(found["lines"]) == {"./a:alpha beta gamma"}


def test_a_program_that_changed_is_not_run(inbox: Path) -> None:
    summary = command(inbox, SUMMARY, inbox.parent / "work", kind="json")
    run(summary)
    inbox.write_text(inbox.read_text() + "\n")
    with pytest.raises(CapdexError) as refused:
        run(summary)
    assert (refused.value.code, refused.value.why) == (Code.PERMISSION_DENIED, "its bytes changed")
    inbox.unlink()
    with pytest.raises(CapdexError):
        run(summary)


def test_a_program_sees_that_an_agent_asks(tmp_path: Path) -> None:
    env = Path(shutil.which("env") or "/usr/bin/env").resolve()
    found = run(command(env, CommandTemplate.parse("env"), tmp_path))["lines"]
    assert {"CMP_ROUTER=1", "CMP_AGENT=1", "NO_COLOR=1"} <= set(found)
    assert len(found) <= 9
