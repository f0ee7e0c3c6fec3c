"""A segment: documents as sorted arrays of postings, made once and never changed.

Names, terms and facet values are sorted; the slot of a document is its place among the names, and
the slots of the tools (of documents with several) follow those of the documents, in their order.
The postings of a term are a range of one array, in order of slots, and so are the documents with
a facet value. What a posting weighs depends on its document alone, so segments are merged without
reading a text again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capdex.search.analyser import squash
from capdex.search.document import LIKE, SUNK, VOTES, Document
from capdex.search.segments.vectors import Vectors
from capdex.search.weights import weigh
from capdex.text.edits import MIN_CHARS, MIN_CHARS_FOR_TWO, distance
from capdex.text.strings import Strings

Mask = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]
Masks = NDArray[np.uint16]
Doubles = NDArray[np.float64]

NAME_KEY: Final = "name"  # a facet that every document has, and no list is kept of
MOST_BY_VOTES: Final = 0.05
HALF_AT_VOTES: Final = 10.0  # votes that have half of that effect
SUNK_SHARE: Final = 1 / 8  # of a score: below any that fits, above what has one common word
TOOL_KEY: Final = "\0tool"  # a facet of our own: names of tools, squashed
_ENDING: Final = "\U0010ffff"  # above every letter of a term


@dataclass(frozen=True, slots=True)
class Shapes:
    """The letters of each term as 64 bits, and its length: an edit changes few of them."""

    letters: NDArray[np.uint64]
    lengths: NDArray[np.uint8]

    @classmethod
    def of(cls, terms: Sequence[str]) -> Shapes:
        """Return the shapes of terms; none is empty."""
        if not terms:
            return cls(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
        points = np.frombuffer("".join(terms).encode("utf-32-le", "surrogatepass"), np.uint32)
        lengths = np.fromiter(map(len, terms), np.int64, len(terms))
        begins = np.cumsum(lengths) - lengths
        bits = np.left_shift(np.uint64(1), (points & 63).astype(np.uint64))
        return cls(np.bitwise_or.reduceat(bits, begins), lengths.astype(np.uint8))

    def near(self, word: str, terms: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the terms at most as far from the word as its length allows, and how far.

        A term with two mistakes begins with the same letter.
        """
        if len(word) < MIN_CHARS:
            return
        yield from self._within(word, 1, terms, 0, len(terms))
        if len(word) >= MIN_CHARS_FOR_TWO:
            begin, end = bisect_left(terms, word[0]), bisect_left(terms, word[0] + _ENDING)
            yield from self._within(word, 2, terms, begin, end)

    def _within(
        self, word: str, edits: int, terms: Sequence[str], begin: int, end: int
    ) -> Iterator[tuple[str, int]]:
        mine = Shapes.of([word])
        changed = np.bitwise_count(self.letters[begin:end] ^ mine.letters[0])
        longer = np.abs(self.lengths[begin:end].astype(np.int16) - len(word))
        for at in np.flatnonzero((changed <= 2 * edits) & (longer <= edits)):
            term = terms[begin + int(at)]
            if distance(word, term, edits) == edits:
                yield term, edits


@dataclass(frozen=True)
class Postings:
    """The slots of each term, and what each posting adds to a score, times the term's rarity.

    Those of `terms[i]` begin at `starts[i]`; the first `documents[i]` of them are slots of
    documents, the others of tools. `masks` tell in which fields of a document a term is.
    """

    terms: Sequence[str]
    starts: Longs
    documents: Ints
    slots: Ints
    impacts: Floats
    masks: Masks
    shapes: Shapes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", Shapes.of(self.terms))

    def find(self, term: str) -> int | None:
        """Return the number of a term, None if no document has it."""
        at = bisect_left(self.terms, term)
        return at if at < len(self.terms) and self.terms[at] == term else None

    def range(self, first: int, end: int) -> slice:
        """Return where the postings of the terms from number `first` up to `end` are."""
        return slice(int(self.starts[first]), int(self.starts[end]))

    def beginning_with(self, text: str) -> slice:
        """Return where the postings of the terms are that begin with a text."""
        return self.range(bisect_left(self.terms, text), bisect_left(self.terms, text + _ENDING))

    def of_documents(self, number: int) -> Ints:
        """Return the slots of the documents that have a term."""
        start = int(self.starts[number])
        return self.slots[start : start + int(self.documents[number])]

    def matches_of(
        self, documents: Longs, numbers: Sequence[int], words: int, begun: slice
    ) -> tuple[Masks, Longs]:
        """Return in which fields each document has any of these terms, and how many it has.

        Terms are given by their numbers, the first `words` of which are counted, and as a range. A
        document with none but others has one: the word that a query ends in may be begun alone.
        """
        masks, counts = np.zeros(len(documents), np.uint16), np.zeros(len(documents), np.int64)
        for at, number in enumerate(numbers):
            slots = self.of_documents(number)
            places = np.minimum(np.searchsorted(slots, documents), len(slots) - 1)
            has = slots[places] == documents
            masks |= self.masks[int(self.starts[number]) + places] * has
            counts += has & (at < words)
        if begun.stop > begun.start:
            places = np.flatnonzero(np.isin(self.slots[begun], documents)) + begun.start
            for slot, mask in zip(self.slots[places], self.masks[places], strict=True):
                masks[documents == slot] |= mask
        return masks, np.maximum(counts, masks > 0)


@dataclass(frozen=True, slots=True)
class Facets:
    """The slots of the documents with each value: `starts` and `slots` as in Postings.

    A key of `values` is `facet NUL value`.
    """

    values: Strings
    starts: Longs
    slots: Ints

    def find(self, key: str, value: str) -> Ints:
        """Return the slots of the documents with a value."""
        at = self.values.place(f"{key}\0{value}")
        return self.slots[:0] if at is None else self.slots[self.starts[at] : self.starts[at + 1]]

    def of(self, key: str, slot: int) -> str | None:
        """Return a value of a document; None if it has none."""
        first, end = (bisect_left(self.values, f"{key}{x}") for x in "\0\1")
        places = np.flatnonzero(self.slots[self.starts[first] : self.starts[end]] == slot)
        if not len(places):
            return None
        at = int(np.searchsorted(self.starts, self.starts[first] + places[0], "right")) - 1
        return self.values[at].rpartition("\0")[2]

    def count(self, key: str, mask: Mask) -> dict[str, int]:
        """Return how many of the documents in a mask have each value of a facet, if any has it."""
        first = bisect_left(self.values, f"{key}\0")
        end = bisect_left(self.values, f"{key}\1", first)
        begin = int(self.starts[first])
        having = np.concatenate([[0], np.cumsum(mask[self.slots[begin : int(self.starts[end])]])])
        counts = np.diff(having[self.starts[first : end + 1] - begin])
        return {
            self.values[first + at].partition("\0")[2]: int(counts[at])
            for at in np.flatnonzero(counts).tolist()
        }


@dataclass(frozen=True, slots=True)
class WordSegment:
    """Documents in arrays; `build` and `capdex.search.segments.merging.merge` make one."""

    names: Strings
    parents: Ints  # the slot of each tool's document, ascending
    postings: Postings
    facets: Facets
    numbers: dict[str, Doubles]  # one for each document, NaN where it has none
    vectors: Vectors | None = None  # None: no document has one yet
    prior: Floats | None = field(init=False, repr=False)  # None: it is 1 for all

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", prior(self.numbers))

    def like(self, slot: int) -> str | None:
        """Return the older name that a document may be taken for; None if it is like no other."""
        sinks = SUNK in self.numbers and self.numbers[SUNK][slot] > 0
        return self.facets.of(LIKE, slot) if sinks else None

    def sunk(self, slots: Longs) -> Mask:
        """Return which of these documents sink below what they may imitate."""
        if SUNK not in self.numbers:
            return np.zeros(len(slots), bool)
        return np.nan_to_num(self.numbers[SUNK][slots]) > 0

    @classmethod
    def build(cls, documents: Iterable[Document]) -> WordSegment:
        """Return a segment of documents; of several with one name the last one counts."""
        of_name = {document.name: document for document in documents}
        ordered = [of_name[name] for name in sorted(of_name)]
        terms, facets, parents, masks = _Collector(), _Collector(), array("i"), array("H")
        for slot, document in enumerate(ordered):
            weighed = weigh(document)
            terms.add(weighed.whole, slot)
            masks.extend([weighed.masks[term] for term in weighed.whole])
            for tool in weighed.tools:
                terms.add(tool, len(ordered) + len(parents))
                masks.extend([0] * len(tool))
                parents.append(slot)
            facets.add(dict.fromkeys(_facets(document), 0.0), slot)
        values, facet_starts, facet_slots, _, _ = facets.sorted()
        known, starts, slots, impacts, order = terms.sorted()
        of_fields = np.array(masks, np.uint16)[order]
        keys = sorted({key for document in ordered for key in document.numbers})
        return cls(
            Strings.of(document.name for document in ordered),
            np.array(parents, np.int32),
            postings(known, starts, slots, impacts, of_fields, len(ordered)),
            Facets(Strings.of(values), facet_starts, facet_slots),
            {key: np.array([x.numbers.get(key, np.nan) for x in ordered]) for key in keys},
        )

    def having(self, key: str, values: Iterable[str]) -> Mask:
        """Return which documents have one of these values of a facet."""
        mask = np.zeros(len(self.names), np.bool_)
        for value in values:
            if key == NAME_KEY:
                at = self.names.place(value)
                mask[[] if at is None else at] = True
            else:
                mask[self.facets.find(key, value)] = True
        return mask


def postings(
    terms: Sequence[str],
    starts: Longs,
    slots: Ints,
    impacts: Floats,
    masks: Masks,
    documents: int,
) -> Postings:
    """Return postings whose slots below `documents` are of documents."""
    own = np.add.reduceat(slots < documents, starts[:-1], dtype=np.int32)
    return Postings(terms, starts, own, slots, impacts, masks)


def prior(numbers: Mapping[str, Doubles]) -> Floats | None:
    """Return what the scores are multiplied by for votes and for what sinks; None if it is 1.

    Votes are shown, and they change the score of a hit in a search by 5 % at most; no other rule
    depends on them.
    """
    votes, sunk = (np.nan_to_num(numbers.get(x, np.zeros(1))) for x in (VOTES, SUNK))
    if not votes.any() and not sunk.any():
        return None
    of_votes = 1 + MOST_BY_VOTES * votes / (HALF_AT_VOTES + np.abs(votes))
    return (of_votes * SUNK_SHARE**sunk).astype(np.float32)


def _facets(document: Document) -> Iterable[str]:
    for key, value in document.facets:
        if key != NAME_KEY:
            yield f"{key}\0{value}"
    for tool in document.tools:
        if squashed := squash(tool.name):
            yield f"{TOOL_KEY}\0{squashed}"


class _Collector:
    """Pairs of a key and a slot, each with a number, in flat arrays."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._places, self._slots, self._numbers = array("i"), array("i"), array("f")

    def add(self, numbers: dict[str, float], slot: int) -> None:
        ids = self._ids
        self._places.extend([ids.setdefault(key, len(ids)) for key in numbers])
        self._slots.extend([slot] * len(numbers))
        self._numbers.extend(numbers.values())

    def sorted(self) -> tuple[list[str], Longs, Ints, Floats, Longs]:
        """Return the keys, where each one's pairs begin, their slots, numbers and old places."""
        keys = sorted(self._ids)
        ranks = np.empty(len(keys), np.int32)
        ranks[[self._ids[key] for key in keys]] = np.arange(len(keys), dtype=np.int32)
        places = ranks[np.array(self._places, np.int32)]
        slots, numbers = np.array(self._slots, np.int32), np.array(self._numbers, np.float32)
        order = np.lexsort((slots, places))
        starts = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(keys)))])
        return keys, starts.astype(np.int64), slots[order], numbers[order], order
