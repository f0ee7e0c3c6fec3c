"""Reasons of a hit: the tool with most words of the query, and a piece of text that has them.

Offsets are places in the text as its author wrote it, though words are compared folded and
stemmed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Final

from capdex.search.analyser import UNSPACED, document_terms, stem
from capdex.search.document import TOOLS, Document
from capdex.search.query import Query
from capdex.search.weights import MAX_FIELD_TOKENS

MAX_SNIPPET_CHARS: Final = 160
MAX_TEXT_CHARS: Final = MAX_FIELD_TOKENS * 8  # of one field that are looked at
MAX_SPANS: Final = 256  # of one line
MAX_HIGHLIGHTS: Final = 32
_SHOWN: Final = ("description", "summary", "triggers", "title", "tags")  # where snippets come from
_WORD: Final = re.compile(rf"[{UNSPACED}]{{1,2}}|(?:(?![{UNSPACED}])\w)+")
_PAIR: Final = re.compile(rf"(?=([{UNSPACED}]{{2}}))")
NONE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TextSnippet:
    """A piece of a field of a package, or of a tool; `highlights` are spans of `text`."""

    field: str
    text: str
    highlights: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The tool with most words of a query, and the piece of text with most of them."""

    tool: str | None = None
    snippet: TextSnippet | None = None


def explain(document: Document, wanted: frozenset[str]) -> Explanation:
    """Return which words of a query are where in a document; `wanted` as of `wanted_tokens`."""
    tool, best = None, 0
    texts = [(field, document.fields.get(field, "")) for field in _SHOWN]
    for candidate in document.tools:
        text = f"{candidate.name} {candidate.description} {candidate.parameters}"[:MAX_TEXT_CHARS]
        words = wanted.intersection(document_terms(text)[0])
        if len(words) > best:
            tool, best = candidate.name, len(words)
        texts.append((TOOLS, candidate.description))
    return Explanation(tool, _snippet(texts, wanted))


def wanted_tokens(query: str, corrected: Mapping[str, tuple[str, ...]] = NONE) -> frozenset[str]:
    """Return the tokens of the words of a query, and of those taken for misspelt ones.

    `corrected` are the words taken for each misspelt one, as a page of hits has them.
    """
    instead = {stem(word) for words in corrected.values() for word in words}
    return frozenset({word.token for word in Query.read(query).words} | instead)


def spans(text: str, wanted: frozenset[str]) -> Iterator[tuple[Span, frozenset[str]]]:
    """Return the words of a text that have wanted tokens, as spans in order, with these tokens.

    Pairs of characters of a script without spaces may overlap.
    """
    text = text[:MAX_TEXT_CHARS]
    for word in _WORD.finditer(text):
        if tokens := wanted.intersection(document_terms(word.group())[0]):
            yield word.span(), tokens
    for pair in _PAIR.finditer(text):
        if pair.group(1) in wanted:
            yield pair.span(1), frozenset({pair.group(1)})


def _snippet(texts: list[tuple[str, str]], wanted: frozenset[str]) -> TextSnippet | None:
    """Return the piece with most of the wanted tokens; of equal ones the first."""
    best, most = None, 0
    for field, text in texts:
        for line in text.splitlines():
            hits = sorted(islice(spans(line, wanted), MAX_SPANS), key=lambda hit: hit[0])
            for i, ((begin, _), _tokens) in enumerate(hits):
                end = begin + MAX_SNIPPET_CHARS * 3 // 4
                inside = [hit for hit in hits[i : i + MAX_HIGHLIGHTS] if hit[0][1] <= end]
                count = len({token for _, tokens in inside for token in tokens})
                if count > most:
                    best, most = (field, line, [span for span, _ in inside]), count
    return None if best is None else _cut(*best)


def _cut(field: str, line: str, spans: list[Span]) -> TextSnippet:
    begin = 0
    if spans[-1][1] > MAX_SNIPPET_CHARS - 1:
        begin = line.rfind(" ", max(0, spans[0][0] - 40), spans[0][0]) + 1 or spans[0][0]
    end = min(len(line), begin + MAX_SNIPPET_CHARS)
    if end < len(line):
        end = max(line.rfind(" ", spans[-1][1], end), spans[-1][1])
    before = "…" if begin else ""
    shown = before + line[begin:end].rstrip() + ("…" if end < len(line) else "")
    shift = len(before) - begin
    return TextSnippet(field, shown, tuple(_joined([(a + shift, b + shift) for a, b in spans])))


def _joined(spans: list[Span]) -> Iterator[Span]:
    begin, end = spans[0]
    for a, b in spans[1:]:
        if a > end:
            yield begin, end
            begin, end = a, b
        end = max(end, b)
    yield begin, end
