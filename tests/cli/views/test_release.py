"""Releases of answers as text (capdex_cli/views/release.py)."""

from __future__ import annotations

import io

import click
import pytest

from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.text import columns
from capdex_cli.views.release import flags, highlighted, hit_rows, mark


def test_a_terminal_shows_the_words_that_were_found() -> None:
    snippet = {"field": "triggers", "text": "will it rain", "highlights": [[8, 12], [0, "x"]]}
    terminal = Stream(io.StringIO(), tty=True, color=True, unicode=True)
    shown = highlighted(terminal, snippet, 60)
    assert click.unstyle(shown) == "will it rain"
    assert click.style("rain", bold=True) in shown


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"yanked": True, "deprecated": True}, ["yanked", "deprecated"]),
        ({"deprecated": False, "name_deprecated": True}, ["deprecated"]),
        ({"deprecated": True, "name_deprecated": True}, ["deprecated"]),
        ({}, []),
    ],
)
def test_a_release_of_a_deprecated_name_is_marked_as_deprecated(
    status: dict[str, bool], told: list[str]
) -> None:
    assert flags({"status": status}) == told


def test_a_hit_whose_name_is_like_an_older_one_is_marked_so() -> None:
    hit = {"verification": {"verdict": "verified"}, "like": "weather\x1b[2J"}
    shown = mark(Stream(io.StringIO(), tty=False, color=False, unicode=True), hit)
    assert shown == "✓ verified, like the older name weather\\x1b[2J of another owner"


def test_a_hit_and_what_was_found_in_it_stand_on_two_lines_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hit = {
        "cap_uri": "did:nuwa:cap:weatherreporter@1.0.0",
        "semver": "1.0.0",
        "verification": {"verdict": "verified"},
        "acp_metadata": {"description": "Provides weather forecasts and can message contacts."},
        "matched": ["name", "title", "description", "triggers", "memory_scope", "tools"],
        "why": {"tool": "get_current_weather", "snippet": {"text": "Weather Reporter"}},
    }
    terminal = Stream(io.StringIO(), tty=True, color=False, unicode=True)
    lines = columns(hit_rows(terminal, hit), indent=0)
    assert lines[1].endswith("Weather Reporter")
    assert max(map(len, lines)) <= 80
