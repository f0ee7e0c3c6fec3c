"""Text of authors made safe to show: hidden characters as codes, hashes short, times in words.

HTML is escaped by the templates. This module is about what escaping leaves: characters that
cannot be seen, or that change the order in which others are read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from unicodedata import category
from urllib.parse import urlsplit

from markupsafe import Markup, escape

from capdex.uri import PREFIX
from capdex.yaml.characters import beginning, forbidden, is_blank

# Nonspacing and enclosing marks of all scripts: those of one character cannot be broken into lines.
_MARK: Final = "".join(x for x in map(chr, range(0x300, 0x1F000)) if category(x) in ("Mn", "Me"))
_MARKS: Final = re.compile(f"[{_MARK}]{{4,}}")
MAX_TEXT_CHARS: Final = 20_000  # of one text on a page, so that no page is heavy
MAX_MARKS: Final = 3  # on one character: more of them cover the lines around it, or widen the page


def visible(text: str) -> str:
    """Return a text with a code like ⟨U+202E⟩ for each character that a package may not hold (P7).

    Such characters cannot be seen, or reorder others. The texts of events may have them. A blank
    text consists of codes, so that no link or heading is empty.
    """
    if text.isascii() and text.isprintable():
        return text  # most are
    text = text.replace("\r\n", "\n")
    blank = is_blank(text) and not text.isspace()
    if places := range(len(text)) if blank else list(forbidden(text)):
        pieces, at = [], 0
        for place in places:
            pieces += [text[at:place], f"⟨U+{ord(text[place]):04X}⟩"]
            at = place + 1
        text = "".join([*pieces, text[at:]])
    return text if text.isascii() else _MARKS.sub(lambda x: x[0][:MAX_MARKS] + "…", text)


def shown(value: object) -> Any:
    """Return any value that a template prints: texts are made visible, markup stays."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def short_hash(text: str) -> str:
    """Return the ends of a long identifier, as 0x8f3c…21aa."""
    return text if len(text) <= 14 else f"{text[:6]}…{text[-4:]}"


def short_account(text: str) -> str:
    """Return the ends of an account or DID."""
    prefix, _, last = text.rpartition(":")
    return f"{prefix}:{short_hash(last)}" if prefix else short_hash(text)


def date(epoch_s: float | None) -> Markup:
    """Return a time element with the minute (UTC); its title has the second."""
    if epoch_s is None:
        return Markup("unknown")
    at = datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    times = f'datetime="{at.replace(" ", "T")}Z" title="{at} UTC"'
    # Digits alone: to escape them takes a quarter of the time of a list.
    return Markup(f"<time {times}>{at[:-3]}</time>")  # noqa: S704


def age(epoch_s: float | None) -> str:
    """Return how many days (UTC), months or years ago a time was, in the largest of them."""
    days = int(time.time() // 86_400 - (epoch_s or 0) // 86_400)
    for name, length in (("year", 365), ("month", 30), ("day", 1)):
        if days >= length:
            return f"{count(days // length, name)} ago"
    return "today"


def number(value: float | None) -> str:
    """Return a number with narrow spaces, where no line breaks, between thousands."""
    if value is None:
        return "unknown"
    return (f"{value:,.1f}" if value % 1 else f"{int(value):,}").replace(",", "\u202f")


def count(value: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{number(value)} {singular if value == 1 else plural or singular + 's'}"


def duration(seconds: float | None) -> str:
    """Return a duration in its two largest units."""
    if seconds is None:
        return "unknown"
    if seconds < 1:
        return "0 s" if seconds < 0.05 else f"{seconds:.1f} s"
    parts, left = [], int(seconds)
    for name, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size} {name}")
            left %= size
    return " ".join(parts[:2])


def cut(text: str, rest: str = "see the exact bytes", most: int = MAX_TEXT_CHARS) -> str:
    """Return the first `most` characters of a long text; `rest` says where all of it is."""
    return text if len(text) <= most else f"{beginning(text, most)}… (cut: {rest})"


def language(contents: dict[str, Any]) -> Markup:
    """Return the attribute `lang` of a publisher's text, if the package names one language."""
    named = contents["languages"]
    return Markup(' lang="{}"').format(named[0]) if len(named) == 1 else Markup()


def name_of(release: dict[str, Any]) -> str:
    """Return the name in the URI of a release."""
    return str(release["cap_uri"]).removeprefix(PREFIX).partition("@")[0]


def host_of(link: str) -> str:
    """Return the host of a web address that may be a link; empty for any other text."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in ("http", "https") and "@" not in parts.netloc else ""


def size(size_bytes: int) -> str:
    """Return a number of bytes in words."""
    return f"{number(size_bytes)} bytes" if size_bytes < 2000 else f"{size_bytes / 1000:.1f} kB"


def found_words(snippet: dict[str, Any] | None) -> set[str]:
    """Return the words that a snippet highlights."""
    spans = snippet["highlights"] if snippet else ()
    return {visible(snippet["text"][begin:end]) for begin, end in spans if snippet} - {""}


def marked(text: str, snippet: dict[str, Any] | None) -> Markup:
    """Return a text with the words that a snippet highlights in mark elements."""
    words = sorted(found_words(snippet), key=len, reverse=True)
    # A word of a script with spaces is found whole.
    found = "|".join(rf"\b{re.escape(x)}\b" if x.isascii() else re.escape(x) for x in words)
    pieces = re.split(f"({found})", visible(text)) if found else [visible(text)]
    return Markup("").join(
        Markup("<mark>{}</mark>").format(x) if at % 2 else escape(x) for at, x in enumerate(pieces)
    )


def highlighted(snippet: dict[str, Any]) -> Markup:
    """Return the text of a snippet with its highlights in mark elements."""
    text, markup, at = str(snippet["text"]), Markup(), 0
    spans: Sequence[Sequence[int]] = snippet.get("highlights") or ()
    for begin, end in spans:
        if at <= begin < end <= len(text):
            markup += escape(visible(text[at:begin]))
            markup += Markup("<mark>{}</mark>").format(visible(text[begin:end]))
            at = end
    return markup + escape(visible(text[at:]))
