"""Outputs of programs as JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, Code, ExecutionFailed
from capdex_router.commands.output import Kind, parse


@pytest.mark.parametrize(
    ("kind", "data", "output"),
    [
        ("json", b'{"a": 1}', {"a": 1}),
        ("json", b"[1]", {"result": [1]}),
        ("json", b"\n", {"result": None}),
        ("jsonLines", b'{"a": 1}\n\n{"a": 2}\n', {"records": [{"a": 1}, {"a": 2}]}),
        ("jsonLines", b"", {"records": []}),
        ("lines", b"a\nb\xff\n", {"lines": ["a", "b\N{REPLACEMENT CHARACTER}"], "not_utf8": 1}),
        ("lines", "\N{REPLACEMENT CHARACTER}".encode(), {"lines": ["\N{REPLACEMENT CHARACTER}"]}),
        ("lines", "a\fb\vc\x85\u2028\n\n".encode(), {"lines": ["a\fb\vc\x85\u2028", ""]}),
        ("lines", b"10%\r99%\rdone\r\nmore\r\n", {"lines": ["done", "more"], "overwritten": 2}),
        ("lines", b"a,b\r1,2\r\r", {"lines": ["1,2"], "overwritten": 1}),
        ("lines", b"a\r\nb\r\n", {"lines": ["a", "b"]}),
        ("table", b"NAME  AGE\nann   3\n", {"rows": [{"NAME": "ann", "AGE": "3"}]}),
        ("table", b"NAME  AGE\nann   3  x\n", {"lines": ["NAME  AGE", "ann   3  x"]}),
        ("table", b"NAME  AGE  AT\nann   3\n", {"lines": ["NAME  AGE  AT", "ann   3"]}),
        ("table", b"NAME  NAME\nann   bob\n", {"lines": ["NAME  NAME", "ann   bob"]}),
        ("table", b"", {"rows": []}),
    ],
)
def test_outputs(kind: Kind, data: bytes, output: dict[str, Any]) -> None:
    assert parse(kind, data) == output


@pytest.mark.parametrize(
    ("kind", "data", "output"),
    [
        ("lines", b"", {"lines": [], "stderr": "one file reformatted"}),
        ("auto", b'{"a": 1}', {"result": {"a": 1}, "stderr": "one file reformatted"}),
        ("auto", b"[1]", {"result": [1], "stderr": "one file reformatted"}),
        ("jsonLines", b"1\n", {"records": [1], "stderr": "one file reformatted"}),
        ("json", b'{"a": 1}', {"a": 1}),
    ],
)
def test_what_a_program_tells_beside_its_output(kind: Kind, data: bytes, output: Any) -> None:
    assert parse(kind, data, "one file reformatted") == output


def test_a_cut_output_ends_at_its_last_whole_line() -> None:
    cut = parse("jsonLines", b'{"a": 1}\n{"a":', truncated=True)
    assert cut == {"records": [{"a": 1}], "truncated": True}
    assert parse("lines", b"a\nb", truncated=True) == {"lines": ["a"], "truncated": True}


@pytest.mark.parametrize(
    ("kind", "data"), [("json", b"{"), ("json", b"[" * 500 + b"]" * 500), ("jsonLines", b"a\n")]
)
def test_another_output_than_was_promised_is_refused(kind: Kind, data: bytes) -> None:
    with pytest.raises(CapdexError) as refused:
        parse(kind, data)
    assert refused.value.code == Code.OUTPUT_INVALID


@given(st.sampled_from(["json", "jsonLines", "lines", "table"]), st.binary(max_size=200))
def test_any_output_is_read_or_refused(kind: Kind, data: bytes) -> None:
    for truncated in (False, True):
        try:
            found = parse(kind, data, truncated=truncated)
        except ExecutionFailed:
            continue
        assert isinstance(found, dict)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b" [1]\n", {"result": [1]}),
        (b"[x]\n", {"lines": ["[x]"]}),
        (b"1\n", {"lines": ["1"]}),
        (b"", {"lines": []}),
        (b"[" * 10_000, {"lines": ["[" * 10_000]}),
    ],
)
def test_an_output_that_nobody_described_is_json_if_it_is_that(data: bytes, found: Any) -> None:
    assert parse("auto", data) == found


def test_a_line_of_many_megabytes_is_read_once() -> None:
    assert parse("lines", b"a" * 8_000_000 + b"\r") == {"lines": ["a" * 8_000_000]}


def test_many_returns_of_the_carriage_are_counted_once_each() -> None:
    assert parse("lines", b"\r" * 1_000_000) == {"lines": [""]}
    assert parse("lines", b"a\r" * 1_000_000 + b"b") == {"lines": ["b"], "overwritten": 1_000_000}


def test_half_of_an_output_that_nobody_described_is_lines() -> None:
    assert parse("auto", b'{"a":\n1', truncated=True) == {"lines": ['{"a":'], "truncated": True}
