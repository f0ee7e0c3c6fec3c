"""Command templates: argument lists in which a value stays a value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, InvalidInput
from capdex_router.commands.intents.template import CommandTemplate, Parameter

IDS = Parameter("ids", "array<string>", required=True)
DELETE = CommandTemplate.parse("inbox delete --ids {ids} --confirm", (IDS,))
SEARCH = CommandTemplate.parse(
    'rg --json "{query}" {path}', (Parameter("query"), Parameter("path"))
)


def test_the_specification_s_example_makes_the_command_that_it_shows() -> None:
    values = {"ids": ["abc123", "def456"]}
    assert DELETE.argv(values) == ("inbox", "delete", "--ids", "abc123,def456", "--confirm")
    assert DELETE.display(values) == "inbox delete --ids 'abc123,def456' --confirm"


@pytest.mark.parametrize("value", ["-x", "--pre=/bin/sh", "-", "--"])
def test_a_value_never_becomes_an_option(value: str) -> None:
    with pytest.raises(InvalidInput, match="query is refused"):
        SEARCH.argv({"query": value, "path": "."})
    argv = SEARCH.sheltered(()).argv({"query": value, "path": "."})
    assert argv == ("rg", "--json", "--", value, ".")
    glued = CommandTemplate.parse("rg --regexp={query}").argv({"query": value})
    assert glued == ("rg", f"--regexp={value}")
    assert CommandTemplate.parse("rg -- {query}").argv({"query": value}) == ("rg", "--", value)


@pytest.mark.parametrize(
    "value", ["; rm -rf /", "$(id)", "`id`", "a'b\"c", "a\nb", "", "*", "日本"]
)
def test_a_value_is_one_argument_as_it_is(value: str) -> None:
    assert SEARCH.argv({"query": value, "path": "."})[2] == value


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x" * 40_000, 7, None, True, ["a"], {"a": 1}])
def test_a_value_that_is_no_argument_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        CommandTemplate.parse("rg -- {query}").argv({"query": value})


def test_an_absent_value_takes_its_option_along() -> None:
    last = CommandTemplate.parse("inbox restore --last {count}", (Parameter("count", "integer"),))
    assert last.argv({}) == ("inbox", "restore")
    assert last.argv({"count": 3}) == ("inbox", "restore", "--last", "3")
    assert last.display({"count": 3}) == "inbox restore --last 3"


def test_an_absent_value_takes_no_other_value_along() -> None:
    two = (Parameter("one"), Parameter("two"))
    behind = CommandTemplate.parse("diff -- {one} {two}", two)
    assert behind.argv({"one": "--x"}) == ("diff", "--", "--x")
    glued = CommandTemplate.parse("rg --regexp={one} {two}", two)
    assert glued.argv({"one": "x"}) == ("rg", "--regexp=x")


def test_a_default_stands_for_an_absent_value() -> None:
    path = CommandTemplate.parse("ls -- {path}", (Parameter("path", default="."),))
    assert path.argv({}) == ("ls", "--", ".")


@pytest.mark.parametrize("ids", [["a,b"], [""], "a", [1], [["a"]]])
def test_a_list_joins_by_commas_without_a_doubt(ids: Any) -> None:
    with pytest.raises(InvalidInput):
        DELETE.argv({"ids": ids})


def test_an_option_that_takes_a_value_is_glued() -> None:
    assert DELETE.sheltered({"--ids"}).argv({"ids": ["-x"]}) == (
        *("inbox", "delete", "--ids=-x", "--confirm"),
    )


def test_an_option_of_one_dash_has_its_value_behind_it() -> None:
    params = (Parameter("count", "integer"), Parameter("path", required=True))
    head = CommandTemplate.parse("head -n {count} {path}", params).sheltered({"-n"})
    assert head.argv({"count": 5, "path": "-x"}) == ("head", "-n", "5", "--", "-x")
    assert head.display({"count": 5, "path": "a"}) == "head -n 5 -- 'a'"
    assert head.argv({"path": "a"}) == ("head", "--", "a")
    with pytest.raises(InvalidInput):
        head.argv({"count": -5, "path": "a"})


def test_a_value_out_of_its_list_is_refused() -> None:
    color = CommandTemplate.parse("ls --color={when}", (Parameter("when", enum=("auto", "never")),))
    assert color.argv({"when": "never"}) == ("ls", "--color=never")
    with pytest.raises(InvalidInput):
        color.argv({"when": "x"})


NO_TEMPLATES = [
    "",
    "{program} x",
    "-x",
    "a | b",
    "a b && c ; d",
    "a > f",
    "a 2>&1",
    "a $(b)",
    "a `b`",
]
NO_TEMPLATES += ["a '", "a x{b}y", "a {b}{c}", "a { b }", "a --x={b}c", "a\nb", "a " * 2_000]


@pytest.mark.parametrize("text", NO_TEMPLATES)
def test_a_template_for_a_shell_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        CommandTemplate.parse(text)


def test_a_parameter_without_a_placeholder_is_refused() -> None:
    with pytest.raises(InvalidInput, match="wrong"):
        CommandTemplate.parse("ls", (Parameter("path"),))


def test_control_characters_do_not_reach_the_display() -> None:
    shown = SEARCH.display({"query": "\x1b[2Ja'b", "path": "."})
    assert shown == "rg --json '\\x1b[2Ja'\"'\"'b' '.'"


@given(st.text(max_size=200))
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        template = CommandTemplate.parse(text)
    except CapdexError:
        return
    assert template.elements[0].name is None


@given(st.text(max_size=50), st.text(max_size=50))
def test_any_value_is_one_argument_or_refused(query: str, path: str) -> None:
    try:
        argv = SEARCH.sheltered(()).argv({"query": query, "path": path})
    except InvalidInput:
        return
    assert argv == ("rg", "--json", "--", query, path)
