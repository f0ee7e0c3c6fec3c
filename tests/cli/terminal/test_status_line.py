"""The line of the terminal that is overwritten."""

from __future__ import annotations

import io

import pytest

from capdex_cli.terminal import status_line
from capdex_cli.terminal.output import Format, Output, Stream
from capdex_cli.terminal.status_line import ERASE, StatusLine


def open_line(file: io.StringIO, *, tty: bool = True, verbosity: int = 0) -> StatusLine:
    stream = Stream(file, tty=tty, color=False, unicode=True)
    return StatusLine(Output(stream, stream, Format.HUMAN, verbosity))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setenv("TERM", "xterm")
    return io.StringIO()


@pytest.fixture
def line(terminal: io.StringIO) -> StatusLine:
    return open_line(terminal)


def test_a_log_line_goes_above_the_line_that_changes(
    line: StatusLine, terminal: io.StringIO
) -> None:
    line.show("half way")
    line.write("event=one\n")
    assert terminal.getvalue() == f"{ERASE}  · half way{ERASE}event=one\n{ERASE}  · half way"
    terminal.truncate(terminal.seek(0))
    line.show("")
    line.write("event=two\n")
    assert terminal.getvalue() == f"{ERASE}event=two\n"


def test_a_line_is_cut_to_the_width_of_the_terminal(
    line: StatusLine, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    line.show("x" * 100)
    assert len(terminal.getvalue().removeprefix(ERASE)) < 30


def test_without_a_terminal_the_text_is_logged_now_and_then(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = open_line(terminal, tty=False)
    line.show("1 of 3")
    assert terminal.getvalue() == ""
    line.show("2 of 3", log_now=True)
    monkeypatch.setattr(status_line, "LOG_EVERY_S", 0.0)
    line.show("3 of 3")
    line.clear()
    assert terminal.getvalue() == "  · 2 of 3\n  · 3 of 3\n"


def test_quiet_shows_no_line(terminal: io.StringIO) -> None:
    open_line(terminal, verbosity=-1).show("1 of 3")
    assert terminal.getvalue() == ""
