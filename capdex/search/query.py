"""A query as it is asked: its words, the beginning that it ends in, and what it may name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from capdex.errors import InvalidInput
from capdex.search.analyser import WRITTEN, fold, query_words, squash
from capdex.search.weights import AS_WRITTEN
from capdex.uri import PREFIX

MAX_QUERY_CHARS: Final = 4096  # a page of text; bounds the work of one search
MIN_BEGINNING_CHARS: Final = 3  # shorter ones begin too many words


@dataclass(frozen=True, slots=True)
class Word:
    """A word, or a pair of characters (`written` is empty), and its token."""

    token: str
    written: str

    @property
    def shares(self) -> dict[str, float]:
        """The terms of the word, and what share of a whole score each brings."""
        if not self.written:
            return {self.token: 1.0}
        if self.written == self.token:
            return {self.token: 1.0 + AS_WRITTEN}
        return {self.token: 1.0, self.written + WRITTEN: AS_WRITTEN}


@dataclass(frozen=True, slots=True)
class Query:
    """The words of a query in order; `read` makes one.

    `beginning` is the word that the text ends in, which longer words may begin with; `name` and
    `squashed` are the text as a package and as a tool would be named.
    """

    words: tuple[Word, ...]
    beginning: str
    name: str
    squashed: str

    @classmethod
    def read(cls, text: str) -> Query:
        """Read a query, or a capability URI; raises InvalidInput above MAX_QUERY_CHARS."""
        if len(text) > MAX_QUERY_CHARS:
            raise InvalidInput(
                f"the query has {len(text)} characters, at most {MAX_QUERY_CHARS} are read",
                fix="say it in fewer words",
            )
        stripped = text.strip()
        if stripped.startswith(PREFIX):
            text = stripped = stripped[len(PREFIX) :].partition("@")[0]
        found, last = query_words(text)
        return cls(
            tuple(Word(*word) for word in found),
            last if len(last) >= MIN_BEGINNING_CHARS else "",
            "-".join(fold(stripped).split()),
            squash(stripped),
        )
