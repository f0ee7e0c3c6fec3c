"""Edits of TOML: one table comes or goes, every other byte stays."""

from __future__ import annotations

import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_router.faces.hosts.toml import put, read, remove

PATH = ("mcp_servers", "capdex")
ENTRY = {"command": "capdex", "args": ["router"]}
TABLE = '[mcp_servers.capdex]\ncommand = "capdex"\nargs = ["router"]\n'
HARD = """\
# of mine
a = '''
[mcp_servers.capdex]
'''
b = [
  [1],
]

[[list]]
x = 1

[mcp_servers."other.one"] # mine
args = [
  "a", # first
]
"""


def test_a_table_is_put_at_the_end_and_taken_out() -> None:
    after = put(HARD, PATH, ENTRY)
    assert after == f"{HARD}\n{TABLE}"
    assert remove(after, PATH) == HARD


def test_a_table_that_others_follow_is_replaced_without_their_comments() -> None:
    text = (
        f'{HARD}\n{TABLE}\n[mcp_servers.capdex.env]\nA = "b"\n\n# of github\n[mcp_servers.github]\n'
    )
    assert put(text, (*PATH, "env"), {"A": "c"}) == text.replace('A = "b"', 'A = "c"')


def test_a_value_in_a_table_changes_alone() -> None:
    text = f"{HARD}\n{TABLE}# last\n"
    assert put(text, (*PATH, "command"), "x") == text.replace('"capdex"', '"x"')


@pytest.mark.parametrize(
    "text",
    [
        f"{TABLE}# next\n[a]\nb = 1\n",
        f'# first\n{TABLE}env.A = "b"\n\n# next\n[a]\nb = 1\n',
        f'{TABLE}\n[mcp_servers.capdex.env]\nA = "b"\n# next\n[a]\nb = 1\n',
        f'{TABLE}\n[mcp_servers.capdex.env]\nA = "b"\n[mcp_servers.capdex.c]\n# next\n[a]\nb = 1\n',
        '[mcp_servers]\ncapdex = { command = "x" } # ours\n\n# next\n[a]\nb = 1\n',
        'mcp_servers.capdex.command = "x"\n# next\n[a]\nb = 1\n',
    ],
)
def test_a_table_is_taken_out_in_any_form(text: str) -> None:
    after = remove(text, PATH)
    assert "capdex" not in after
    assert after.endswith("# next\n[a]\nb = 1\n")
    assert ("# first" in after) == ("# first" in text)


@pytest.mark.load
def test_a_table_beside_many_is_put_and_taken_out_in_linear_time() -> None:
    projects = "".join(
        f'[projects."/home/x/{n}"]\ntrust_level = "trusted"\n\n' for n in range(2_000)
    )
    started = time.process_time()
    after = put(projects, PATH, ENTRY)
    assert put(after, PATH, ENTRY) == after
    assert remove(after, PATH) == projects
    assert time.process_time() - started < 5  # of the processor


@pytest.mark.parametrize(("text", "place"), [("a = 1\na = 2\n", "line 2"), ("[a", "line 1")])
def test_a_broken_text_is_refused_with_its_place(text: str, place: str) -> None:
    for edit in (lambda: put(text, PATH, ENTRY), lambda: remove(text, PATH)):
        with pytest.raises(InvalidInput) as refused:
            edit()
        assert place in refused.value.why


LINES = st.sampled_from(
    [
        *("a = 1", "[b]", '[mcp_servers.other]\ncommand = "x"', "# note", "", "c = [\n1,\n]"),
        *("[[d]]", "e = '''\n[x]\n'''", "  # in", "f.g = 2"),
    ]
)


@given(st.lists(LINES, max_size=8).map("\n".join))
def test_what_is_put_and_removed_leaves_every_byte(text: str) -> None:
    text += "\n"
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    after = put(text, PATH, ENTRY)
    servers = {**values.get("mcp_servers", {}), "capdex": ENTRY}
    assert read(after) == {**values, "mcp_servers": servers}
    if text.strip():
        assert remove(after, PATH) == text
        # A table that a person writes behind it, with a blank line before it or without one.
        with_env = put(text, PATH, {**ENTRY, "env": {"A": "b"}})
        for behind in ("[z]\n", "\n[z]\n"):
            assert remove(with_env + behind, PATH) == text + behind


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read(text)
    except InvalidInput:
        return
