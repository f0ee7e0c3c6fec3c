"""The triggers of one machine's capabilities in dictionaries, under texts that they require.

A node holds very many packages in arrays (capdex.routing.triggers). The bounds are the same here,
and so are the hits.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from capdex.routing.matches import TriggerHit
from capdex.routing.patterns import (
    MAX_CANDIDATES,
    MAX_KEYWORDS,
    MAX_OPEN,
    MAX_WORK,
    MOST_SIZE,
    MOST_WIDTH,
    Level,
    Message,
    Pattern,
    Traits,
    compiled,
    hits,
    searches,
    windows,
)
from capdex.routing.text import width

KEY_CHARS: Final = 6  # of the beginning of a text that a trigger is filed under


class _Filed(NamedTuple):
    """A choice of a pattern: pieces that a message has if it matches, and the texts' width."""

    pattern: Pattern
    pieces: tuple[str, str, str]
    width: int


class TriggerTable:
    """Patterns and the capabilities that have them. One thread reads and changes it."""

    def __init__(self) -> None:
        self._own: dict[str, tuple[Pattern, ...]] = {}
        # For each pattern the capabilities that have it, each with its number of open patterns
        # before this one.
        self._users: dict[Pattern, dict[str, int]] = {}
        self._traits: dict[Pattern, Traits] = {}
        self._filed: dict[str, dict[_Filed, None]] = {}
        self._active: dict[Pattern, Any] | None = None

    def add(self, capability: str, known: Mapping[Pattern, Traits]) -> None:
        """Add a capability with its patterns, in place of what it had."""
        self.remove(capability)
        self._own[capability] = tuple(known)
        opened = 0
        for pattern, own in known.items():
            if pattern not in self._users:
                self._users[pattern], self._traits[pattern] = {}, own
                for filed in _filed(pattern, own):
                    self._filed.setdefault(filed.pieces[0][:KEY_CHARS], {})[filed] = None
            self._users[pattern][capability] = opened
            opened += not own.choices
        self._active = None

    def remove(self, capability: str) -> None:
        """Remove a capability; an unknown one is passed over."""
        for pattern in self._own.pop(capability, ()):
            del self._users[pattern][capability]
            if not self._users[pattern]:
                del self._users[pattern]
                for filed in _filed(pattern, self._traits.pop(pattern)):
                    del self._filed[filed.pieces[0][:KEY_CHARS]][filed]
        self._active = None

    @property
    def active(self) -> dict[Pattern, Any]:
        """The open patterns that every message is matched with, compiled; others never match.

        The first ones of each capability come before the second ones of others.
        """
        if self._active is None:
            ranks = {
                pattern: (min(users.values()), *self._rank(pattern))
                for pattern, users in self._users.items()
                if not self._traits[pattern].choices
            }
            self._active, work = {}, 0
            for pattern in sorted(ranks, key=lambda x: (ranks[x], x))[:MAX_OPEN]:
                work += ranks[pattern][1]
                if work <= MAX_WORK:
                    self._active[pattern] = compiled(pattern.value)
        return self._active

    def hits(self, message: str) -> list[TriggerHit]:
        """Return the triggers of all capabilities that the beginning of a message hits."""
        seen = Message.of(message)
        widths = self._candidates({seen.text.casefold(), seen.folded.casefold()})
        matches = {pattern: at for pattern, at in widths.items() if hits(pattern, seen)}
        matches |= {pattern: 0 for pattern, regex in self.active.items() if searches(regex, seen)}
        return [
            TriggerHit(name, pattern.kind, pattern.value, self._level(pattern), matches[pattern])
            for pattern in sorted(matches)
            for name in self._users[pattern]
        ]

    def _candidates(self, texts: Iterable[str]) -> dict[Pattern, int]:
        """Return patterns that are matched with a message, and the width of their texts in it.

        Of too many those come first that are precise: not broad, with wide texts, small.
        """
        keys = {
            text[at : at + length]
            for text in texts
            for length in range(1, KEY_CHARS + 1)
            for at in range(len(text) - length + 1)
        }
        widths: dict[Pattern, int] = {}
        for key in keys & self._filed.keys():
            for pattern, pieces, wide in self._filed[key]:
                if all(any(piece in text for text in texts) for piece in pieces):
                    widths[pattern] = max(wide, widths.get(pattern, 0))

        def rank(pattern: Pattern) -> tuple[Any, ...]:
            traits = self._traits[pattern]
            return traits.broad, -widths[pattern], *self._rank(pattern), pattern

        ordered = sorted(widths, key=rank)
        chosen = [x for x in ordered if x.kind == "keyword"][:MAX_KEYWORDS]
        work = 0
        for pattern in [x for x in ordered if x.kind == "regex"][:MAX_CANDIDATES]:
            work += self._rank(pattern)[0]
            if work > MAX_WORK:
                break
            chosen.append(pattern)
        return {pattern: widths[pattern] for pattern in chosen}

    def _rank(self, pattern: Pattern) -> tuple[int, int]:
        data = pattern.value.encode("utf-8", "surrogatepass")
        return min(self._traits[pattern].size, MOST_SIZE), zlib.crc32(data)

    def _level(self, pattern: Pattern) -> Level:
        known = self._traits[pattern]
        if known.broad or not known.choices:
            return Level.BROAD
        return Level.KEYWORD if pattern.kind == "keyword" else Level.REGEX


def _filed(pattern: Pattern, known: Traits) -> list[_Filed]:
    return [
        _Filed(pattern, windows(choice), min(sum(map(width, choice)), MOST_WIDTH))
        for choice in known.choices
    ]
