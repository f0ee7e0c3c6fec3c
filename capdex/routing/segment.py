"""A segment: the triggers of some packages, filed under windows of the texts that they require.

    message ─> its windows ─> keys ─> candidates ─> patterns that are matched one by one

A segment never changes. Equal patterns of several packages are one pattern of it. All of it is
numpy arrays and runs of bytes: some 100 bytes a trigger.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from capdex.manifest.triggers import Trigger
from capdex.routing.patterns import (
    MAX_GRAM,
    MOST_SIZE,
    MOST_WIDTH,
    Kind,
    Pattern,
    distinct,
    traits,
    windows,
)
from capdex.routing.text import width
from capdex.text.segment_set import Mask, Source, renumbered
from capdex.text.strings import Strings

Hashes = NDArray[np.uint64]

_BASE: Final = 0x9E3779B97F4A7C15
_MIX: Final = 0xD6E8FEB86659FD93
_ALL: Final = 2**64 - 1
_HALF: Final = np.uint64(32)


def gram(text: str) -> int:
    """Return the number of a text of 1 to MAX_GRAM characters."""
    number = 0
    for character in text:
        number = (number * _BASE + ord(character) + 1) & _ALL
    number = ((number ^ (number >> 32)) * _MIX) & _ALL
    return number ^ (number >> 32)


def grams(text: str) -> Hashes:
    """Return the numbers of all windows of a text, in no order, some of them several times."""
    data = text.encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(data, np.uint32).astype(np.uint64) + np.uint64(1)
    if not len(codes):
        return codes
    window = codes
    numbers = [window]
    for length in range(2, min(MAX_GRAM, len(codes)) + 1):
        window = window[:-1] * np.uint64(_BASE) + codes[length - 1 :]
        numbers.append(window)
    mixed: Hashes = np.concatenate(numbers)
    mixed = (mixed ^ (mixed >> _HALF)) * np.uint64(_MIX)
    mixed ^= mixed >> _HALF
    return mixed


def table(keys: Hashes) -> NDArray[np.uint8]:
    """Return a table of bits, by which `may_have` rules most other numbers out."""
    bits = max(6, int(len(keys) * 12).bit_length())
    places = keys >> np.uint64(64 - bits)
    flags = np.zeros(1 << bits, bool)
    flags[places.astype(np.int64)] = True
    return np.packbits(flags)


def may_have(bits: NDArray[np.uint8], some: Hashes) -> NDArray[np.bool_]:
    """Return which numbers may be in a table: all that are, and few others."""
    size = len(bits) * 8
    places = (some >> np.uint64(64 - (size.bit_length() - 1))).astype(np.int64)
    present: NDArray[np.bool_] = (bits[places >> 3] & (128 >> (places & 7)).astype(np.uint8)) != 0
    return present


Ints = NDArray[np.int64]

KEYWORD, BROAD, OPEN = 1, 2, 4  # flags of a pattern
_NO_PLACE: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Segment:
    """Packages by slot, in order of names, and their distinct patterns by number.

    A posting says that a message with the windows `keys` and `others` is a candidate for
    `patterns`, with texts as wide as `widths`. Postings are in order of keys.
    """

    names: Strings
    texts: Strings  # of all patterns
    flags: NDArray[np.uint8]
    ranks: Ints  # by which patterns are taken if there are too many, smaller first
    use_ends: Ints  # of the uses of each pattern
    uses: NDArray[np.int32]  # slots, in order
    places: NDArray[np.uint8]  # of an open pattern among those of its package, for each use
    keys: Hashes
    others: Hashes  # two for each key
    patterns: NDArray[np.int32]
    widths: NDArray[np.uint16]
    bits: NDArray[np.uint8]
    open: NDArray[np.int64]  # patterns that no text is required for

    @staticmethod
    def build(packages: Iterable[tuple[str, Iterable[Trigger]]]) -> Segment:
        """Return the segment of packages with their triggers; of equal names the last one counts.

        Triggers without a pattern, and equal ones of one package, are passed over.
        """
        kept = sorted(dict(packages).items())
        numbers: dict[Pattern, int] = {}
        facts: list[tuple[int, int]] = []
        uses: list[list[tuple[int, int]]] = []
        postings = []
        for slot, (_, triggers) in enumerate(kept):
            opened = 0
            for pattern in distinct(triggers):
                number = numbers.setdefault(pattern, len(facts))
                if number == len(facts):
                    known = traits(pattern)
                    flags = (pattern.kind == "keyword") * KEYWORD + known.broad * BROAD
                    facts.append((flags + (not known.choices) * OPEN, known.size))
                    postings += [(*_windows(choice), number) for choice in known.choices]
                    uses.append([])
                uses[number].append((slot, min(opened, 255)))
                opened += facts[number][0] // OPEN
        return _made(
            Strings.of(name for name, _ in kept),
            Strings.of(x.value for x in numbers),
            np.array(facts, np.int64).reshape(-1, 2),
            [np.array(x, np.int64).reshape(-1, 2) for x in uses],
            _columns(postings),
        )

    def pattern(self, number: int) -> Pattern:
        """Return a pattern by its number."""
        kind: Kind = "keyword" if self.flags[number] & KEYWORD else "regex"
        return Pattern(kind, self.texts[number])

    def users(self, number: int, live: Mask | None) -> NDArray[np.int32]:
        """Return the slots of the live packages that have a pattern, in order."""
        begin = int(self.use_ends[number - 1]) if number else 0
        slots = self.uses[begin : int(self.use_ends[number])]
        return slots if live is None else slots[live[slots]]

    def open_ranks(self, live: Mask | None) -> tuple[Ints, Ints]:
        """Return the open patterns that a live package has, and the order to take them in.

        The first open patterns of each package come before the second ones of others.
        """
        if not len(self.open):
            return self.open, self.open
        at, begins = self._uses_of(self.open)
        places = self.places[at].astype(np.int64)
        if live is not None:
            places[~live[self.uses[at]]] = _NO_PLACE
        first = np.minimum.reduceat(places, begins)
        keep = first < _NO_PLACE
        return self.open[keep], (first << 48 | self.ranks[self.open])[keep]

    def live_patterns(self, live: Mask, some: Ints) -> Mask:
        """Return which of some patterns a live package has."""
        at, begins = self._uses_of(some)
        return np.logical_or.reduceat(live[self.uses[at]], begins)

    def _uses_of(self, some: Ints) -> tuple[Ints, Ints]:
        """Return where the uses of some patterns are, and where those of each begin among them."""
        ends = self.use_ends[some]
        counts = ends - np.where(some > 0, self.use_ends[some - 1], 0)
        total = np.cumsum(counts)
        return np.repeat(ends - total, counts) + np.arange(int(counts.sum())), total - counts

    def candidates(self, windows: Hashes) -> tuple[Ints, Ints]:
        """Return the patterns that a message with these windows may match, and texts' widths."""
        some = windows[may_have(self.bits, windows)] if len(self.keys) else windows[:0]
        some = np.unique(some)
        begins, ends = (np.searchsorted(self.keys, some, side) for side in ("left", "right"))
        counts = ends - begins
        total = int(counts.sum())
        at = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(total)
        for others in self.others.T:
            place = np.minimum(np.searchsorted(some, others[at]), max(0, len(some) - 1))
            at = at[some[place] == others[at]]
        numbers, first = np.unique(self.patterns[at].astype(np.int64), return_inverse=True)
        widest = np.zeros(len(numbers), np.int64)
        np.maximum.at(widest, first, self.widths[at].astype(np.int64))
        return numbers, widest


def merge(sources: Iterable[Source[Segment]]) -> Segment:
    """Return one segment of the live packages of several; no pattern is read again."""
    sources = list(sources)
    names, slots = renumbered(sources)
    numbers: dict[Pattern, int] = {}
    facts: list[Any] = []
    uses: list[list[NDArray[np.int64]]] = []
    postings = []
    for (segment, live), moved in zip(sources, slots, strict=True):
        known = np.full(len(segment.flags), -1, np.int64)  # the new numbers of new patterns
        every = np.arange(len(segment.flags))
        if live is not None and len(every):
            every = every[segment.live_patterns(live, every)]
        for old in every.tolist():
            number = numbers.setdefault(segment.pattern(old), len(numbers))
            if number == len(facts):
                known[old] = number
                facts.append((segment.flags[old], (segment.ranks[old] >> 32) & MOST_SIZE))
                uses.append([])
            begin = int(segment.use_ends[old - 1]) if old else 0
            used = slice(begin, int(segment.use_ends[old]))
            now = moved[segment.uses[used]].astype(np.int64)
            pairs = np.column_stack([now, segment.places[used].astype(np.int64)])
            uses[number].append(pairs[now >= 0])
        keep = known[segment.patterns] >= 0
        columns = (segment.keys, segment.others, segment.widths, known[segment.patterns])
        postings.append(tuple(column[keep] for column in columns))
    return _made(
        Strings.of(names),
        Strings.of(x.value for x in numbers),
        np.array(facts, np.int64).reshape(-1, 2),
        [x[0] if len(x) == 1 else np.concatenate(x) for x in uses],
        tuple(np.concatenate(x) for x in zip(*postings, strict=True)) or _columns([]),
    )


def _windows(choice: tuple[str, ...]) -> tuple[int, int, int, int]:
    """Return three windows of a choice of a pattern, and the width of all its texts."""
    key, second, third = map(gram, windows(choice))
    return key, second, third, min(sum(map(width, choice)), MOST_WIDTH)


def _columns(postings: Sequence[tuple[int, int, int, int, int]]) -> tuple[NDArray[Any], ...]:
    rows = zip(*postings, strict=True) if postings else ((),) * 5
    keys, second, third, widths, numbers = rows
    return (
        np.array(keys, np.uint64),
        np.column_stack([np.array(second, np.uint64), np.array(third, np.uint64)]),
        np.array(widths, np.uint16),
        np.array(numbers, np.int64),
    )


def _made(
    names: Strings,
    texts: Strings,
    facts: NDArray[np.int64],
    uses: Sequence[NDArray[np.int64]],
    postings: tuple[NDArray[Any], ...],
) -> Segment:
    keys, others, widths, numbers = postings
    order = np.argsort(keys, kind="stable")
    sizes = np.minimum(facts[:, 1], MOST_SIZE)
    checks = np.array(
        [zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts], np.int64
    )
    flags = facts[:, 0].astype(np.uint8)
    pairs = np.concatenate(uses) if uses else np.empty((0, 2), np.int64)
    ends = np.cumsum([len(x) for x in uses], dtype=np.int64)
    begins = np.repeat(np.arange(len(uses)), np.diff(ends, prepend=0))
    pairs = pairs[np.lexsort((pairs[:, 0], begins))]
    return Segment(
        names,
        texts,
        flags,
        sizes << 32 | checks,
        ends,
        pairs[:, 0].astype(np.int32),
        pairs[:, 1].astype(np.uint8),
        keys[order],
        others[order],
        numbers[order].astype(np.int32),
        widths[order],
        table(np.concatenate([keys, others.ravel()])),
        np.flatnonzero(flags & OPEN),
    )
