"""Four faces of one result; colour only where it is wanted."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from capdex.errors import UsageError
from capdex_cli.terminal.errors import show
from capdex_cli.terminal.output import Format, Output, Stream, wants_color


def stream(encoding: str = "utf-8", *, tty: bool = False) -> Stream:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    file.isatty = lambda: tty  # type: ignore[method-assign]
    return Stream.of(file, "never")


def written(to: Stream) -> str:
    to.file.flush()
    return to.file.buffer.getvalue().decode(to.file.encoding)  # type: ignore[attr-defined]


def output(form: Format, **streams: Any) -> Output:
    return Output(streams.get("out", stream()), stream(), form)


@pytest.mark.parametrize(
    ("choice", "tty", "environ", "wanted"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"CLICOLOR_FORCE": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("auto", False, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
        ("auto", False, {"GITHUB_ACTIONS": "true"}, False),
        ("auto", True, {"CMP_ROUTER": "1"}, False),
        ("auto", True, {"CMP_AGENT": "1", "FORCE_COLOR": "1"}, False),
        ("auto", True, {"CMP_ROUTER": "0", "CMP_AGENT": ""}, True),
        ("always", True, {"CMP_ROUTER": "1"}, True),
    ],
)
def test_colour_follows_option_then_environment_then_terminal(
    choice: str, tty: bool, environ: dict[str, str], wanted: bool
) -> None:
    assert wants_color(choice, tty, environ) is wanted


def test_a_result_has_a_face_for_people_programs_and_scripts() -> None:
    faces = {}
    for form in Format:
        to = output(form)
        to.result("thing", {"a": "é"}, human=["A é"], plain=["é"])
        faces[form] = written(to.out)
    assert faces == {
        Format.HUMAN: "A é\n",
        Format.JSON: '{\n  "schema": "capdex.thing/1",\n  "a": "é"\n}\n',
        Format.JSONL: '{"schema": "capdex.thing/1", "a": "é"}\n',
        Format.PLAIN: "é\n",
    }


def test_a_list_is_one_document_or_a_line_each() -> None:
    lines, document = output(Format.JSONL), output(Format.JSON)
    for to in (lines, document):
        to.results("thing", [{"a": 1}, {"a": 2}], plain=(), total=2)
    assert [json.loads(x) for x in written(lines.out).splitlines()] == [
        {"schema": "capdex.thing/1", "a": 1},
        {"schema": "capdex.thing/1", "a": 2},
    ]
    assert json.loads(written(document.out)) == {
        "schema": "capdex.thing/1",
        "results": [{"a": 1}, {"a": 2}],
        "total": 2,
    }


def test_into_a_pipe_results_are_json_lines_and_on_a_terminal_they_are_for_people() -> None:
    assert Output.open().format in (Format.JSONL, Format.HUMAN)
    assert Output.open(Format.PLAIN).format is Format.PLAIN


@pytest.mark.parametrize("name", ["CMP_ROUTER", "CMP_AGENT"])
def test_an_agent_gets_one_json_document(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    found = Output.open()
    assert (found.format, found.explicit) == (Format.JSON, True)
    assert (found.out.tty, found.err.tty, found.err.color) == (False, False, False)
    assert Output.open(Format.PLAIN).format is Format.PLAIN


def test_marks_are_ascii_where_the_locale_is_not_utf8() -> None:
    assert (stream().mark("ok"), stream("ascii").mark("ok")) == ("✓", "ok")


def test_what_an_encoding_lacks_is_escaped_not_an_error() -> None:
    to = stream("latin-1")
    to.write("é 天")
    assert written(to) == "é \\u5929\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
@pytest.mark.parametrize("form", [Format.JSON, Format.JSONL])
def test_json_is_utf_8_in_every_locale(encoding: str, form: Format) -> None:
    to = Output(stream(encoding), stream(encoding), form, explicit=True)
    text = "Größe · 茶 \U0001f375 \udcff"
    to.result("tea", {"text": text}, plain=[])
    show(UsageError(text), to)
    for place, member in ((to.out, "text"), (to.err, "message")):
        raw = written(place).encode(encoding)
        assert json.loads(raw.decode("utf-8"))[member] == text


def test_quiet_drops_words_but_no_warning() -> None:
    to = Output(stream(), stream(), Format.HUMAN, verbosity=-1)
    to.say("hello")
    to.step("ok", "mined", "block 1")
    to.warn("mind this")
    to.warn("mind this")
    assert written(to.err) == "warning: mind this\n"
    assert written(to.out) == ""
