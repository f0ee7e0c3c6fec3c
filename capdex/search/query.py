"""A query as it is asked: its words, the beginning that it ends in, and what it may name."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from capdex.errors import InvalidInput
from capdex.search.analyser import WRITTEN, fold, query_words, squash, stem
from capdex.search.weights import AS_WRITTEN, MISTAKEN
from capdex.uri import PREFIX

MAX_QUERY_CHARS: Final = 4096  # a page of text; bounds the work of one search
MAX_WORDS: Final = 128  # of a query that are looked up; the rarest say the most
FEW: Final = 3  # documents: below this, words that no document has are taken for misspelt
MAX_MISSPELT: Final = 8  # words of a query that are corrected
MAX_CORRECTIONS: Final = 3  # of one word
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
    `squashed` are the text as a package and as a tool would be named. It is `spelt` if it has no
    spaces, so that it may be meant as a name.
    """

    words: tuple[Word, ...]
    beginning: str
    name: str
    squashed: str
    spelt: bool

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
        tokens, last = query_words(text)
        return cls(
            tuple(Word(*word) for word in tokens),
            last if len(last) >= MIN_BEGINNING_CHARS else "",
            "-".join(fold(stripped).split()),
            squash(stripped),
            len(stripped.split()) == 1,
        )


def rarest(words: Sequence[Word], having: Callable[[str], int]) -> Sequence[Word]:
    """Return the words that say the most, in their order; `having` counts documents of a term."""
    if len(words) <= MAX_WORDS:
        return words
    counts = [having(word.token) for word in words]
    # a word that no document has says nothing
    ranked = sorted(range(len(words)), key=lambda at: (counts[at] == 0, counts[at], at))
    return [words[at] for at in sorted(ranked[:MAX_WORDS])]


def corrections(
    words: Iterable[Word],
    known: Container[str],
    near: Callable[[Iterable[str]], Mapping[str, int]],
    having: Callable[[str], int],
) -> dict[str, list[str]]:
    """Return the nearest terms to each misspelt word, the commonest of the nearest first.

    A word is misspelt if none of its terms is `known`. `near` gives the terms near to any of some
    forms of a word, with their distances.
    """
    misspelt = [x for x in words if x.written and not any(term in known for term in x.shares)]
    corrected: dict[str, list[str]] = {}
    for word in misspelt[:MAX_MISSPELT]:
        forms = sorted({word.token, word.written, word.written + WRITTEN})
        candidates = sorted(
            (edits, -count, term) for term, edits in near(forms).items() if (count := having(term))
        )
        if candidates:
            nearest = [term for edits, _, term in candidates if edits == candidates[0][0]]
            corrected[word.written] = nearest[:MAX_CORRECTIONS]
    return corrected


def as_shown(corrected: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the words taken for each misspelt one."""
    return {
        word: tuple(dict.fromkeys(term.removesuffix(WRITTEN) for term in terms))
        for word, terms in corrected.items()
    }


def shares_of(words: Iterable[Word]) -> dict[str, float]:
    """Return the terms of words, and what share of a whole score each brings."""
    shares: dict[str, float] = {}
    for word in words:
        for term, share in word.shares.items():
            shares[term] = max(share, shares.get(term, 0.0))
    return shares


def corrected_shares(
    corrected: Mapping[str, Sequence[str]], known: Container[str]
) -> dict[str, float]:
    """Return the terms of corrected words that are not known, with their shares."""
    return {
        term: MISTAKEN
        for terms in corrected.values()
        for term in _with_stems(terms)
        if term not in known
    }


def _with_stems(terms: Iterable[str]) -> Iterator[str]:
    for term in terms:
        yield term
        if term.endswith(WRITTEN):
            yield stem(term.removesuffix(WRITTEN))
