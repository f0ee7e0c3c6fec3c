"""Intents made from help texts: of real programs, single lines of them, and anything else."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_router.commands.help import parse_help
from capdex_router.commands.help_intents import MAX_WORDS, made
from capdex_router.commands.intents.manifest import MAX_PARAMETERS, Intent, parse_intent
from capdex_router.commands.intents.template import OPTIONS

TOOL = b"""usage: tool [options] [--] <file>...

    -n, --max <n>         at most so many
    -f, --format {a,b}    how to write
    --color[=WHEN]        mark what is found
    -t TAG, --tag=TAG     can be given multiple times
    -x, --[no-]extra      more of it
    -out outfile          where to write
"""
LONG = "[--option VALUE]\n            " * 150


def intent(page: str | bytes, command: str = "", *, writable: bool = False) -> Intent:
    data = page if isinstance(page, bytes) else page.encode()
    found = made("tool", command, data, "", writable=writable)
    assert found is not None
    return found


def test_options_become_parameters_with_types() -> None:
    found = intent(TOOL)
    assert {one.name: (one.option, one.type, one.enum) for one in found.template.parameters} == {
        "file": ("", "array<string>", ()),
        "max": ("--max ", "integer", ()),
        "format": ("--format ", "string", ("a", "b")),
        "color": ("--color", "boolean", ()),
        "tag": ("--tag=", "array<string>", ()),
        "extra": ("--extra", "boolean", ()),
        "out": ("-out ", "string", ()),
    }
    schema = found.input_schema()
    assert (schema["required"], schema["additionalProperties"]) == (["file"], False)
    assert schema["properties"]["max"] == {"type": "integer", "description": "at most so many"}


def test_a_call_makes_one_element_of_each_value() -> None:
    template = intent(TOOL).template
    values = {"max": 3, "tag": ["a", "b,c"], "color": True, "extra": False, "file": ["-x", "y"]}
    assert template.argv(values) == (
        *("tool", "--max", "3", "--color", "--tag=a", "--tag=b,c", "--", "-x", "y"),
    )
    assert template.display(values) == "tool --max 3 --color --tag='a' --tag='b,c' -- '-x' 'y'"
    assert template.argv({"file": [], "extra": True}) == ("tool", "--extra", "--")


@pytest.mark.parametrize(
    ("usage", "text", "required"),
    [
        ("<url>", "{url}", ["url"]),
        ("[OPTION]... [FILE]...", "[options] {file}", []),
        ("[OPTION]... SRC [SRC]... DEST", "[options] {src} {dest}", ["dest"]),
        ("[<options>] [<range>] [[--] <path>...]", "[options] {range} -- {path}", []),
        ("[options] <jq filter> [file...]", "[options] {jq_filter} {file}", ["jq_filter"]),
        ("[-H] [-Olevel] [path...] [expression]", "{path} [options]", []),
        ("[-q | --quiet] [--dir[=<path>]] FILENAME [SQL]", "{filename} {sql}", ["filename"]),
        ("[(-c | -C) <commit> | --fixup [(a|b):]<commit>] [--[no-]edit] <x>", "{x}", ["x"]),
        ("[options] {if-no-other} [in]...", "[options] {if_no_other} {in}", []),
        ("a b c d e f g h i", "{a} {b} {c} {d} {e} {f}", ["a", "b", "c", "d", "e", "f"]),
        ("<a>\n   or: tool [-x] <b>...\n   or: tool [-y] [<c>]", "{a} {b} {c}", []),
        ("one\n       tool two", "{one}", []),
        (
            "[flags] {verb} {zero or more file names}",
            "[options] {verb} {zero_or_more_file_names}",
            [],
        ),
        ("[-?ab] [+|-c c] [+D D] [names]", "[options] {names}", []),
        ("[-D [bind_address:]port] [-w local[:remote]] <x>", "{x}", ["x"]),
        ("(-f FILENAME | TYPE NAME) [--port=port]", "{type} {name}", []),
        ("[options] <x> < list_of_arguments", "[options] {x}", ["x"]),
        ("-c[dfwzz] [-I N] PROG", "{prog}", ["prog"]),
        ("[-options] [zipfile]", "[options] {zipfile}", []),
        ("[MMDDhhmm[[CC]YY][.ss]]", "{mmddhhmm}", []),
        (
            "[OPTION]... LAST\n  or: tool FIRST LAST\n  or: tool FIRST STEP LAST",
            "[options] {first} {step} {last}",
            [],
        ),
        (
            "[-q] [<commit>]\n  or: tool [-q] [<tree-ish>] [--] <path>...",
            "[options] {commit} {tree_ish} -- {path}",
            [],
        ),
        ("[-h] [more options; see below] [files ...]", "[options] {files}", []),
        ("<option(s)> <file(s)>", "[options] {files}", ["files"]),
        ("[OPTIONS] <PACKAGE|--requirements <FILE>|--group <GROUP>>", "[options] {package}", []),
        ("[-b] <name>         set the name", "[options] {name}", ["name"]),
        ("one\n        two\n other", "{one} {two}", ["one", "two"]),
    ],
)
def test_operands_come_from_the_usage(usage: str, text: str, required: list[str]) -> None:
    found = intent(f"Usage: tool {usage}\n")
    expected = text if OPTIONS in text else f"{OPTIONS} {text}"
    assert found.template.text == f"tool {expected}"
    assert found.input_schema()["required"] == required


@pytest.mark.parametrize(
    ("usage", "types"),
    [
        ("Usage: tool FILES", {"files": "array<string>"}),
        ("Usage: tool PATTERNS [FILE]", {"patterns": "string", "file": "string"}),
        ("Usage: tool [options] command", {"command": "array<string>"}),
        ("Usage: tool { COMMAND | help }", {"command": "array<string>"}),
        ("Usage: tool command path", {"command": "string", "path": "string"}),
        ("Usage: tool [dst..]", {"dst": "array<string>"}),
        ("Usage:\n  $ tool [...files]", {"files": "array<string>"}),
        ("Usage: tool x.js [address]", {"x_js": "string", "address": "string"}),
        ("Usage: tool A\n  or: tool A B\n  or: tool C... A",
         {"a": "string", "b": "string", "c": "array<string>"}),
        ("tool [OPTIONS...] COMMAND ...", {"command": "array<string>"}),
        ("Usage: tool SUBCOMMAND [options]", {"subcommand": "array<string>"}),
        ("Tool 3.0 (July 5th). Usage:\ntool [-b path] [x]", {"x": "string"}),
        ("Usage: Note: another\n\nusage: tool <name>", {"name": "string"}),
        (f"usage: tool {LONG}[files ...]", {"files": "array<string>"}),
    ],
)  # fmt: skip
def test_an_operand_that_takes_several_words_is_a_list(usage: str, types: dict[str, str]) -> None:
    given_ = intent(f"{usage}\n\n  --all  everything\n").template.parameters
    assert {one.name: one.type for one in given_ if not one.option} == types


def test_a_description_that_goes_on_with_an_option_does_not_describe_that_option() -> None:
    found = intent(
        "usage: tool [options]\n\n"
        "  --error-format FORM   how, with\n                        --output is set to plain\n"
        "  --output STYLE        which style\n"
    )
    options = {one.option: one.description for one in found.template.parameters}
    assert options["--output "] == "which style"


def test_an_operand_with_a_sign_before_it_says_so() -> None:
    (operand, _) = intent("Usage: tool [+FORMAT] [name]\n").template.parameters
    assert (operand.name, operand.description) == ("format", "begins with +")


@pytest.mark.parametrize(
    ("line", "type_", "enum"),
    [
        ("--ext [String]   more", "array<string>", ()),
        ("--max Int   at most", "integer", ()),
        ("--nth=N[,..]   of them", "string", ()),
        ("--env strings   of it", "array<string>", ()),
        ("-f, --filename=[]:", "array<string>", ()),
        ("--server-print=true:", "string", ("true", "false")),
        ("--all=false:", "boolean", ()),
    ],
)
def test_a_type_that_a_help_writes_as_a_value_is_read(
    line: str, type_: str, enum: tuple[str, ...]
) -> None:
    (option,) = intent(f"Usage: tool [OPTIONS]\n\n  {line}\n").template.parameters
    assert (option.type, option.enum) == (type_, enum)


def test_a_value_without_a_space_before_it_stays_at_its_option() -> None:
    template = intent("Usage: tool [OPTIONS]\n\n  --force-<thing>  do it\n").template
    assert template.argv({"force": "all"}) == ("tool", "--force-all")
    template = intent("Usage: tool [OPTIONS]\n\n  -I<dir>, --include <dir>  add it\n").template
    assert template.argv({"include": "a"}) == ("tool", "--include", "a")


@pytest.mark.parametrize("line", ["--no-OPTION   not so", "-Wl,<options>   for the linker"])
def test_a_pattern_of_options_is_no_option(line: str) -> None:
    assert intent(f"Usage: tool [OPTIONS]\n\n  {line}\n").template.parameters == ()


def test_whose_program_it_is_says_nothing_of_what_it_does() -> None:
    page = "Copyright (C) 2022 Some One and others\nReads a file and sorts it.\nUsage: tool [x]\n"
    assert intent(page).summary == "tool: Reads a file and sorts it."


def test_the_value_of_an_option_in_a_usage_is_no_operand() -> None:
    found = intent(
        "usage: tool [-h] -o FILE --level LEVEL src\n\n"
        "  -o FILE, --output FILE\n                        where to write\n  --level LEVEL  far\n"
    )
    assert found.template.text == "tool [options] {src}"
    assert found.input_schema()["required"] == ["src"]


def test_the_usage_of_a_command_may_have_its_other_name() -> None:
    found = intent("Usage: tool remove|rm [options] [names...]\n", "remove")
    assert found.template.text == "tool remove [options] {names}"


@pytest.mark.parametrize(
    ("line", "type_", "enum"),
    [
        ("  --color <WHEN>  Colour [possible values: auto, never]", "string", ("auto", "never")),
        ('  --mode <mode>   how (choices: "fast", "slow")', "string", ("fast", "slow")),
        ('  --mode          [choices: "fast", "slow"]', "string", ("fast", "slow")),
        ("  -n, --opt <N>   which [possible values: 1, 2]", "string", ("1", "2")),
        ("  --force         do it [possible values: true, false]", "boolean", ()),
        ("  --tag <TAG>...  of it [possible values: a, b]", "array<string>", ()),
        ("  --color <WHEN>  Colour [possible values: auto,", "string", ()),
    ],
)  # fmt: skip
def test_values_that_a_description_lists_are_an_enumeration(
    line: str, type_: str, enum: tuple[str, ...]
) -> None:
    (option,) = intent(f"Usage: tool [OPTIONS]\n\n{line}\n").template.parameters
    assert (option.type, option.enum) == (type_, enum)


def test_a_value_that_only_the_short_name_needs_is_glued_to_the_long_one() -> None:
    template = intent("Usage: tool FILES\n\n  -u, -U NUM, --unified[=NUM]  lines\n").template
    assert template.argv({"unified": 3, "files": ["a"]}) == ("tool", "--unified=3", "a")


def test_an_operand_that_is_a_list_has_no_enumeration() -> None:
    (operand,) = intent("Usage: tool {dir|jar|class} ...\n").template.parameters
    assert (operand.type, operand.enum) == ("array<string>", ())


def test_a_cluster_of_a_usage_is_an_option_each() -> None:
    found = intent("usage: tool [-46AaC] [-out] [-Olevel] [-W host] destination\n")
    options = [one.option for one in found.template.parameters if one.option]
    assert sorted(options) == ["-4", "-6", "-A", "-C", "-Olevel", "-W ", "-a", "-out"]


def test_what_a_program_does_is_its_first_sentence() -> None:
    found = intent(
        "Usage: tool [OPTION]... SET1\nTranslate, squeeze, and/or delete\n\nAll of it.\n"
    )
    assert found.summary == "tool: Translate, squeeze, and/or delete"


def test_the_usage_of_a_command_is_the_one_that_names_it() -> None:
    page = "usage: tool log [<range>]\n   or: tool show [<options>] <object>...\n"
    assert intent(page, "show").template.text == "tool show [options] {object}"
    assert intent("Usage: show [options] [file...]\n", "show").template.text == (
        "tool show [options] {file}"
    )


def test_options_that_only_the_usage_has_are_parameters() -> None:
    found = intent("usage: tool [-q] [-b bits] [-t one | two]\n            [-C text] file\n")
    options = {one.name: (one.option, one.type) for one in found.template.parameters[1:]}
    assert options == {
        "q": ("-q", "boolean"),
        "b": ("-b ", "string"),
        "t": ("-t ", "string"),
        "C": ("-C ", "string"),
    }


@pytest.mark.parametrize("value", ["-x", "--pre=/bin/sh", "-", "--"])
def test_no_value_of_a_made_command_becomes_an_option(value: str) -> None:
    template = intent("usage: tool [options] <a>\n  -s STYLE  x\n  --glued=TEXT  y\n").template
    for name in ("a", "s"):
        with pytest.raises(InvalidInput, match="is refused"):
            template.argv({"a": "x", name: value})
    assert template.argv({"a": "x", "glued": value}) == ("tool", f"--glued={value}", "x")


def test_an_absent_operand_leaves_the_options_before_it() -> None:
    template = intent("Usage: tool [OPTION]... [FILE]\n  -r, --reverse  turn\n").template
    assert template.argv({"reverse": True}) == ("tool", "--reverse")


@pytest.mark.parametrize("value", ["x", 7, [["a"]], ["a", 1], {"a": 1}])
def test_a_value_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        intent(TOOL).template.argv({"file": value})
    with pytest.raises(InvalidInput):
        intent(TOOL).template.argv({"file": [], "color": "yes"})


def test_a_person_is_asked_unless_a_command_is_known_to_read() -> None:
    page = b"usage: git log [<options>]\n"
    log = made("git", "log", page, "Show commits", writable=False)
    assert log is not None
    assert (log.confirm, log.idempotent, log.summary) == (False, False, "git log: Show commits")
    for program, command, writable in (("git", "log", True), ("git", "push", False)):
        found = made(program, command, page, "", writable=writable)
        assert found is not None
        assert found.confirm


def test_a_made_intent_is_read_again() -> None:
    found = intent(TOOL)
    kept = {**found.to_json(), "idempotent": found.idempotent}
    assert parse_intent(kept) == found


@pytest.mark.parametrize(
    ("argv", "command", "expected"),
    [
        (["sort", "--help"], "", {"reverse": "boolean", "parallel": "integer", "key": "string"}),
        (["git", "status", "-h"], "status", {"short": "boolean", "pathspec": "array<string>"}),
        (["git", "clone", "-h"], "clone", {"depth": "string", "repo": "string"}),
    ],
)
def test_real_programs_have_their_options(
    argv: list[str], command: str, expected: dict[str, str]
) -> None:
    said = subprocess.run(argv, capture_output=True, check=False)
    found = made(argv[0], command, said.stdout or said.stderr, "", writable=False)
    assert found is not None
    types = {one.name: one.type for one in found.template.parameters}
    assert {name: types.get(name) for name in expected} == expected


def test_a_text_that_is_no_help_makes_nothing() -> None:
    for page in (b"", b"error: unknown command, see `tool --help`\n", b"root:x:0:0\n"):
        assert made("tool", "", page, "", writable=False) is None


PARTS = st.sampled_from(
    [
        *("usage: ", "Usage:\n", "or: ", "tool ", "cmd ", "options", "[options]", "[--] ", "..."),
        *("[", "]", "<", ">", "{", "}", "(", ")", "?", "=N", " N", " {a,b}", "--", "-x", "--all"),
        *("|", ",", " ", "  ", "\n", "\n  ", "a", "B", "9", "\xe9", "\t", "\x1b[1m", "\0", "\x08"),
    ]
)


@given(st.lists(PARTS, max_size=80).map("".join) | st.text(max_size=300))
def test_any_help_makes_a_bounded_intent_that_is_read_again(page: str) -> None:
    found = made("tool", "cmd", page.encode(), "", writable=False)
    if found is None:
        return
    options = parse_help(page.encode()).options
    given_ = found.template.parameters
    assert all(one.option.rstrip("= ") in options for one in given_ if one.option)
    assert len(given_) <= MAX_PARAMETERS
    assert len(found.template.text.split()) <= MAX_WORDS + 4
    assert parse_intent({**found.to_json(), "idempotent": False}) == found


@given(st.lists(PARTS, max_size=80).map("".join), st.text(max_size=20))
def test_a_value_never_becomes_an_option_whatever_the_help_says(page: str, rest: str) -> None:
    template = intent(f"usage: tool {page}").template
    value = "-" + rest
    for one in template.parameters:
        given_ = {x.name: [] if x.type.startswith("array") else "y" for x in template.parameters}
        given_ = {x.name: given_[x.name] for x in template.parameters if x.required}
        try:
            argv = template.argv({**given_, one.name: [value] if one.type[0] == "a" else value})
        except InvalidInput:
            continue
        assert one.option + value in argv
        assert one.option or "--" in argv[: argv.index(value)]
