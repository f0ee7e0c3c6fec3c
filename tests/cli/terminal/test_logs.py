"""What long-lived commands log: one line an event, and nothing in it that a terminal obeys."""

from __future__ import annotations

import io
import json
import logging
import unicodedata

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from capdex_cli.terminal import logs

EVIL = "a\x1b[2Jb\x07c\nd\re\u202ef\x9bg\u2028h\x00i"


def spoken(form: str, event: str, level: str = "info", **fields: object) -> str:
    """What one event writes."""
    stream = io.StringIO()
    logs.set_up(form, stream=stream)
    getattr(structlog.get_logger(part="test"), level)(event, **fields)
    return stream.getvalue()


def hidden(text: str) -> list[str]:
    """Characters that move a cursor or hide."""
    return [x for x in text if unicodedata.category(x) in ("Cc", "Cf", "Zl", "Zp")]


def test_logfmt_has_time_level_part_and_event_first() -> None:
    line = spoken("logfmt", "verified", cap_uri="did:nuwa:cap:note@1.0.0")
    words = line.split()
    assert [word.partition("=")[0] for word in words] == [
        "timestamp",
        "level",
        "part",
        "event",
        "cap_uri",
    ]
    assert words[1:] == [
        "level=info",
        "part=test",
        "event=verified",
        "cap_uri=did:nuwa:cap:note@1.0.0",
    ]


def test_strangers_words_are_escaped_in_logfmt() -> None:
    line = spoken("logfmt", "rejected", "warning", why=EVIL)
    assert hidden(line) == ["\n"]
    assert line.endswith("\n")
    for shown in ("x1b[2J", "x07", "u202e", "x9b", "u2028", "x00"):
        assert shown in line


def test_an_event_of_strangers_words_is_escaped_too() -> None:
    assert hidden(spoken("logfmt", EVIL)) == ["\n"]


def test_strangers_words_inside_a_list_or_an_error_are_escaped() -> None:
    assert hidden(spoken("logfmt", "odd", words=[EVIL], error=ValueError(EVIL))) == ["\n"]


def test_a_traceback_stays_on_one_line_and_is_escaped() -> None:
    line = spoken("logfmt", "failed", "error", exc_info=ValueError(EVIL))
    assert hidden(line) == ["\n"]
    assert "ValueError" in line


@given(st.text())
def test_whatever_strangers_write_is_one_line(text: str) -> None:
    line = spoken("logfmt", "rejected", why=text, other=text)
    assert [x for x in hidden(line) if x not in "\u200c\u200d"] == ["\n"]
    assert spoken("logfmt", "rejected", why="x", forged="level=error").count("\n") == 1


def test_no_value_can_pass_for_another_field() -> None:
    line = spoken("logfmt", "rejected", why='x level=error event="all is lost"')
    assert 'why="x level=error event=\\"all is lost\\""' in line


@given(st.text(), st.text())
def test_json_lines_say_exactly_what_was_logged(event: str, text: str) -> None:
    line = spoken("json", event, why=text)
    assert line.count("\n") == 1
    found = json.loads(line)
    assert (found["event"], found["why"], found["level"]) == (event, text, "info")
    assert found["part"] == "test"
    assert [x for x in line if unicodedata.category(x) == "Cc"] == ["\n"]


def test_json_keeps_numbers_and_tracebacks() -> None:
    found = json.loads(spoken("json", "failed", "error", blocks=3, exc_info=ValueError("why")))
    assert found["blocks"] == 3
    assert "ValueError: why" in found["exception"]


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_debugging_stays_silent(form: str) -> None:
    assert spoken(form, "chatter", "debug") == ""


def test_libraries_speak_from_warnings_upwards() -> None:
    stream = io.StringIO()
    logs.set_up("logfmt", stream=stream)
    logging.getLogger("some.library").info("chatter")
    assert stream.getvalue() == ""
    logging.getLogger("some.library").warning("trouble")
    assert "trouble" in stream.getvalue()


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_what_libraries_say_of_strangers_words_is_escaped(form: str) -> None:
    stream = io.StringIO()
    logs.set_up(form, stream=stream)
    logging.getLogger("some.library").warning("bad header %s", EVIL)
    assert hidden(stream.getvalue()) == ["\n"]


def test_what_libraries_failed_at_is_told_on_one_line() -> None:
    stream = io.StringIO()
    logs.set_up("logfmt", stream=stream)
    try:
        raise ValueError(EVIL)
    except ValueError:
        logging.getLogger("some.library").exception("it failed")
    line = stream.getvalue()
    assert hidden(line) == ["\n"]
    assert 'level=error part=some.library event="it failed"' in line
    assert "ValueError" in line


def test_libraries_speak_json_where_it_is_asked_for() -> None:
    stream = io.StringIO()
    logs.set_up("json", stream=stream)
    logging.getLogger("some.library").warning("trouble with %s", EVIL)
    found = json.loads(stream.getvalue())
    assert found["event"] == f"trouble with {EVIL}"
    assert (found["level"], found["part"]) == ("warning", "some.library")
