"""The triggers of very many packages: which packages a message hits, and by which triggers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capdex.errors import InvalidInput
from capdex.manifest.triggers import Trigger
from capdex.routing.matches import Match, MatchedTrigger, TriggerHit, TriggerPage, worth
from capdex.routing.patterns import (
    MAX_CANDIDATES,
    MAX_KEYWORDS,
    MAX_OPEN,
    MAX_WORK,
    Level,
    Message,
    Pattern,
    compiled,
    hits,
    searches,
    span,
)
from capdex.routing.segment import BROAD, KEYWORD, OPEN, Hashes, Ints, Segment, grams
from capdex.text.segment_set import Part, SegmentSet

MAX_LIMIT: Final = 1_000
MAX_SHOWN: Final = 8  # triggers of one match
_RANK: Final = (1 << 48) - 1
_STACKED: Final = 0.1  # the share of a score that further triggers of the package can add


@dataclass(frozen=True, slots=True)
class _Hit:
    """A pattern that a message hits, and the slots of the live packages that have it."""

    pattern: Pattern
    level: Level
    width: int
    slots: NDArray[np.int64]


class _Chosen(NamedTuple):
    """A candidate: the width of the texts that it has in the message, and where it is."""

    width: int
    places: list[tuple[Part[Segment], int]]


class TriggerSet(SegmentSet[Segment]):
    """A value: packages with their triggers. Safe to use from several threads at once."""

    def with_packages(self, packages: Iterable[tuple[str, Iterable[Trigger]]]) -> TriggerSet:
        """Return a set with these packages, in place of those of the same names."""
        return self.with_segment(Segment.build(packages))

    def hits(self, message: str) -> list[TriggerHit]:
        """Return the triggers of all packages that the beginning of a message hits."""
        return [
            TriggerHit(self.name(slot), hit.pattern.kind, hit.pattern.value, hit.level, hit.width)
            for hit in self._find(Message.of(message))[0]
            for slot in hit.slots.tolist()
        ]

    def match(self, message: str, limit: int) -> TriggerPage:
        """Return the packages that the beginning of a message hits, best first.

        Equal scores are in order of names. Raises InvalidInput for a limit outside 1 to MAX_LIMIT.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput(f"a page has 1 to {MAX_LIMIT} matches, not {limit}")
        seen = Message.of(message)
        matched, cut = self._find(seen)
        if not matched:
            return TriggerPage([], 0, cut)
        best, others = np.zeros(self.slots), np.zeros(self.slots)
        worths = [worth(x.level, x.width, len(x.slots), self.packages) for x in matched]
        for hit, score in zip(matched, worths, strict=True):
            best[hit.slots] = np.maximum(best[hit.slots], score)
            others[hit.slots] += np.log1p(-score)
        scores = (1 - _STACKED) * best - _STACKED * np.expm1(others)
        top = self._top(scores, limit)
        shown: dict[int, list[int]] = {slot: [] for slot in top}
        order = sorted(range(len(matched)), key=lambda at: -worths[at])
        slots = np.concatenate([matched[at].slots for at in order])
        owners = np.repeat(order, [len(matched[at].slots) for at in order])
        among = np.isin(slots, top)
        for slot, at in zip(slots[among].tolist(), owners[among].tolist(), strict=True):
            if len(shown[slot]) < MAX_SHOWN:
                shown[slot].append(at)
        spans = {at: _shown(matched[at], seen) for some in shown.values() for at in some}
        matches = [
            Match(self.name(slot), float(scores[slot]), tuple(spans[at] for at in shown[slot]))
            for slot in top
        ]
        return TriggerPage(matches, int(np.count_nonzero(scores)), cut)

    @cached_property
    def active(self) -> dict[Pattern, tuple[Any, list[tuple[Part[Segment], int]]]]:
        """The open patterns that every message is matched with, compiled, and where they are.

        The others never match. The first ones of each package come before the second ones of
        others.
        """
        ranked = [part.segment.open_ranks(part.live) for part in self.parts]
        ranks: dict[Pattern, int] = {}
        for part, (numbers, own) in zip(self.parts, ranked, strict=True):
            for at in np.argsort(own, kind="stable")[:MAX_OPEN].tolist():
                pattern, rank = part.segment.pattern(int(numbers[at])), int(own[at])
                ranks[pattern] = min(rank, ranks.get(pattern, rank))
        chosen: dict[Pattern, tuple[Any, list[tuple[Part[Segment], int]]]] = {}
        work = 0
        for pattern in sorted(ranks, key=lambda x: (ranks[x], x))[:MAX_OPEN]:
            work += (ranks[pattern] >> 32) & 0xFFFF
            if work <= MAX_WORK:
                chosen[pattern] = (compiled(pattern.value), [])
        known = np.array([ranks[x] & _RANK for x in chosen], np.int64)
        for part, (numbers, own) in zip(self.parts, ranked, strict=True):
            for number in numbers[np.isin(own & _RANK, known)].tolist():
                if (pattern := part.segment.pattern(number)) in chosen:
                    chosen[pattern][1].append((part, number))
        return chosen

    def _find(self, message: Message) -> tuple[list[_Hit], bool]:
        """Return the patterns that a message hits, in order, and if candidates were left out."""
        texts = {message.text.casefold(), message.folded.casefold()}
        windows = np.concatenate([grams(text) for text in texts])
        chosen: dict[Pattern, _Chosen] = {}
        candidates, cut = self._candidates(windows)
        for part, (numbers, widths) in zip(self.parts, candidates, strict=True):
            for number, width in zip(numbers.tolist(), widths.tolist(), strict=True):
                candidate = chosen.setdefault(part.segment.pattern(number), _Chosen(width, []))
                candidate.places.append((part, number))
        hit = [pattern for pattern in chosen if hits(pattern, message)]
        for pattern, (regex, places) in self.active.items():
            if searches(regex, message):
                chosen[pattern] = _Chosen(0, places)
                hit.append(pattern)
        matched: list[_Hit] = []
        for pattern in sorted(hit):
            width, places = chosen[pattern]
            slots = [x.segment.users(number, x.live) + np.int64(x.begin) for x, number in places]
            first, number = places[0]
            level = _level(int(first.segment.flags[number]))
            matched.append(_Hit(pattern, level, width, np.concatenate(slots)))
        return matched, cut

    def _candidates(self, windows: Hashes) -> tuple[list[tuple[Ints, Ints]], bool]:
        """Return patterns of each part that are matched with a message, and their texts' widths.

        Of too many those come first that are precise: not broad, with wide texts, small.
        """
        of_parts = []
        for part in self.parts:
            numbers, widths = part.segment.candidates(windows)
            if part.live is not None and len(numbers):
                keep = part.segment.live_patterns(part.live, numbers)
                numbers, widths = numbers[keep], widths[keep]
            flags = part.segment.flags[numbers].astype(np.int64)
            broad = (flags & BROAD) // BROAD
            ranks = broad << 60 | (0xFFF - widths) << 48 | part.segment.ranks[numbers]
            of_parts.append((numbers, widths, ranks, (flags & KEYWORD) != 0))
        if not of_parts:
            return [], False
        ranks = np.concatenate([ranks for _, _, ranks, _ in of_parts])
        keywords = np.concatenate([keyword for _, _, _, keyword in of_parts])
        last_word, cut_words = _last(ranks[keywords], MAX_KEYWORDS, None)
        last_regex, cut_regexes = _last(ranks[~keywords], MAX_CANDIDATES, MAX_WORK)
        chosen = []
        for numbers, widths, ranks, keyword in of_parts:
            keep = ranks <= np.where(keyword, last_word, last_regex)
            chosen.append((numbers[keep], widths[keep]))
        return chosen, cut_words or cut_regexes

    def _top(self, scores: NDArray[np.float64], limit: int) -> list[int]:
        """Return the slots of the best scores above 0, equal ones in order of names."""
        slots = np.flatnonzero(scores)
        if len(slots) > limit:
            bound = np.partition(scores[slots], -limit)[-limit]
            equal = slots[scores[slots] == bound]
            slots = slots[scores[slots] > bound]
            for part in self.parts:  # names of a segment are in order
                begin, end = np.searchsorted(equal, [part.slots.start, part.slots.stop])
                slots = np.append(slots, equal[begin:end][:limit])
        order = sorted(slots.tolist(), key=lambda slot: (-scores[slot], self.name(slot)))
        return order[:limit]


def _level(flags: int) -> Level:
    if flags & (BROAD | OPEN):
        return Level.BROAD
    return Level.KEYWORD if flags & KEYWORD else Level.REGEX


def _shown(hit: _Hit, message: Message) -> MatchedTrigger:
    pattern = hit.pattern
    broad = hit.level == Level.BROAD
    return MatchedTrigger(pattern.kind, pattern.value, broad, span(pattern, message))


def _last(ranks: NDArray[np.int64], most: int, work: int | None) -> tuple[int, bool]:
    """Return the last rank that is within the bounds, and if there are others behind it."""
    if len(ranks) == 0:
        return 0, False
    distinct = np.unique(ranks)
    count = min(len(distinct), most)
    if work is not None:
        total = np.cumsum((distinct >> 32) & 0xFFFF)
        count = min(count, int(np.searchsorted(total, work, "right")))
    return (int(distinct[count - 1]) if count else -1), count < len(distinct)
