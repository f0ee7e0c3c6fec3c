"""Characters that nobody sees or that readers understand differently (P7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.yaml.characters import beginning, describe, forbidden


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("words", 3, "wor"),
        ("a👩\u200d💻b", 2, "a"),
        ("a👩\u200d💻b", 3, "a"),
        ("a👩\u200d💻b", 4, "a👩\u200d💻"),
        ("a👍🏽b", 2, "a"),
        ("❤\ufe0f b", 1, "❤"),  # nothing would be left
        ("a🇩🇪🇯🇵", 4, "a🇩🇪"),
        ("cafe\u0301s", 4, "caf"),
        ("می\u200cخواهم", 2, "م"),
        ("กำที่", 4, "กำ"),
        ("a" + "\u0301" * 99, 50, "a" + "\u0301" * 49),
        ("short", 9, "short"),
    ],
)
def test_a_text_is_cut_between_letters_with_their_marks(text: str, most: int, kept: str) -> None:
    assert beginning(text, most) == kept


@pytest.mark.parametrize(
    "text",
    [
        "plain ASCII,\twith a tab\nand a line",
        "日本語 한국어 العربية עברית ไทย हिन्दी",
        "non-breaking\u00a0space",
        "❤\ufe0f and 👩\u200d💻 and 🏳\ufe0f\u200d🌈",
        "1\ufe0f\u20e3 is a keycap",
        "می\u200cخواهم",
        "क्\u200dष and क्\u200cष",
        "ᠠ\u180b",
    ],
)
def test_what_scripts_and_emoji_need_is_allowed(text: str) -> None:
    assert list(forbidden(text)) == []


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\x00", "a NUL (U+0000)"),
        ("\x1b", "a control character (U+001B)"),
        ("\r", "a carriage return (U+000D)"),
        ("\x85", "a next-line character (U+0085)"),
        ("\u00ad", "a soft hyphen (U+00AD)"),
        ("\u200b", "a zero-width space (U+200B)"),
        ("\u200c", "an invisible character (U+200C)"),
        ("\u200d", "an invisible character (U+200D)"),
        ("\u200e", "a bidirectional control (U+200E)"),
        ("\u202e", "a bidirectional control (U+202E)"),
        ("\u2028", "a line separator (U+2028)"),
        ("\u2066", "a bidirectional control (U+2066)"),
        ("\u180b", "an invisible character (U+180B)"),
        ("\u3164", "an invisible character (U+3164)"),
        ("\ufe0e", "an invisible character (U+FE0E)"),
        ("\ufe0f", "an invisible character (U+FE0F)"),
        ("\ufeff", "a byte order mark (U+FEFF)"),
        ("\ud800", "half of a surrogate pair (U+D800)"),
        ("\ufdd0", "a noncharacter (U+FDD0)"),
        ("\U0001ffff", "a noncharacter (U+1FFFF)"),
        ("\U000e0041", "a tag character (U+E0041)"),
        ("\U000e0100", "an invisible character (U+E0100)"),
    ],
)
def test_what_hides_in_latin_text_is_forbidden_and_named(character: str, name: str) -> None:
    assert list(forbidden(f"ab{character}cd")) == [2]
    assert list(forbidden(character)) == [0]
    assert describe(character) == name


def test_joiners_cannot_be_piled_up() -> None:
    assert list(forbidden("می\u200c\u200c\u200cخ")) == [3, 4]
    assert list(forbidden("❤\ufe0f\ufe0f")) == [2]


@given(st.text())
def test_text_without_the_forbidden_characters_has_no_control_left(text: str) -> None:
    found = set(forbidden(text))
    kept = "".join(c for i, c in enumerate(text) if i not in found)
    assert all(c in "\t\n" or ord(c) >= 0x20 for c in kept)
    kept.encode()
