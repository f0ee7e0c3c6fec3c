"""Edits of YAML: one member comes or goes, every other byte stays."""

from __future__ import annotations

from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_router.faces.hosts.yaml import put, read, remove

PATH = ("extensions", "capdex")
ENTRY: dict[str, Any] = {"enabled": True, "cmd": "capdex", "args": ["router"], "envs": {}}

BEFORE = """\
# goose
GOOSE_MODEL: m # best
extensions:
  developer: # mine
    enabled: true
    notes: |
      a
      b

  # the next
  memory:
    args: [a,
      b] # end

instructions: >
  do this
"""
AFTER = """\
# goose
GOOSE_MODEL: m # best
extensions:
  developer: # mine
    enabled: true
    notes: |
      a
      b

  # the next
  memory:
    args: [a,
      b] # end
  capdex:
    enabled: true
    cmd: capdex
    args:
    - router
    envs: {}

instructions: >
  do this
"""


def test_a_file_with_comments_gets_one_member_more_and_less() -> None:
    assert put(BEFORE, PATH, ENTRY) == AFTER
    assert remove(AFTER, PATH) == BEFORE
    windows = BEFORE.replace("\n", "\r\n")
    assert put(windows, PATH, ENTRY) == AFTER.replace("\n", "\r\n")
    assert remove(AFTER.replace("\n", "\r\n"), PATH) == windows


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "e:\n  c: 1\n"),
        ("# x", "# x\ne:\n  c: 1\n"),
        ("{}\n", "e:\n  c: 1\n"),
        ("a: 1", "a: 1\ne:\n  c: 1"),
        ("e:\n", "e:\n  c: 1\n"),
        ("e: # x\n", "e:\n  c: 1 # x\n"),
        ("e: ~\nb: 2\n", "e:\n  c: 1\nb: 2\n"),
        ("e: {}\n", "e:\n  c: 1\n"),
        ("e: {a: 1}\n", 'e: {a: 1, "c": 1}\n'),
        ("e: {a: 1,}\n", 'e: {a: 1, "c": 1}\n'),
        ('{"e": {"a": 1}}\n', '{"e": {"a": 1, "c": 1}}\n'),
        ("e:\n    a: 1\n", "e:\n    a: 1\n    c: 1\n"),
        ("e:\n  a: |\n    x\n\nb: 2\n", "e:\n  a: |\n    x\n  c: 1\n\nb: 2\n"),
        ("e:\n  c: 2 # x\n", "e:\n  c: 1 # x\n"),
        ("e:\n  c:\n    d: 2\n  f: 3\n", "e:\n  c: 1\n  f: 3\n"),
        ("---\na: 1\n...\n", "---\na: 1\ne:\n  c: 1\n...\n"),
        ("é: 😀\n", "é: 😀\ne:\n  c: 1\n"),
    ],
)
def test_a_member_is_put(before: str, after: str) -> None:
    assert put(before, ("e", "c"), 1) == after
    assert read(after)["e"]["c"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("e:\n  c: 1\n", "e: {}\n"),
        ("e:\n  c: 1", "e: {}"),
        ("e:\n  c:\n    d: 1\nb: 2\n", "e: {}\nb: 2\n"),
        ("e:\n  a: 1\n  c: 1\n", "e:\n  a: 1\n"),
        ("e:\n  a: 1\n  c: 1", "e:\n  a: 1"),
        ("e:\n  c: 1 # x\n  a: 1\n", "e:\n  a: 1\n"),
        ("e: {c: 1}\n", "e: {}\n"),
        ("e: {c: 1, a: 1}\n", "e: {a: 1}\n"),
        ("e: {a: 1, c: {d: 1}}\n", "e: {a: 1}\n"),
        ("e:\n  a: 1\n", "e:\n  a: 1\n"),
        ("a: 1\n", "a: 1\n"),
        ("", ""),
    ],
)
def test_a_member_is_removed(before: str, after: str) -> None:
    assert remove(before, ("e", "c")) == after


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [", "line 1, column 5"),
        ("a: 1\n\tb: 2\n", "line 2, column 1"),
        ("a: !x 1\n", "line 1, column 4"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1"),
        ("a: \x07", "unacceptable character"),
        ("[" * 1000, ""),
    ],
)
def test_a_broken_text_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    assert place in refused.value.why


def test_a_text_with_aliases_is_not_edited() -> None:
    with pytest.raises(InvalidInput, match="cannot be edited"):
        put("a: &x {}\ne: *x\n", ("e", "c"), 1)


KEYS = st.text("ab:#- é", max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab: #-\n'\"é|>", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(KEYS, VALUES, max_size=3),
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=3),
    st.sampled_from([True, False, None]),
)
def test_what_is_put_and_removed_leaves_every_byte(
    whole: dict[str, Any], servers: dict[str, Any], flow: bool | None
) -> None:
    value = {**whole, "extensions": servers}
    text = pyyaml.safe_dump(value, default_flow_style=flow, sort_keys=False, allow_unicode=True)
    after = put(text, PATH, ENTRY)
    assert read(after) == {**whole, "extensions": {**servers, "capdex": ENTRY}}
    assert remove(after, PATH) == text
