"""Texts of publishers in a subset of CommonMark: no HTML, no image, no link that can be followed.

No letter, digit or picture of a text is hidden by it: where the subset would leave one out (a cell
too many of a table), the text is shown as it was written.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from capdex.yaml.characters import beginning
from capdex_explorer.views.text import MAX_TEXT_CHARS, count, cut, number, visible

FOLDED_LINES: Final = 20
FOLDED_CHARS: Final = 2000
MAX_BRACKETS: Final = 500  # the parser looks for the end of each; a text of more is not parsed
MAX_CELLS: Final = 10_000  # of the tables of a text: the parser fills each row up
MAX_CACHED: Final = 256
MAX_PLAIN: Final = 600  # characters that are parsed for one line
MAX_OPENED: Final = 60  # brackets and backticks among them: the parser looks for the end of each
MAX_PLAIN_CELLS: Final = 300
MAX_PLAIN_CACHED: Final = 2000
_TAG: Final = re.compile("<[^>]*>")


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    made.disable(["image", "autolink", "html_block", "html_inline", "entity", "reference"])
    for step in ("normalizeLink", "normalizeLinkText", "validateLink"):
        setattr(made, step, str)  # a target is shown as it is written, and never followed
    made.add_render_rule("fence", _fence)
    made.add_render_rule("code_block", _fence)
    return made


@lru_cache(MAX_CACHED)
def markdown(text: str) -> Markup:
    """Return a text in the subset; one of many lines as its first ones, and all to unfold.

    A long text takes up to a third of a second the first time.
    """
    shown = visible(cut(text))
    lines = shown.split("\n")
    if len(lines) <= FOLDED_LINES and len(shown) <= FOLDED_CHARS:
        return _rendered(shown)
    told = f"All of it: {count(len(lines), 'line')}"
    if len(text) > MAX_TEXT_CHARS:
        told = f"The first {count(len(lines), 'line')} of {number(len(text.splitlines()))}"
    first = beginning("\n".join(lines[:FOLDED_LINES]), FOLDED_CHARS)
    return Markup(
        '<div class="folded"><div>{}…</div><details><summary>{}</summary>{}</details></div>'
    ).format(_rendered(first), told, _rendered(shown))


@lru_cache(MAX_PLAIN_CACHED)
def plain(text: str) -> str:
    """Return the beginning of a text in the subset as one line: its words, without targets."""
    text = visible(beginning(text.strip(), MAX_PLAIN))
    opened = text.count("[") + text.count("`")
    if opened <= MAX_OPENED and _cells(text) <= MAX_PLAIN_CELLS:
        inside = [x for block in _PARSER.parse(text) for x in block.children or [block]]
        words = "".join(x.content or " " * (x.block or x.tag == "br") for x in inside)
        text = words.strip() or text
    return " ".join(text.split())


def _rendered(text: str) -> Markup:
    if text.count("[") > MAX_BRACKETS or _cells(text) > MAX_CELLS:
        return _as_written(text)
    tokens = _PARSER.parse(text)
    _plain(tokens)
    made = str(_PARSER.renderer.render(tokens, _PARSER.options, {}))
    said = html.unescape(_TAG.sub("", made))
    numbers = "".join(x.info for x in tokens if x.type == "list_item_open")
    if _told(said + numbers) != _told(text):
        return _as_written(text)
    return Markup(made)  # noqa: S704 - of escaped texts, and of the tags of this module alone


def _cells(text: str) -> int:
    """Return about the most cells that the tables of a text have; they end at an empty line."""
    parts = (part.split("\n") for part in text.split("\n\n"))
    return sum(len(lines) * max(line.count("|") for line in lines) for lines in parts)


def _told(text: str) -> Counter[str]:
    """Return what a reader must see of a text: letters, digits, and all beyond ASCII."""
    return Counter(x for x in text if x.isalnum() or not (x.isascii() or x.isspace()))


def _as_written(text: str) -> Markup:
    return Markup('<p class="as-written">{}</p>').format(text)


def _plain(tokens: Sequence[Token]) -> None:
    """Leave no attribute but the start of a list; headings become paragraphs, links text."""
    targets: list[str] = []
    for token in tokens:
        kept = {"start": token.attrs["start"]} if "start" in token.attrs else {}
        if token.type == "table_open":
            kept["tabindex"] = "0"  # a wide one is scrolled, by keys, too
        if token.type.startswith("heading"):
            token.tag, kept = "p", {"class": "heading"} if token.nesting == 1 else {}
        elif token.type == "link_open":
            targets.append(" ".join(str(x) for x in token.attrs.values() if x))
            token.type, token.content = "text", ""
        elif token.type == "link_close":
            token.type, token.content = "text", f" ({targets.pop()})"
        token.attrs = kept
        _plain(token.children or ())


def _fence(_: object, tokens: Sequence[Token], index: int, options: object, env: object) -> str:
    """Return a block of code, with the word behind its fence as its first line."""
    token = tokens[index]
    head = f"{token.info.strip()}\n" if token.info.strip() else ""
    return f"<pre><code>{escape(head + token.content)}</code></pre>\n"


_PARSER: Final = _parser()
