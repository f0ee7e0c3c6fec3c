"""Nothing a stranger wrote can move the cursor, and columns stand where they should."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_cli.terminal.text import (
    clip,
    columns,
    duration,
    json_safe,
    safe,
    short,
    size,
    width,
    without_secrets,
)

OBEYED = {
    "an escape sequence": ("\x1b[31mred", "\\x1b[31mred"),
    "a carriage return": ("good\rbad", "good\\rbad"),
    "a line break": ("a\nb", "a\\nb"),
    "a C1 control": ("a\x9b31m", "a\\x9b31m"),
    "a bidi override": ("a\u202eb", "a\\u202eb"),
    "a bidi isolate": ("\u2066x", "\\u2066x"),
    "a line separator": ("a\u2028b", "a\\u2028b"),
    "a zero-width space": ("a\u200bb", "a\\u200bb"),
    "a tag character": ("a\U000e0041", "a\\U000e0041"),
    "a filler": ("\u3164", "\\u3164"),
    "a lone surrogate": ("\ud800", "\\ud800"),
}


@pytest.mark.parametrize(("text", "shown"), OBEYED.values(), ids=OBEYED)
def test_what_a_terminal_would_obey_is_shown_escaped(text: str, shown: str) -> None:
    assert safe(text) == shown


@pytest.mark.parametrize("text", ["héllo", "天气", "👩‍👩‍👧", "नमस्‍ते", "❤️"])
def test_writing_of_all_kinds_is_shown_as_it_is(text: str) -> None:
    assert safe(text) == text


@given(st.text())
def test_safe_text_has_no_control_character_and_stands_on_one_line(text: str) -> None:
    shown = safe(text)
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in shown)
    assert len(shown.splitlines()) <= 1
    assert safe(shown) == shown


@given(st.text())
def test_json_made_safe_means_the_same(text: str) -> None:
    document = json_safe(json.dumps({"x": text}, ensure_ascii=False, indent=2))
    assert json.loads(document) == {"x": text}


def test_columns_line_up_with_wide_characters_and_colour() -> None:
    lines = columns([("天气", "1"), ("\x1b[1mab\x1b[0m", "2")], indent=0)
    assert [width(line) for line in lines] == [7, 7]


@given(st.text(), st.integers(1, 40))
def test_clipped_text_fits(text: str, room: int) -> None:
    assert width(clip(safe(text), room)) <= room


def test_long_values_and_sizes_are_short_for_people() -> None:
    assert short("0x" + "ab" * 32) == "0xabababab…abab"
    assert short("0xab") == "0xab"
    assert (size(12), size(3174)) == ("12 B", "3.1 KiB")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"), (59.4, "59 s"), (60, "1 min"), (3599, "59 min"),
        (7500, "2 h 5 min"), (100_000, "1 d 3 h"),
    ],
)  # fmt: skip
def test_a_duration_has_at_most_two_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://rpc.example/v2", "https://rpc.example/v2"),
        ("https://user:word@rpc.example/v2?key=1", "https://…@rpc.example/v2?…"),
        ("https://rpc.example/v2/0123456789abcdef", "https://rpc.example/v2/0123…"),
        ("http://[rpc.example/0123456789abcdef", "…"),
        ("gateway:https://user:word@ipfs.example", "gateway:https://…@ipfs.example"),
        ("https://a:b@one.example, http://c:d@two", "https://…@one.example, http://…@two"),
        (
            "https://one.example,http://c:d@two.example/?k=1",
            "https://one.example,http://…@two.example/?…",
        ),
        (
            "my-signer --node https://user:word@rpc.example",
            "my-signer --node https://…@rpc.example",
        ),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url: str, said: str) -> None:
    assert without_secrets(url) == said
