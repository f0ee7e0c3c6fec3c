"""The subset of Markdown that texts of publishers are shown in."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_explorer.views.markdown import MAX_BRACKETS, MAX_PLAIN, markdown, plain
from capdex_explorer.views.text import MAX_TEXT_CHARS

PIECES = st.lists(
    st.sampled_from(
        [
            *("# ", "- ", "1. ", "> ", "`", "```", "**", "_", "[a](b)", "![a](b)", "<b>", "&lt;"),
            *("| a | b |\n", "|---|---|\n", "\n", "\n\n", "    ", "\\", "[r]: x", "word", "é", " "),
            *("| a | b | 💣 |\n", "💣"),
            *("<script>", '"', "'", "](", "[", "&#x202e;", "\u202e", "<!--", "-->", "~~~ x y\n"),
        ]
    ),
    max_size=40,
).map("".join)
TAGS = {
    *("div", "p", "br", "em", "strong", "code", "pre", "ul", "ol", "li", "blockquote"),
    *("table", "thead", "tbody", "tr", "th", "td", "hr", "details", "summary"),
}


def words(found: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", found))


@given(PIECES)
def test_any_text_becomes_known_tags_alone_and_loses_no_letter(text: str) -> None:
    found = str(markdown(text))
    assert set(re.findall("<[/]?([a-z0-9]+)", found)) <= TAGS
    assert set(re.findall(r"<[^>]* ([a-z-]+)=", found)) <= {"class", "start", "tabindex"}
    shown = words(re.sub("<details>.*", "", found, flags=re.DOTALL))
    if "folded" not in found:
        told = re.sub("⟨U.{4,6}⟩", "", shown)
        wanted = [x for x in text if x.isalpha() or x == "💣"]
        assert [x for x in told if x.isalpha() or x == "💣"] == wanted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Title", '<p class="heading">Title</p>'),
        ("*a* **b** `c`", "<em>a</em> <strong>b</strong> <code>c</code>"),
        ("- a\n- b", "<ul>\n<li>a</li>"),
        ("| a |\n|:-:|\n| b |", "<td>b</td>"),
        ("[guide](https://x.example/a)", "guide (https://x.example/a)"),
        ("![x](https://x.example/a.png)", "!x (https://x.example/a.png)"),
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("| a |\n|---|\n| b | 555 |", "| b | 555 |"),  # a cell that the table would leave out
        ("| a |\n|---|\n| b | 💣 |", "| b | 💣 |"),
        ("# 1. a\n7. b\n8. c\\. 9\\. d", '<ol start="7">'),
        ("```sh\nls\n```", "<pre><code>sh\nls\n</code></pre>"),
    ],
)
def test_the_subset_is_shown_as_protocol_says(text: str, shown: str) -> None:
    assert shown in str(markdown(text))


def test_long_texts_are_folded_after_twenty_lines() -> None:
    found = str(markdown("\n".join(f"line {i}" for i in range(30))))
    first, _, rest = found.partition("<details>")
    assert "line 19" in first
    assert "line 20" not in first
    assert "All of it: 30 lines" in rest
    assert "line 29" in rest


def test_a_very_long_text_is_shown_to_a_limit_and_says_of_how_many_lines() -> None:
    text = "*a* and the rest of a line\n" * (MAX_TEXT_CHARS // 20)
    _, _, rest = str(markdown(text)).partition("<details>")
    assert "<summary>The first 741 lines of 1\u202f000</summary>" in rest
    assert rest.count("<em>a</em> and the rest of a line") == 740
    assert "(cut: see the exact bytes)" in rest
    assert "[a] [a]" in str(markdown("[a] " * (MAX_BRACKETS + 1)))  # not parsed: it takes too long


def test_a_wide_table_with_many_rows_is_shown_as_it_is_written() -> None:
    wide = "|" + "a|" * 200 + "\n|" + "-|" * 200 + "\n"
    assert "<table" in str(markdown(wide + "x\n" * 15))
    _, _, whole = str(markdown(wide + "x\n" * 2000)).partition("<details>")
    assert "<table" not in whole  # each row would have 200 cells
    narrow = "|a|b|\n|-|-|\n"
    assert str(markdown(f"{narrow}{'x' * 40}\n\n" * 60)).count("<table") > 60


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "# Title\n\nTells **wind** and `gusts`,\nsee [docs](https://x.example).",
            "Title Tells wind and gusts, see docs.",
        ),
        ("- a\n- b\n\n1. c", "a b c"),
        ("| a | b |\n|---|---|\n| c | d |", "a b c d"),
        ("```sh\nls\n```\nrun  \nit", "ls run it"),
        (
            "**\u0645\u0631** [\u0647\u0630\u0627](https://x.example)",
            "\u0645\u0631 \u0647\u0630\u0627",
        ),
        ("*.py and 2 * 3 * 4", "*.py and 2 * 3 * 4"),
        ("<b>&lt;\u202e", "<b>&lt;⟨U+202E⟩"),
        ("[" * 400, "[" * 400),
        ("|a" * 20 + "\n" + "|-" * 20 + "\nx" * 20, f"{'|a' * 20} {'|-' * 20}{' x' * 20}"),
        (">>>", ">>>"),  # marks alone
        ("\n" * 700 + "the end", "the end"),
    ],
)
def test_a_line_of_a_list_has_the_words_without_their_marks(text: str, words: str) -> None:
    assert plain(text) == words


@given(PIECES)
def test_a_line_of_a_list_is_bounded_and_has_no_break(text: str) -> None:
    assert len(plain(text * 1000)) <= MAX_PLAIN * len("⟨U+202E⟩")
    assert "\n" not in plain(text)
