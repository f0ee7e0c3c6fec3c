"""Text as triggers see it: bounded, of one width and case, and divided into words."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MAX_MESSAGE_BYTES: Final = 8 * 1024  # of the beginning of a message; the rest is not looked at

# Scripts written without spaces, or with particles joined to the word (Hangul).
_UNSPACED: Final = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7af\u0e01-\u0e4e\u0e81-\u0ece"
    "\u1000-\u1049\u1780-\u17d3]"
)
_CLAUSE_END: Final = re.compile(r"[.!?;:,\n。！？；：，、]")
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|without|don['’]?t|doesn['’]?t|didn['’]?t|won['’]?t|shouldn['’]?t"
    r"|mustn['’]?t|can['’]?t|cannot|isn['’]?t|aren['’]?t|stop|avoid|nicht|kein\w*|nie"
    r"|nunca|jamais|pas|não|ne|niet|geen|не|нет)\b|不|别|別|勿|没有|沒有|ない|ません|しないで|말고|하지"
)
_NO_NEGATION: Final = re.compile(r"\b(?:(?:or|why|if) not|not only|no problem|no matter)\b")


def bounded(message: str) -> str:
    """Return the beginning of a message, at most MAX_MESSAGE_BYTES as UTF-8."""
    if len(message) * 4 <= MAX_MESSAGE_BYTES:
        return message
    data = message[:MAX_MESSAGE_BYTES].encode("utf-8", "replace")
    return data[:MAX_MESSAGE_BYTES].decode("utf-8", "ignore")


def fold(text: str) -> str:
    """Return a text without differences of width and case; at most MAX_MESSAGE_BYTES long."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return bounded(folded)  # one character can become eighteen


def views(message: str, folded: str) -> tuple[bytes, ...]:
    """Return a message as patterns search it: as it is and, where that may differ, folded.

    Patterns ignore case, so the folded text of an ASCII message says nothing new. A pattern may
    have been written with wide characters, which only the message as it is can match.
    """
    plain = message.encode("utf-8", "replace")
    if message.isascii():
        return (plain,)
    other = folded.encode("utf-8", "replace")
    return (plain,) if other == plain else (plain, other)


def has_word(folded: str, word: str) -> bool:
    """True if a folded text has a folded word (or words), not as a part of a longer one.

    A script that is written without spaces has no ends of words, so there any place counts.
    """
    at = folded.find(word) if word else -1
    while at >= 0:
        end = at + len(word)
        if not _joined(folded[at - 1 : at], word[0]) and not _joined(
            word[-1], folded[end : end + 1]
        ):
            return True
        at = folded.find(word, at + 1)
    return False


def width(text: str) -> int:
    """Return the length of a text; an ideograph or a syllable counts as two letters."""
    return len(text) + len(_UNSPACED.findall(text))


def is_negated(folded: str, start: int, end: int) -> bool:
    """True if the clause of a folded text that holds the place `start`-`end` has a negation."""
    first = max((match.end() for match in _CLAUSE_END.finditer(folded, 0, start)), default=0)
    after = _CLAUSE_END.search(folded, end)
    clause = folded[first : after.start() if after else len(folded)]
    return _NEGATION.search(_NO_NEGATION.sub(" ", clause)) is not None


def _joined(left: str, right: str) -> bool:
    """True if two neighbouring characters belong to one word."""
    if not (_in_word(left) and _in_word(right)):
        return False
    return not (_UNSPACED.match(left) or _UNSPACED.match(right))


def _in_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character or " ")[0] in "LNM"
