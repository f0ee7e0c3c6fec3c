"""Untrusted values in questions: what is not seen is made visible, and nothing is cut silently."""

from __future__ import annotations

import hashlib
import json
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput
from capdex_router.policy.quoting import (
    MAX_CHARS,
    MAX_DEPTH,
    escaped,
    quoted,
    said,
    seen,
    shortened,
    tree,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ('say "yes"', r"say \"yes\""),
        ("say \u201cyes\u201d", r"say \u201cyes\u201d"),
        ("say \U0001f676yes\U0001f677", r"say \ud83d\ude76yes\ud83d\ude77"),
        ("a\\b", r"a\\b"),
        ("a\nProof: proven", r"a\nProof: proven"),
        ("a\u2028b\u0085c", r"a\u2028b\u0085c"),
        ("a\u3164b\u2800c\u115fd", r"a\u3164b\u2800c\u115fd"),
        ("a\u00a0b\u3000c", r"a\u00a0b\u3000c"),
        ("\u202eevil", r"\u202eevil"),
        ("\x1b[2J", r"\u001b[2J"),
        ("e\u0301\u0302\u0303\u0304", "e\u0301\u0302\u0303" + r"\u0304"),
        ("café 日本語 😀", "café 日本語 😀"),
        ("👩\u200d💻", "👩\u200d💻"),  # an emoji needs its joiner
        ("a\u200db", r"a\u200db"),
        ("\U000e0041", r"\udb40\udc41"),
        ("a\ue000b\u0378c", r"a\ue000b\u0378c"),  # for private use, and not assigned
    ],
)
def test_what_does_not_show_is_written_out(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\r\n\tlines", "two\r\n\tlines"),
        ('\u201csay\u201d "x"', '\u201csay\u201d "x"'),
        ("a\u3000b\u00a0c é", "a\u3000b\u00a0c é"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("a\u3164b\u2800c\u200dd\u202ee é", r"a\u3164b\u2800c\u200dd\u202ee é"),
        ("\u3164", r"\u3164"),
        ("\U000e0041", r"\udb40\udc41"),
        ("é\x1b[2J\x00", r"é\u001b[2J\u0000"),
        ("\x1b", r"\u001b"),
        ("a\ue000b\u0378c\u2028d\u2029e", r"a\ue000b\u0378c\u2028d\u2029e"),
    ],
)
def test_a_text_for_a_model_keeps_its_lines_and_shows_what_is_unseen(text: str, shown: str) -> None:
    assert seen({text: [text, 1, None, {"a": text}]}) == {shown: [shown, 1, None, {"a": shown}]}


@given(st.characters())
def test_no_character_that_shows_nothing_is_handed_to_a_model(char: str) -> None:
    shows = category(char) not in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp") or char in "\n\r\t"
    assert seen(char).isascii() or shows


@given(st.text(max_size=MAX_CHARS))
def test_a_quoted_text_is_one_line_that_reads_back_as_the_text(text: str) -> None:
    shown = quoted(text)
    assert json.loads(shown) == text
    assert not any(category(char) in ("Cc", "Zl", "Zp") for char in shown)
    assert '"' not in shown[1:-1].replace("\\\\", "").replace('\\"', "")


@given(st.text('abc \n\u3164"\\', min_size=MAX_CHARS + 1))
def test_a_long_text_is_shown_by_its_ends_length_and_hash(text: str) -> None:
    shown = quoted(text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    assert shown.endswith(f" ({len(text)} characters, sha256 {digest})")
    assert shown.startswith(f'"{escaped(text[:133])}" … "{escaped(text[-67:])}" (')
    assert shortened(text).endswith(f"sha256 {digest})")
    assert quoted(text[:MAX_CHARS]) == f'"{escaped(text[:MAX_CHARS])}"'


def test_what_a_program_says_of_a_failure_keeps_its_end() -> None:
    words = said("Traceback\n" + "  File x\n" * 500 + "KeyError: 'rate'")
    assert words.endswith(f"KeyError: 'rate'\" (4526 characters, sha256 {words[-65:-1]})")


def test_a_tree_has_each_key_and_scalar_on_a_line() -> None:
    value = {"to": "a@b.example", "body": {"x y": [1, None, {}], "n": True}, "none": []}
    assert list(tree(value)) == [
        'to: "a@b.example"',
        "body:",
        '  "x y":',
        "    - 1",
        "    - null",
        "    - {}",
        "  n: true",
        "none: []",
    ]


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("to_1", "to_1"),
        ("a" * 64, "a" * 64),
        ("a" * 65, f'"{"a" * 65}"'),
        ("1a", '"1a"'),
        ("tо", '"tо"'),  # with a Cyrillic o
        ("a: b", '"a: b"'),
        ("", '""'),
    ],
)
def test_a_key_that_is_no_plain_name_is_quoted(key: str, shown: str) -> None:
    assert list(tree({key: 1})) == [f"{shown}: 1"]


def test_a_value_that_nests_too_deep_to_follow_is_refused() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    assert len(list(tree(value))) == MAX_DEPTH + 1
    value = [value]
    with pytest.raises(InvalidInput) as caught:
        list(tree(value))
    assert caught.value.code is Code.TOO_LARGE
    assert caught.value.fix
