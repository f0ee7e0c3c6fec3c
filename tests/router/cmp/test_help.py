"""Help texts of real programs, single lines of them, and anything else."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.cmp.help import Help, parse_help


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["grep", "--help"], {"--regexp": True, "-r": False, "--color": False, "-e": True}),
        (["tar", "--help"], {"--list": False, "--directory": True, "-C": True, "-t": False}),
        (["curl", "--help", "all"], {"--data": True, "-d": True, "--insecure": False}),
    ],
)
def test_options_of_real_programs_are_found(argv: list[str], options: dict[str, bool]) -> None:
    said = subprocess.run(argv, capture_output=True, check=False).stdout
    found = parse_help(said).options
    assert {name: found.get(name) for name in options} == options


def test_subcommands_of_git_are_found() -> None:
    said = subprocess.run(["git", "--help"], capture_output=True, check=True).stdout
    found = parse_help(said).subcommands
    assert {"clone", "init", "add", "commit", "push", "rebase"} <= set(found)
    assert len(found) >= 20


def test_a_list_of_subcommands_separated_by_commas_is_found() -> None:
    text = b"Usage: npm\n\nAll commands:\n\n    access, adduser, audit,\n    bugs, cache\n"
    assert parse_help(text).subcommands == ("access", "adduser", "audit", "bugs", "cache")


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("  -e, --regexp=PATTERNS   use it", {"-e": True, "--regexp": True}),
        ("      --color[=WHEN]      mark", {"--color": False}),
        ("  -o, --output <file>     write", {"-o": True, "--output": True}),
        ("    --[no-]progress       show", {"--progress": False, "--no-progress": False}),
        ("  -A NUM, --after=NUM     lines", {"-A": True, "--after": True}),
        ("  \x1b[1m--json\x1b[0m    print JSON", {"--json": False}),
        ("  use --quiet for less", {"--quiet": False}),
        ("  a - b", {}),
    ],
)
def test_lines_of_options(line: str, options: dict[str, bool]) -> None:
    assert parse_help(line.encode()).options == options


def test_help_is_written_and_read_again() -> None:
    found = Help({"-e": True, "--json": False}, ("add", "remove"))
    assert Help.from_json(found.to_json()) == found


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode()))
def test_any_help_is_parsed(data: bytes) -> None:
    parse_help(data)
