"""Every failure is three lines (or one JSON object) on stderr and one exit code of the table."""

from __future__ import annotations

import asyncio
import errno
import gc
import inspect
import json
import os
import signal
import stat
import sys
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click
import pytest

from capdex.codes import error_codes
from capdex.errors import CapdexError, Code, InvalidInput, Refused
from capdex_cli.terminal.app import App
from capdex_cli.terminal.errors import exit_code, guard, show, worst
from capdex_cli.terminal.output import Format, Output

TABLE = {
    0: {"ALREADY_DONE"},
    1: {
        "NOT_FOUND",
        "YANKED",
        "INVALID_INPUT",
        "UNVERIFIED",
        "TOO_LARGE",
        "VERSION_EXISTS",
        "REVERTED",
        "STEP_TOO_SMALL",
        "SCHEMA_CHANGED",
        "BAD_PROOF",
        "AMBIGUOUS",
        "LOCK_DRIFT",
        "EXECUTION_FAILED",
        "MAYBE_DONE",
        "OUTPUT_INVALID",
    },
    2: {"USAGE", "UNREADABLE", "CONFIG", "MISSING_PART", "NO_CONTRACT", "FOREIGN_DATABASE"},
    3: {
        "PENDING",
        "RATE_LIMITED",
        "STALLED",
        "TIMEOUT",
        "RPC_UNAVAILABLE",
        "IPFS_UNAVAILABLE",
        "NODE_UNAVAILABLE",
        "DATABASE_LOCKED",
        "DATABASE_UNAVAILABLE",
        "SIGNER_UNAVAILABLE",
        "SERVICE_UNAVAILABLE",
    },
    4: {
        "UNAUTHENTICATED",
        "PERMISSION_DENIED",
        "NAME_TAKEN",
        "NOT_OWNER",
        "NO_CONSENT",
        "WRONG_PASSPHRASE",
        "KEY_EXPOSED",
        "EMPTY_ACCOUNT",
        "WRONG_CHAIN",
        "NAME_RESERVED",
        "FEE_OVER_CAP",
        "SIGNER_REFUSED",
        "SIGNER_CHANGED",
        "CONFIRM_NEEDED",
    },
    6: {"NOT_SERVED"},
    70: {"INTERNAL"},
}


def raising(error: BaseException) -> Any:
    def run() -> None:
        raise error

    return run


def ending(error: BaseException, *, debug: bool = False) -> int:
    return guard(raising(error), lambda: Output.open(), debug=debug)


def test_every_code_has_the_exit_code_of_the_table() -> None:
    found: dict[int, set[str]] = {}
    for code in Code:
        found.setdefault(exit_code(InvalidInput("x", code)), set()).add(str(code))
    assert found == TABLE


def test_every_code_is_explained() -> None:
    assert [*error_codes()] == [*Code]


def test_only_what_may_succeed_later_exits_with_3_or_6() -> None:
    assert {code for code, kind in error_codes().items() if kind.retryable} == {
        code for code, kind in error_codes().items() if kind.exit in (3, 6)
    }


def test_of_several_results_the_gravest_code_wins() -> None:
    order = [0, 6, 1, 3, 4, 2, 70]
    for i, code in enumerate(order):
        assert worst(order[: i + 1]) == code
    assert worst([]) == 0


def test_an_error_is_what_why_fix_and_more(capsys: pytest.CaptureFixture[str]) -> None:
    error = Refused("no", Code.NAME_TAKEN, why="it is\x1b[2J taken", fix="pick another")
    assert ending(error) == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "error[NAME_TAKEN]: no",
        "  why: it is\\x1b[2J taken",
        "  fix: pick another",
        "  more: capdex explain NAME_TAKEN",
    ]


def test_an_error_is_one_json_object_when_json_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = InvalidInput("no", Code.NOT_FOUND, why="w", fix="f")
    assert show(error, Output.open(Format.JSON)) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert json.loads(shown.err) == {
        "schema": "capdex.error/1",
        "code": "NOT_FOUND",
        "message": "no",
        "retryable": False,
        "details": {"why": "w", "fix": "f"},
        "exit": 1,
    }


@pytest.mark.parametrize(
    "call",
    [
        *("cid --nope --json", "--nope --json", "--json --nope", "cid --format=jsonl --nope"),
        *("--format json --nope", "cid --format jsonl --nope", "--nope cid --format=json"),
    ],
)
def test_a_mistake_in_the_call_is_json_too_when_json_was_asked_for(capdex: Any, call: str) -> None:
    result = capdex(*call.split())
    assert result.exit_code == 2
    assert json.loads(result.stderr)["code"] == "USAGE"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort(), EOFError()])
def test_an_interruption_exits_with_130(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(error) == 130
    assert capsys.readouterr().err == "interrupted\n"


def interrupt_twice() -> int:
    async def connection() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.sleep(0)  # it does not close at once

    opened = connection()
    was = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio replaces no other

    async def work() -> None:
        await anext(opened)
        loop = asyncio.get_running_loop()
        loop.call_soon(signal.raise_signal, signal.SIGINT)  # this one cancels
        try:
            await asyncio.Event().wait()
        finally:
            loop.call_soon(signal.raise_signal, signal.SIGINT)  # and this one ends the loop

    try:
        return guard(lambda: asyncio.run(work()), lambda: Output.open(), debug=False)
    finally:
        signal.signal(signal.SIGINT, was)


def test_a_second_interruption_while_asyncio_ends_exits_with_130(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with warnings.catch_warnings():  # from Python 3.13 on a generator that is cut off says so
        warnings.simplefilter("ignore", RuntimeWarning)
        assert interrupt_twice() == 130
        gc.collect()
    assert capsys.readouterr().err == "interrupted\n"


def test_a_fault_of_ours_is_one_line_and_a_private_report(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert ending(ZeroDivisionError("so\x1b[1m wrong")) == 70
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert "\x1b" not in shown
    assert "error[INTERNAL]: unexpected ZeroDivisionError" in shown
    (report,) = (folder / "home/state/reports").iterdir()
    assert str(report) in shown
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert "ZeroDivisionError" in report.read_text("utf-8")


@pytest.mark.parametrize(
    ("number", "path"),
    [(errno.ENAMETOOLONG, "x" * 290), (errno.ENOTDIR, "a.txt/state")],
    ids=["too long", "below a file"],
)
def test_a_path_that_cannot_be_is_no_fault_of_ours(
    number: int, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(OSError(number, os.strerror(number), path)) == 2
    said = capsys.readouterr().err
    assert f"error[UNREADABLE]: cannot use {path}" in said
    assert os.strerror(number) in said


@pytest.mark.parametrize("name", ["CAPDEX_HOME", "CAPDEX_DEPLOYMENT"])
def test_a_path_of_a_user_who_does_not_exist_is_no_fault_of_ours(
    capdex: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "~nobody-of-that-name/x")
    told = capdex("show", "tea-timer")
    assert told.exit_code == 2
    assert f"{name} is not a path: '~nobody-of-that-name/x'" in told.stderr
    assert "no user of this machine has that name" in told.stderr


def test_a_fault_of_ours_is_told_where_no_report_can_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_HOME", "~nobody-of-that-name")
    assert ending(ZeroDivisionError("wrong")) == 70
    assert "run again with --debug" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("can't start new thread"),
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.EAGAIN, "Resource temporarily unavailable"),
    ],
)
def test_a_limit_of_the_machine_is_no_fault_of_ours(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(error) == 2
    shown = capsys.readouterr().err
    assert "no more memory, threads or open files" in shown
    assert "bug of capdex" not in shown


def test_a_user_whose_home_directory_is_not_known_is_told_what_to_set(
    capdex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlisted(_: int) -> object:
        raise KeyError("no such user")

    monkeypatch.setattr("pwd.getpwuid", unlisted)
    monkeypatch.delenv("HOME")
    assert "For a bug report, paste from here on:" in capdex("doctor", "--format=human").stdout
    monkeypatch.delenv("CAPDEX_HOME")
    for words in (("config",), ("installed",), ("add-to", "claude", "--dry-run")):
        done = capdex(*words)
        assert done.exit_code == 2
        assert "error[CONFIG]: the home directory of this user is not known" in done.stderr
        assert "set HOME to a directory of this user" in done.stderr


def test_a_file_that_is_not_found_is_named_as_it_was_typed(capdex: Any) -> None:
    name = "a" * 250  # with the ending of a package it is too long for a file system
    assert f"cannot read {name}\n" in capdex("validate", name).stderr


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert ending(InvalidInput("no"), debug=True) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_commands_return_value_is_its_exit_code() -> None:
    def output() -> Output:
        return Output.open()

    assert guard(lambda: 1, output, debug=False) == 1
    assert guard(lambda: None, output, debug=False) == 0


def test_the_base_of_all_errors_is_never_raised() -> None:
    with pytest.raises(TypeError):
        CapdexError("x", Code.INTERNAL)


@pytest.mark.parametrize("option", ["--tag", "--no-prompt=x"])
def test_an_option_with_a_value_too_few_or_too_many_leads_to_the_help_of_its_command(
    capdex: Any, option: str
) -> None:
    assert "fix: capdex search --help lists what there is" in capdex("search", option).stderr


def test_a_choice_that_is_missing_is_told_in_one_line(capdex: Any) -> None:
    assert "Choose from: bash, zsh, fish" in capdex("completion").stderr


@pytest.mark.parametrize(
    ("args", "fix"),
    [
        (("state", "purge"), "read the plan, then add --yes"),
        (("add-to", "claude"), "read the plan with --dry-run, then add --yes"),
    ],
)
def test_only_an_option_that_the_command_has_is_named(
    capdex: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], fix: str
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    result = capdex(*args)
    assert (result.exit_code, f"fix: {fix}\n" in result.stderr) == (4, True)


def test_without_a_terminal_the_question_is_told_that_a_yes_would_answer(capdex: Any) -> None:
    for args, question in {
        ("state", "purge"): "Erase what all capabilities deleted?",
        ("state", "purge", "note"): "Erase what did:nuwa:cap:note deleted?",
    }.items():
        assert question in capdex(*args).stderr


def test_work_that_is_interrupted_before_it_begins_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        raise AssertionError

    monkeypatch.setitem(sys.modules, "asyncio", None)  # its import ends there
    with pytest.raises(ImportError):
        App().run(begun := work())
    assert inspect.getcoroutinestate(begun) == inspect.CORO_CLOSED
