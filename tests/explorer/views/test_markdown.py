"""The subset of Markdown that texts of publishers are shown in."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_explorer.views.markdown import MAX_CHARS, markdown

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


def test_long_texts_are_folded_after_twenty_lines_and_very_long_ones_not_parsed() -> None:
    found = str(markdown("\n".join(f"line {i}" for i in range(30))))
    first, _, rest = found.partition("<details>")
    assert "line 19" in first
    assert "line 20" not in first
    assert "All of it: 30 lines" in rest
    assert "line 29" in rest
    _, _, rest = str(markdown("*a* " * (MAX_CHARS // 4 + 1))).partition("<details>")
    assert "*a* *a*" in rest
    assert "<em>" not in rest
