"""Help texts of real programs, single lines of them, and anything else."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_router.commands.help import Help, parse_help


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["grep", "--help"], {"--regexp": True, "-r": False, "--color": False, "-e": True}),
        (["tar", "--help"], {"--list": False, "--directory": True, "-C": True, "-t": False}),
        (["curl", "--help", "all"], {"--data": True, "-d": True, "--insecure": False}),
    ],
)
def test_options_of_real_programs_are_found(argv: list[str], options: dict[str, bool]) -> None:
    if shutil.which(argv[0]) is None:
        pytest.skip(f"this machine has no {argv[0]}")
    said = subprocess.run(argv, capture_output=True, check=False).stdout
    found = parse_help(said).options
    assert {name: found.get(name) for name in options} == options


def test_subcommands_of_git_are_found() -> None:
    said = subprocess.run(["git", "--help"], capture_output=True, check=True).stdout
    found = parse_help(said).subcommands
    assert {"clone", "init", "add", "commit", "push", "rebase"} <= set(found)
    assert len(found) >= 20


@pytest.mark.parametrize(
    ("text", "subcommands"),
    [
        ("All commands:\n\n    access, adduser, audit,\n    bugs, cache\n",
         ("access", "adduser", "audit", "bugs", "cache")),
        ("Standard commands\nasn1parse   ca    ciphers   \ncmp   crl\nx509\n",
         ("asn1parse", "ca", "ciphers", "cmp", "crl", "x509")),
        ("usage: tool [-h] {add,remove} ...\n", ("add", "remove")),
        ("Commands:\n  build, b    Compile\n  run [ARG...]  Run\n", ("build", "run")),
        ("CORE COMMANDS\n  auth:    Authenticate\n  builder*  Build\n", ("auth", "builder")),
        ("Most used commands:\n  list - list packages\n", ("list",)),
        ("Commands:\n  add [options] <name>  add it\n  remove|rm [names...]  remove it\n",
         ("add", "remove")),
        ("╭─ Commands ───────╮\n│ add    Add it.   │\n│ remove Remove it.│\n╰──────────────────╯\n",
         ("add",)),
        ("tool - commandline processor\n\n  word    of a text\n", ()),
        ("Command options:\n  word    of a text\n", ()),
        ("COMMANDS\n  tool add [x]    Add it\n\nACCOUNT\n  tool login      Log in\n",
         ("add", "login")),
        ("COMMANDS\n  $ build    Build it\n  $ serve    Serve it\n", ("build", "serve")),
    ],
)  # fmt: skip
def test_lists_of_subcommands_are_found(text: str, subcommands: tuple[str, ...]) -> None:
    assert parse_help(text.encode(), "tool").subcommands == subcommands


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("  -e, --regexp=PATTERNS   use it", {"-e": True, "--regexp": True}),
        ("      --color[=WHEN]      mark", {"--color": False}),
        ("  -o, --output <file>     write", {"-o": True, "--output": True}),
        ("    --[no-]progress       show", {"--progress": False, "--no-progress": False}),
        ("  -A NUM, --after=NUM     lines", {"-A": True, "--after": True}),
        ("  \x1b[1m--json\x1b[0m    print JSON", {"--json": False}),
        (
            "  \x1b]8;;https://www.gnu.org/software/coreutils/manual/coreutils.html#sort-b\x1b\\"
            "\x1b[1m-b, --ignore-leading-blanks\x1b[0m\x1b]8;;\x1b\\",
            {"-b": False, "--ignore-leading-blanks": False},
        ),
        ("  \x1b]8;;https://x.example\x07--key=KEYDEF\x1b]8;;\x07", {"--key": True}),
        ("  -c  --format=FORMAT   how to write", {"-c": True, "--format": True}),
        ("  -v, --set=, --variable=NAME=VALUE", {"-v": True, "--set": True, "--variable": True}),
        ("      --preset-mode=", {"--preset-mode": True}),
        ("  --no-error= Ignore it", {"--no-error": False}),
        ("  -h, --[section-]headers  show", {"--headers": False, "--section-headers": False}),
        ("  -o FILE --output=FILE  where", {"-o": True, "--output": True}),
        ("│ *  --tag  -t      TEXT  a tag [required]  │", {"--tag": True, "-t": True}),
        ("│    --mode     [fast|slow]  how            │", {"--mode": True}),
        ("│    --level    <int>        [default: 3]   │", {"--level": True}),
        ("│    --force    --no-force    <bool>  it    │", {"--force": False, "--no-force": False}),
        ("  -o, --output   where       [string] [required]", {"-o": True, "--output": True}),
        ('      --mode            [choices: "a", "b"]', {"--mode": True}),
        ("usage: x [-46Aa] [-help]", {"-4": False, "-6": False, "-A": False, "-a": False}),
        ("  use --quiet for less", {"--quiet": False}),
        ("  -out outfile   where to", {"-out": True}),
        ("  -j [N], --jobs[=N]   at once", {"-j": False, "--jobs": False}),
        ("  -l N, --level N   depth", {"-l": True, "--level": True}),
        ("  --color [red|green]   of it", {"--color": True}),
        ("  --kind {a,b}   of it", {"--kind": True}),
        ("  -c, --check, --check=first   look", {"-c": False, "--check": False}),
        ("  -empty -name PATTERN -size N[kM]", {"-empty": False, "-name": True, "-size": True}),
        ("  -h --help  this text", {"-h": False, "--help": False}),
        ("usage: x [-q] [-b bits | -c]", {"-q": False, "-b": False, "-c": False}),
        ("  -u, --unrestricted...   search all", {"-u": False, "--unrestricted": False}),
        ("  -c, --config path::String   Use it", {"-c": True, "--config": True}),
        ("  --ext [String]   more", {"--ext": True}),
        ("  --max-warnings Int   at most", {"--max-warnings": True}),
        (f"  --parser <{'|'.join(['babel'] * 30)}>", {"--parser": True}),
        (f"  -t, --target [{'|'.join(['py311'] * 30)}]   which", {"-t": True, "--target": True}),
        ("  --config file ............ another file", {"--config": True}),
        ("  -D [bind_address:]port   where", {"-D": True}),
        ("  --python-version x.y   which", {"--python-version": True}),
        ("  -A, --all=false:", {"-A": False, "--all": False}),
        ("  --server-print=true:", {"--server-print": True}),
        ("  -p  to a pipe     -l  list files", {"-p": False, "-l": False}),
        ("  a - b", {}),
    ],
)
def test_lines_of_options(line: str, options: dict[str, bool]) -> None:
    found = parse_help(line.encode()).options
    assert {name: found.get(name) for name in options} == options
    assert found.keys() - options.keys() <= {"-h", "-help"}


def test_help_is_written_and_read_again() -> None:
    found = Help({"-e": True, "--json": False}, ("add", "remove"))
    assert msgspec.convert(asdict(found), Help) == found


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode()))
def test_any_help_is_parsed(data: bytes) -> None:
    parse_help(data)
