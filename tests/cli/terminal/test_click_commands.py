"""Help, sections, options anywhere: the rules of every command.

The golden help texts are written anew by: CAPDEX_GOLDEN=write pytest
tests/cli/terminal/test_click_commands.py
"""

from __future__ import annotations

import inspect
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from capdex_cli.config.load import unused_variables
from capdex_cli.main import program
from capdex_cli.terminal.click_commands import GLOBALS, Command, Group
from capdex_cli.views import help_topics

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests/cli/golden"
WRITE = os.environ.get("CAPDEX_GOLDEN") == "write"  # before fixtures clean the environment


def test_help_is_the_golden_text_for_every_command(commands: dict[str, click.Command]) -> None:
    wrong = []
    for path in commands:
        words = path.split()[1:]
        result = CliRunner().invoke(program, [*words, "--help"], env={"COLUMNS": "100"})
        assert result.exit_code == 0
        golden = GOLDEN / f"{path.replace(' ', '-')}.txt"
        if WRITE:
            golden.write_text(result.stdout, encoding="utf-8")
        if not golden.exists() or golden.read_text("utf-8") != result.stdout:
            wrong.append(path)
    assert wrong == []


def test_no_golden_text_outlives_its_command(commands: dict[str, click.Command]) -> None:
    known = {f"{path.replace(' ', '-')}.txt" for path in commands}
    assert {file.name for file in GOLDEN.iterdir()} == known


def test_short_and_long_help_say_the_same(capdex: Any) -> None:
    assert capdex("cid", "-h").stdout == capdex("cid", "--help").stdout


def test_every_command_has_an_example_that_it_understands(
    commands: dict[str, click.Command],
) -> None:
    for path, command in commands.items():
        assert isinstance(command, Command | Group)
        assert command.examples, path
        for example in command.examples:
            line = example.partition("#")[0].replace("CID=$(", "").replace('eval "$(', "")
            line = line.partition(" < ")[0].partition(" > ")[0].partition(" | ")[0]
            words = shlex.split(line.rstrip('")').replace("'", '"') if "$(" in example else line)
            assert words[0] == "capdex", example
            _parse(program, words[1:])


def _parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    """Read the words as the command would, without running it."""
    context = command.make_context(command.name, list(words), parent=parent, resilient_parsing=True)
    strict = command.make_parser(context).parse_args(list(words))
    if isinstance(command, Group) and strict[1]:
        name, found, rest = command.resolve_command(context, strict[1])
        assert found is not None, name
        _parse(found, rest, context)


def test_the_list_of_commands_says_what_each_says_of_itself(
    commands: dict[str, click.Command],
) -> None:
    for path, command in commands.items():
        if isinstance(command, Group):
            for name, entry in command.entries.items():
                own = commands[f"{path} {name}"].help or ""
                assert own.strip().startswith(entry.purpose), name


def test_a_callback_takes_exactly_the_parameters_of_its_command(
    commands: dict[str, click.Command],
) -> None:
    for path, command in commands.items():
        if command.callback is None or path == "capdex":
            continue
        params = [param.name for param in command.params if param.expose_value]
        function = inspect.unwrap(command.callback)
        first, *taken = inspect.signature(function).parameters.values()
        if first.name == "registry":  # `makes_change` takes this option
            params.remove("dry_run")
        names = {each.name for each in taken if each.kind is not each.VAR_KEYWORD}
        takes_more = len(names) < len(taken)
        assert names < set(params) if takes_more else names == set(params), path


def test_every_option_says_what_it_does(commands: dict[str, click.Command]) -> None:
    for path, command in commands.items():
        for param in (*command.params, *GLOBALS):
            if isinstance(param, click.Option):
                assert param.help, f"{path} {param.name}"


def test_without_a_command_it_names_the_three_that_come_first(capdex: Any) -> None:
    result = capdex()
    assert result.exit_code == 0
    assert [word in result.stdout for word in ("capdex up", "capdex init", "capdex search")]


def test_a_group_alone_shows_its_help_and_fails(capdex: Any) -> None:
    result = capdex("account")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "balance" in result.stderr


@pytest.mark.parametrize("words", [("--json", "cid"), ("cid", "--json"), ("--format=json", "cid")])
def test_global_options_are_understood_before_and_after_the_command(
    capdex: Any, package: Path, words: tuple[str, ...]
) -> None:
    result = capdex(*words, str(package))
    assert result.exit_code == 0
    assert result.stdout.startswith('{\n  "schema": "capdex.cid/1"')


def test_of_two_formats_the_last_one_typed_wins(capdex: Any, package: Path) -> None:
    assert capdex("--json", "cid", "--plain", str(package)).stdout.startswith("bafkrei")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("publsh",), "did you mean publish?"),
        (("account", "shwo"), "did you mean show?"),
        (("cid", "--jsn", "x"), "did you mean --json"),
        (("explain", "NOT_BOND"), "did you mean NOT_BOUND"),
        (("help", "exit-code"), "did you mean exit-codes"),
    ],
)
def test_a_slip_of_the_finger_gets_a_suggestion(
    capdex: Any, words: tuple[str, ...], hint: str
) -> None:
    result = capdex(*words)
    assert result.exit_code in (1, 2)
    assert hint in result.stderr


@pytest.mark.parametrize(
    ("typed", "here"),
    [
        ("add", "install"),
        ("i", "install"),
        ("uninstall", "remove"),
        ("rm", "remove"),
        ("info", "show"),
        ("whoami", "account"),
        ("login", "account"),
        ("ls", "installed"),
        ("outdated", "upgrade --preview"),
        ("owner", "maintainer"),
        ("unpublish", "yank"),
    ],
)
def test_a_command_of_another_package_manager_is_told_what_does_it_here(
    capdex: Any, typed: str, here: str
) -> None:
    said = capdex(typed, "weather").stderr
    assert f"  fix: did you mean {here}? capdex --help lists what there is\n" in said
    assert capdex(*here.split(), "--help").exit_code == 0


def test_version_is_the_packages(capdex: Any) -> None:
    from capdex import __version__

    assert capdex("--version").stdout == f"capdex {__version__}\n"
    assert capdex.json("version")["version"] == __version__


def test_version_says_the_commit_of_the_clone(capdex: Any) -> None:
    at = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    head = subprocess.run(at, capture_output=True, text=True, check=True).stdout.strip()
    said = capdex.json("version")["commit"]
    assert said.removesuffix("-dirty") == head
    assert f"\n  commit {said}\n" in capdex("version", "--format", "human").stdout


@pytest.mark.parametrize("topic", ["exit-codes", "environment", "ranges", "verdicts", "publish"])
def test_there_is_help_on_every_topic_and_command(capdex: Any, topic: str) -> None:
    result = capdex("help", topic)
    assert result.exit_code == 0
    assert len(result.stdout) > 300


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_asks_the_program_itself(capdex: Any, shell: str) -> None:
    script = capdex("completion", shell).stdout
    assert f"_CAPDEX_COMPLETE={shell}_complete" in script


def test_completion_offers_commands_and_options(
    capdex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CAPDEX_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "capdex val")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert capdex().stdout == "plain,validate\n"
    monkeypatch.setenv("COMP_WORDS", "capdex node --chain")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert capdex().stdout == "plain,--chain-id\n"


def test_every_variable_of_an_option_is_known_and_explained(
    commands: dict[str, click.Command],
) -> None:
    options = (option for command in commands.values() for option in command.params)
    found = [option.envvar for option in options if option.envvar]
    variables = {x for one in found for x in ([one] if isinstance(one, str) else one)}
    assert unused_variables(dict.fromkeys(variables, "")) == []
    explained = help_topics.environment()
    assert [x for x in sorted(variables) if x not in explained] == []
