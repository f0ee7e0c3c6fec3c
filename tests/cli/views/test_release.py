"""Releases of answers as text (capdex_cli/views/release.py)."""

from __future__ import annotations

import io

import click

from capdex_cli.terminal.output import Stream
from capdex_cli.views.release import highlighted


def test_a_terminal_shows_the_words_that_were_found() -> None:
    snippet = {"field": "triggers", "text": "will it rain", "highlights": [[8, 12], [0, "x"]]}
    terminal = Stream(io.StringIO(), tty=True, color=True, unicode=True)
    shown = highlighted(terminal, snippet, 60)
    assert click.unstyle(shown) == "will it rain"
    assert click.style("rain", bold=True) in shown
