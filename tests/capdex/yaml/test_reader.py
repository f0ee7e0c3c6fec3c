"""Strict YAML: what is read, what is refused, and where it says things stand (P7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capdex.diagnostics import walk
from capdex.limits import MAX_DEPTH, MAX_PACKAGE_BYTES
from capdex.problems import Reason, Severity
from capdex.yaml import Scalar, Style, YamlReading, read_yaml

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.acp.yaml"))


def errors(reading: YamlReading) -> list[Reason]:
    return [x.code for x in reading.problems if x.severity is Severity.ERROR]


def value_of(text: str) -> Any:
    reading = read_yaml(f"x: {text}\n".encode())
    assert not errors(reading), reading.problems
    return reading.value["x"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("on", "on"),
        ("010", "010"),
        ("0644", "0644"),
        ("01.5", "01.5"),
        ("1:30", "1:30"),
        ("2025-05-13", "2025-05-13"),
        ("1_000", "1_000"),
        ("1.2.3", "1.2.3"),
        ("0", 0),
        ("-12", -12),
        ("+5", 5),
        ("0o17", 15),
        ("0x1F", 31),
        ("9007199254740991", 2**53 - 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ('"no"', "no"),
        ("'010'", "010"),
        ('"\\x41\\u00e9"', "Aé"),
        ("|\n  a\n  b", "a\nb\n"),
        (">-\n  a\n  b", "a b"),
        ("[1, {a: b}, []]", [1, {"a": "b"}, []]),
    ],
)
def test_a_scalar_follows_the_core_schema(text: str, value: Any) -> None:
    read = value_of(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "9007199254740992",
        "1" * 5000,
        "0x" + "f" * 99,
        ".inf",
        "-.INF",
        ".nan",
        "1e999",
        "1." + "0" * 99,
    ],
)
def test_a_number_json_cannot_carry_is_refused(text: str) -> None:
    assert errors(read_yaml(f"x: {text}\n".encode())) == [Reason.BAD_VALUE]


@pytest.mark.parametrize("text", ["no", "010", "1:30", "2025-05-13", "1.10", "1_000"])
def test_text_that_other_readers_take_for_something_else_is_noted(text: str) -> None:
    (problem,) = read_yaml(f"x: {text}\n".encode()).problems
    assert (problem.code, problem.severity) == (Reason.BAD_VALUE, Severity.NOTE)
    assert (problem.path, problem.line, problem.column) == ("x", 1, 4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: &x 1\n", Reason.YAML_FEATURE),
        ("a: [*x]\n", Reason.YAML_FEATURE),
        ("? *x\n: 1\n", Reason.YAML_FEATURE),
        ("a: !!str 1\n", Reason.YAML_FEATURE),
        ("a: ! 1\n", Reason.YAML_FEATURE),
        ("a: !!map {}\n", Reason.YAML_FEATURE),
        ("%YAML 1.2\n---\na: 1\n", Reason.YAML_FEATURE),
        ("a: 1\n---\nb: 1\n", Reason.YAML_FEATURE),
        ("a: 1\n...\nb: 1\n", Reason.YAML_SYNTAX),
        ("<<: {a: 1}\n", Reason.YAML_FEATURE),
        ('"<<": {a: 1}\n', Reason.YAML_FEATURE),
        ("1: a\n", Reason.YAML_FEATURE),
        ("true: a\n", Reason.YAML_FEATURE),
        ("?\n: a\n", Reason.YAML_FEATURE),
        ("[a]: b\n", Reason.YAML_FEATURE),
        ("{a: {b: c}}: d\n", Reason.YAML_FEATURE),
        ("{?foo: bar}\n", Reason.YAML_FEATURE),
        ("[?foo]\n", Reason.YAML_FEATURE),
        ("a: 1\n'a': 2\n", Reason.DUPLICATE_KEY),
        ('a: 1\n"\\x61": 2\n', Reason.DUPLICATE_KEY),
        ("a: [\n", Reason.YAML_SYNTAX),
        ("a: b: c\n", Reason.YAML_SYNTAX),
        ("", Reason.YAML_SYNTAX),
        ("# nothing\n", Reason.YAML_SYNTAX),
        ("a: \x00\n", Reason.FORBIDDEN_CHARACTER),
        ("a: 1\r\n", Reason.FORBIDDEN_CHARACTER),
        ("a: b\u2028c\n", Reason.FORBIDDEN_CHARACTER),
        ("a: b\u0085c\n", Reason.FORBIDDEN_CHARACTER),
        ('a: "\\u202e"\n', Reason.FORBIDDEN_CHARACTER),
        ('a: "\\0"\n', Reason.FORBIDDEN_CHARACTER),
        ('a: "\\ud800"\n', Reason.YAML_SYNTAX),
        ("a: " + "x" * (128 * 1024 + 1) + "\n", Reason.TOO_LARGE),
        ("a: " + "[" * MAX_DEPTH + "\n", Reason.TOO_DEEP),
        ("[" + "a," * 10_000 + "]\n", Reason.TOO_MANY),
    ],
)
def test_what_readers_could_read_differently_is_refused(text: str, reason: Reason) -> None:
    assert reason in errors(read_yaml(text.encode()))


@pytest.mark.parametrize(
    ("data", "reason", "place"),
    [
        (b"\xef\xbb\xbfa: 1\n", Reason.NOT_UTF8, (1, 1)),
        ("a: 1\n".encode("utf-16"), Reason.NOT_UTF8, (1, 1)),
        ("a: é\nb: ".encode() + b"\xc0\xaf", Reason.NOT_UTF8, (2, 4)),
        (b"a: \xed\xa0\x80\n", Reason.NOT_UTF8, (1, 4)),
        (b"#" * (MAX_PACKAGE_BYTES + 1), Reason.TOO_LARGE, (1, 1)),
    ],
)
def test_bytes_that_are_no_small_utf8_text_are_refused(
    data: bytes, reason: Reason, place: tuple[int, int]
) -> None:
    (problem,) = read_yaml(data).problems
    assert (problem.code, (problem.line, problem.column)) == (reason, place)


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 20_000, "{a: " * 20_000, "? " * 20_000])
def test_endless_nesting_is_refused_without_recursion(text: str) -> None:
    assert Reason.TOO_DEEP in errors(read_yaml(text.encode()))


def test_all_problems_are_reported_at_once_in_the_order_of_the_file() -> None:
    data = "a: &x 1\nb: *x\na: !!int 2\n1: c\nd: e\u200bf\n".encode()
    reading = read_yaml(data)
    assert [(x.code, x.path, x.line, x.column) for x in reading.problems] == [
        (Reason.YAML_FEATURE, "a", 1, 4),
        (Reason.YAML_FEATURE, "b", 2, 4),
        (Reason.DUPLICATE_KEY, "a", 3, 1),
        (Reason.YAML_FEATURE, "", 3, 4),
        (Reason.YAML_FEATURE, "", 4, 1),
        (Reason.FORBIDDEN_CHARACTER, "", 5, 5),
    ]


def test_a_problem_inside_a_refused_key_has_the_path_around_it() -> None:
    reading = read_yaml(b"a: {[&x b]: c}\n")
    assert {x.path for x in reading.problems} == {"a"}


def test_a_thousand_faults_are_cut_to_what_people_can_mend() -> None:
    reading = read_yaml(b"a: 1\n" * 1000)
    assert len(reading.problems) == 100


def test_a_block_that_ends_with_the_file_is_refused() -> None:
    (problem,) = read_yaml(b"a: |\n  b").problems
    assert (problem.code, problem.severity) == (Reason.YAML_SYNTAX, Severity.ERROR)
    assert problem.hint == "end the file with a line feed"
    assert not read_yaml(b"a: |\n  b\n").problems


def scalars(reading: YamlReading) -> dict[tuple[str | int, ...], Scalar]:
    """Every scalar of a file by its path."""
    found = {path: reading.outline.scalar(path) for path, _ in walk(reading.value)}
    return {path: scalar for path, scalar in found.items() if scalar is not None}


def test_scalars_know_their_bytes() -> None:
    data = (
        "é: 日本 # 😀\nm:\n  k: 'a'\n  s: zabc\n  e:\n  b: |\n    x\nf: {g: \"y\", h: }\n".encode()
    )
    reading = read_yaml(data)
    spans = {path: data[x.start : x.end].decode() for path, x in scalars(reading).items()}
    assert spans == {
        ("é",): "日本",
        ("m", "k"): "'a'",
        ("m", "s"): "zabc",
        ("m", "e"): "",
        ("m", "b"): "|\n    x\n",
        ("f", "g"): '"y"',
        ("f", "h"): "",
    }
    assert scalars(reading)["m", "s"].style is Style.PLAIN
    assert scalars(reading)["m", "k"].style is Style.QUOTED
    assert scalars(reading)["m", "b"].style is Style.BLOCK
    assert data[: scalars(reading)["m", "e"].start].endswith(b"e:")
    assert reading.outline.mark(("m", "s")) == (4, 6)


def test_mappings_know_where_entries_can_be_added() -> None:
    data = "é: 1\nm:\n  k: 'a'\n  l: [b]\nn: {o: p}\n".encode()
    reading = read_yaml(data)
    block, flow = reading.outline.mapping(("m",)), reading.outline.mapping(("n",))
    assert block is not None
    assert flow is not None
    assert (block.flow, block.column, list(block.keys)) == (False, 3, ["k", "l"])
    assert len(block.keys) == 2
    assert flow.flow


def test_places_are_told_for_every_value_and_for_nothing_else() -> None:
    reading = read_yaml(b"a: [1, {b: x}]\nc: *d\n? [e]\n: f\n")
    paths = {(), ("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c",)}
    outline = reading.outline
    assert all(outline.mark(path) for path in paths)
    assert {path for path in paths if outline.scalar(path)} == {("a", 0), ("a", 1, "b")}
    assert {path for path in paths if outline.mapping(path)} == {(), ("a", 1)}
    for path in [("b",), ("a", 2), ("a", "b"), ("a", 0, 0), ("c", "d"), ("e",)]:
        assert outline.mark(path) is None
        assert outline.scalar(path) is None


def test_a_mapping_that_is_not_read_to_its_end_has_a_place_and_no_span() -> None:
    reading = read_yaml(b"a: {b: {c: 1}, d: [\n")
    assert reading.value is None
    paths = [(), ("a",), ("a", "b"), ("a", "b", "c"), ("a", "d")]
    assert all(reading.outline.mark(path) for path in paths)
    assert [path for path in paths if reading.outline.mapping(path)] == [("a", "b")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_plain_scalar_of_the_examples_stands_where_it_says(path: Path) -> None:
    data = path.read_bytes()
    reading = read_yaml(data)
    assert not reading.problems
    for place, value in walk(reading.value):
        scalar = reading.outline.scalar(place)
        if scalar and scalar.style is Style.PLAIN and isinstance(value, str):
            assert data[scalar.start : scalar.end].decode() == value


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(min_codepoint=32, max_codepoint=126)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc<: #-", max_size=8), inner),
    max_leaves=20,
)


@given(JSON)
def test_json_reads_as_itself(value: Any) -> None:
    reading = read_yaml(json.dumps(value).encode())
    if "<<" in json.dumps(value):
        return
    assert not errors(reading), reading.problems
    assert reading.value == value


MARKS = ["<<", "0x1", "1.5", ".inf", "\\x41", "---", "...", "\n  ", "  - ", ": ", "a: ", "? "]
FRAGMENTS = st.sampled_from([*"ab-:?[]{},#&*!|>'\"%@`~1é😀\n\t\r\u200d\x85 ", *MARKS])


def inside(data: bytes, reading: YamlReading) -> bool:
    lines = data.decode("utf-8", "replace").split("\n")
    return all(
        1 <= x.line <= len(lines) and 1 <= x.column <= len(lines[x.line - 1]) + 1
        for x in reading.problems
    )


@given(st.binary() | st.lists(FRAGMENTS).map(lambda parts: "".join(parts).encode()))
@example(b"{a: {b: c}}: d")
def test_any_bytes_give_a_json_value_or_placed_problems(data: bytes) -> None:
    reading = read_yaml(data)
    assert json.loads(json.dumps(reading.value, allow_nan=False)) == reading.value
    assert inside(data, reading)
    for scalar in scalars(reading).values():
        assert 0 <= scalar.start <= scalar.end <= len(data)
