"""Tokens of documents and queries, made here so that every index finds the same.

Text is folded (NFKC, case, Latin accents), English words are stemmed, and scripts written without
spaces become overlapping pairs of characters: a two-character word (笔记, 会議, 회의) is one token.
An emoji is a token. A term is a token, or a word as it is written (`forecasting=`) beside its stem.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from Stemmer import Stemmer

MAX_TOKEN_CHARS: Final = 32  # longer words share their beginning; bounds the terms of an index
WRITTEN: Final = "="  # ends a term that is a word as written, and is in no token
TEXT_VERSION: Final = 2  # raised whenever the same text gives other terms

# Han, kana, Hangul, and Thai, Lao, Burmese and Khmer: words are not separated by spaces.
UNSPACED: Final = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7af\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece"
    "\u1000-\u1049\u1780-\u17d3"
)
# Signs that belong to the letter before them, though \w leaves them out.
_MARKS: Final = (
    "\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711-\u074a"
    "\u0900-\u0963\u0966-\u0dff\u0f18-\u0fbc\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_EMOJI: Final = "\u2600-\u27bf\U0001f000-\U0001f3fa\U0001f400-\U0001faff"  # no skin tones
_RUNS: Final = re.compile(
    rf"([{UNSPACED}]+)"
    rf"|((?:(?![{UNSPACED}])[^\W_])(?:(?![{UNSPACED}])[^\W_]|[{_MARKS}])*|[{_EMOJI}])"
)
# Accents of Latin, and the signs of Hebrew and Arabic that most texts leave out.
_ACCENTS: Final = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)
_ASCII: Final = re.compile("[a-z0-9]+")
_LATIN: Final = re.compile(r"[A-Za-z0-9]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_STOPWORDS: Final = """
    a about above after again all also am an and any are as at be because been before being
    below between both but by can could did do does doing don down during each few for from
    further get give had has have having he help her here hers him his how i if in into is it
    its itself just let like ll make me more most my need no nor not now of off on once only or
    other our out over own please re s same she should so some such t than that the their them
    then there these they this those through to too under until up us use using ve very want was
    we were what when where which while who whom why will with would you your
"""
STOPWORDS: Final = frozenset(_STOPWORDS.split())


def fold(text: str) -> str:
    """Return the text without differences of width, case and Latin accents."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", plain).casefold()


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the English stem of a folded word; other languages are cut the same everywhere."""
    return str(Stemmer("english", 0).stemWord(word))  # a new one: threads may not share one


def _runs(text: str) -> list[tuple[str, str]]:
    """Return the runs of unspaced script and of letters; one of each pair is empty."""
    if _CAMEL.search(text):
        text = _LATIN.sub(_spell_out, text)
    if text.isascii():  # most texts; the same runs in a third of the time
        return [("", word) for word in _ASCII.findall(text.lower())]
    return _RUNS.findall(fold(text))


def _spell_out(word: re.Match[str]) -> str:
    """Return `getWeather get Weather` for `getWeather`; other words unchanged."""
    whole = word[0]
    parts = _CAMEL.sub(" ", whole)
    return whole if parts == whole else f"{whole} {parts}"


def _pairs(run: str) -> list[str]:
    if len(run) < 2:
        return list(run)
    return [run[i : i + 2] for i in range(len(run) - 1)]


def document_terms(text: str) -> tuple[list[str], list[str]]:
    """Return the tokens of a document, and its words as written that are not their own stems."""
    tokens: list[str] = []
    written: list[str] = []
    for unspaced, word in _runs(text):
        if unspaced:
            tokens += _pairs(unspaced)
            if len(unspaced) > 1:
                tokens += unspaced  # so that a query of one character finds it
        else:
            word = word[:MAX_TOKEN_CHARS]
            stemmed = stem(word)
            tokens.append(stemmed)
            if stemmed != word:
                written.append(word + WRITTEN)
    return tokens, written


def query_words(text: str) -> tuple[list[tuple[str, str]], str]:
    """Return each distinct token of a query with its word, and the word that the text ends in.

    The word is empty for a pair of characters, and the last one unless a letter of a spaced script
    ends the text, or a `*` after it. Stopwords are left out unless there is nothing else.
    """
    runs = _runs(text)
    terms = [run for run in runs if run[1] not in STOPWORDS] or runs
    words: dict[tuple[str, str], None] = {}
    for unspaced, word in terms:
        if unspaced:
            words.update(dict.fromkeys((pair, "") for pair in _pairs(unspaced)))
        else:
            words[stem(word[:MAX_TOKEN_CHARS]), word[:MAX_TOKEN_CHARS]] = None
    ends = bool(runs) and text.removesuffix("*")[-1:].isalnum()
    return list(words), runs[-1][1][:MAX_TOKEN_CHARS] if ends else ""


def squash(name: str) -> str:
    """Return the letters and digits of a name alone: `getWeather` and `get_weather` are equal."""
    return "".join(x for x in fold(name) if x.isalnum())[: MAX_TOKEN_CHARS * 2]
