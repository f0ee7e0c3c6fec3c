"""An index of the triggers of many capabilities: which of them a message hits, and how precisely.

    add ─> pending ─> compile ─> shards of re2.Filter ─> hits
                        │
                        └─> broad ─> at most MAX_BROAD are active

Equal patterns of several capabilities are one pattern of the index. Patterns ignore case, unless
they say `(?-i)`. `compile` may run in a thread; until it ends, hits are those of the shards before.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import re2

from capdex.manifest.triggers import (
    MAX_KEYWORD_CHARS,
    MAX_PATTERN_BYTES,
    MAX_PATTERN_MEMORY,
    MAX_UNRELATED,
    UNRELATED,
    Trigger,
    compile_pattern,
)
from router.routing.literals import precision
from router.routing.text import bounded, fold, has_word, is_negated, views, width

SHARD: Final = 1_000  # patterns; one Filter of 10 000 distinct ones may fail to compile
MAX_BROAD: Final = 100  # active patterns that no literal rules out: every message is searched
MAX_UNRELATED_KEYWORD: Final = 2  # "the" stands in more of the unrelated messages

Label = Literal["broad", "inactive", "unroutable"]
"""`inactive` is a broad trigger beyond the cap; `unroutable` one that this router cannot match."""

BROAD, REGEX, KEYWORD = range(3)


@dataclass(frozen=True, slots=True)
class Hit:
    """A trigger that a message hits. `score` is (BROAD, REGEX or KEYWORD; width of its text)."""

    capability: str
    trigger: Trigger
    score: tuple[int, int]


class _Pattern(NamedTuple):
    """A distinct pattern; a keyword is folded."""

    type: str
    value: str

    @property
    def source(self) -> str:
        text = self.value if self.type == "regex" else re2.escape(self.value)
        return f"(?i){text}"


class _Shard(NamedTuple):
    filter: Any
    patterns: tuple[_Pattern, ...]

    def matched(self, texts: Iterable[bytes]) -> set[_Pattern]:
        found: set[_Pattern] = set()
        for text in texts:
            found.update(self.patterns[i] for i in self.filter.Match(text) or ())
        return found


class TriggerIndex:
    """The triggers of the installed capabilities. One thread reads and changes it."""

    def __init__(self) -> None:
        self._triggers: dict[str, tuple[Trigger, ...]] = {}
        self._names: dict[str, set[str]] = {}
        self._uses: dict[_Pattern, dict[str, Trigger]] = {}
        self._placed: set[_Pattern] = set()  # compiled, or found to be unusable
        self._pending: dict[_Pattern, None] = {}
        self._unusable: set[_Pattern] = set()
        self._broad: dict[_Pattern, None] = {}
        self._shards: tuple[_Shard, ...] = ()
        self._active: tuple[_Shard, ...] = ()  # of broad patterns
        self._lock = threading.Lock()  # for values that `compile` shares with the other methods
        self._compiling = threading.Lock()

    def __len__(self) -> int:
        return len(self._triggers)

    def __contains__(self, capability: object) -> bool:
        return capability in self._triggers

    @property
    def ready(self) -> bool:
        """True if every trigger is compiled."""
        return not self._pending

    def add(self, capability: str, triggers: Iterable[Trigger]) -> None:
        """Add a capability, or replace its triggers; until `compile`, only its name is found."""
        self.remove(capability)
        kept = tuple(dict.fromkeys(triggers))
        self._triggers[capability] = kept
        self._names.setdefault(short_name(capability), set()).add(capability)
        with self._lock:
            for trigger in kept:
                pattern = _pattern(trigger)
                if pattern is not None:
                    self._uses.setdefault(pattern, {}).setdefault(capability, trigger)
                    if pattern not in self._placed:
                        self._pending[pattern] = None

    def remove(self, capability: str) -> None:
        """Remove a capability, if it is there; no message hits it any more."""
        triggers = self._triggers.pop(capability, None)
        if triggers is None:
            return
        named = self._names[short_name(capability)]
        named.discard(capability)
        if not named:
            del self._names[short_name(capability)]
        with self._lock:
            for pattern in filter(None, map(_pattern, triggers)):
                uses = self._uses.get(pattern, {})
                uses.pop(capability, None)
                if not uses:
                    self._uses.pop(pattern, None)
                    self._pending.pop(pattern, None)

    def compile(self) -> None:
        """Compile what was added since the last time; may run in a thread beside the readers."""
        with self._compiling:
            with self._lock:
                live, pending = dict.fromkeys(self._uses), list(self._pending)
            unusable = {pattern for pattern in pending if not _compiles(pattern)}
            kept, absorbed = self._divide(live, len(pending))
            fresh = [p for p in pending if p not in unusable]
            shards, failed = _build([*absorbed, *fresh])
            broad = {pattern: None for shard in shards for pattern in _broad_of(shard)}
            if broad:
                shards, failed = _build([p for p in (*absorbed, *fresh) if p not in broad])
            unusable.update(failed)
            all_broad = {p: None for p in (*self._broad, *broad) if p in live}
            active, _ = _build(self._chosen(all_broad))
            with self._lock:
                self._shards = (*kept, *shards)
                self._active = tuple(active)
                self._broad = all_broad
                self._unusable = {p for p in self._unusable if p in live} | unusable
                self._placed = {p for shard in self._shards for p in shard.patterns}
                self._placed.update(self._broad, self._unusable)
                self._pending = {p: None for p in self._uses if p not in self._placed}

    def hits(self, message: str) -> list[Hit]:
        """Return the triggers that the beginning of a message hits, in no order.

        Equal patterns of one capability are one hit. The message is bounded here
        (text.MAX_MESSAGE_BYTES).
        """
        text = bounded(message)
        folded = fold(text)
        seen = views(text, folded)
        found: list[Hit] = []
        for shards, broad in ((self._shards, False), (self._active, True)):
            for shard in shards:
                for pattern in shard.matched(seen):
                    uses = self._uses.get(pattern)
                    if uses is None or not _holds(pattern, folded):
                        continue
                    score = _score(pattern, folded, broad)
                    found += [Hit(name, trigger, score) for name, trigger in uses.items()]
        return found

    def labels(self, capability: str) -> dict[Trigger, Label]:
        """Return the triggers of a capability that are broad or cannot be routed by."""
        active = {pattern for shard in self._active for pattern in shard.patterns}
        found: dict[Trigger, Label] = {}
        for trigger in self._triggers.get(capability, ()):
            pattern = _pattern(trigger)
            if pattern is None or pattern in self._unusable:
                found[trigger] = "unroutable"
            elif pattern in self._broad:
                found[trigger] = "broad" if pattern in active else "inactive"
        return found

    def named(self, name: str) -> list[str]:
        """Return the capabilities with exactly this id or short name, sorted."""
        if name in self._triggers:
            return [name]
        return sorted(self._names.get(fold(bounded(name)).strip(), ()))

    def starting(self, prefix: str) -> list[str]:
        """Return the capabilities whose short name or id starts so, sorted; "" gives all."""
        folded = fold(bounded(prefix)).strip()
        return sorted(
            capability
            for name, capabilities in self._names.items()
            for capability in capabilities
            if name.startswith(folded) or capability.startswith(folded)
        )

    def _divide(
        self, live: dict[_Pattern, None], pending: int
    ) -> tuple[list[_Shard], list[_Pattern]]:
        """Return the shards to keep, and the patterns of those to compile again with new ones.

        Small shards are joined to new ones of their size, so their number stays logarithmic; a
        shard of which more than half is gone is compiled again.
        """
        kept: list[_Shard] = []
        absorbed: list[_Pattern] = []
        for shard in self._shards:
            left = [pattern for pattern in shard.patterns if pattern in live]
            small = len(shard.patterns) < SHARD and len(left) <= 2 * pending
            if small or len(left) * 2 < len(shard.patterns):
                absorbed += left
            else:
                kept.append(shard)
        return kept, absorbed

    def _chosen(self, broad: Iterable[_Pattern]) -> list[_Pattern]:
        """Return the broad patterns that are active: the first of each capability come first."""
        ranks: dict[_Pattern, int] = {}
        counts: Counter[str] = Counter()
        with self._lock:
            for pattern in broad:
                users = list(self._uses.get(pattern, ()))
                ranks[pattern] = min((counts[name] for name in users), default=0)
                counts.update(users)
        return sorted(ranks, key=ranks.__getitem__)[:MAX_BROAD]


def short_name(capability: str) -> str:
    """Return the last part of an id, folded: `note` of `did:nuwa:cap:note`."""
    return fold(capability.rpartition(":")[2])


def negated(hit: Hit, message: str) -> bool:
    """True if the part of a message that a hit is in says not to do it."""
    folded = fold(bounded(message))
    if hit.trigger.type == "keyword":
        word = fold(hit.trigger.value)
        start = folded.find(word)
        return is_negated(folded, start, start + len(word))
    found = _compiled(hit.trigger.value).search(folded)
    start, end = found.span() if found else (0, len(folded))
    return is_negated(folded, start, end)


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Any:
    return compile_pattern(f"(?i){pattern}")


def _pattern(trigger: Trigger) -> _Pattern | None:
    """Return the pattern of a trigger; None if there is none, or one that is too long."""
    if trigger.type == "regex" and len(trigger.value.encode("utf-8", "replace")) <= (
        MAX_PATTERN_BYTES
    ):
        return _Pattern("regex", trigger.value)
    if trigger.type == "keyword" and len(trigger.value) <= MAX_KEYWORD_CHARS:
        return _Pattern("keyword", word) if (word := fold(trigger.value).strip()) else None
    return None


def _compiles(pattern: _Pattern) -> bool:
    """True if RE2 accepts a pattern as it is and with case ignored; a Filter would omit it."""
    try:
        if pattern.type == "regex":
            compile_pattern(pattern.value)
        compile_pattern(pattern.source)
    except (re2.error, UnicodeEncodeError):
        return False
    return True


def _build(patterns: Sequence[_Pattern]) -> tuple[list[_Shard], list[_Pattern]]:
    """Return shards of patterns that compile alone, and those that no Filter takes."""
    shards: list[_Shard] = []
    failed: list[_Pattern] = []
    waiting = [patterns[at : at + SHARD] for at in range(0, len(patterns), SHARD)]
    options = re2.Options()
    options.max_mem = MAX_PATTERN_MEMORY
    options.log_errors = False
    while waiting:
        part = waiting.pop()
        made = re2.Filter()
        try:
            for pattern in part:
                made.Add(pattern.source, options)
            made.Compile()
        except re2.error:  # too many literals for one automaton
            half = len(part) // 2
            if half:
                waiting += [part[:half], part[half:]]
            else:
                failed += part
        else:
            shards.append(_Shard(made, tuple(part)))
    return shards, failed


def _broad_of(shard: _Shard) -> set[_Pattern]:
    """Return the patterns that no literal rules out, or that unrelated messages hit."""
    found = {shard.patterns[i] for i in shard.filter.Match(b"", True) or ()}
    found |= shard.matched([b""])
    counts: Counter[_Pattern] = Counter()
    for message in UNRELATED:
        folded = fold(message)
        counts.update(p for p in shard.matched(views(message, folded)) if _holds(p, folded))
    for pattern, count in counts.items():
        if count >= (MAX_UNRELATED if pattern.type == "regex" else MAX_UNRELATED_KEYWORD):
            found.add(pattern)
    short = (p for p in shard.patterns if p.type == "keyword" and width(p.value) < 2)
    return found.union(short)


def _holds(pattern: _Pattern, folded: str) -> bool:
    """True if a pattern that is in a message hits it: a keyword is no part of a longer word."""
    return pattern.type == "regex" or has_word(folded, pattern.value)


def _score(pattern: _Pattern, folded: str, broad: bool) -> tuple[int, int]:
    if pattern.type == "keyword":
        return (BROAD if broad else KEYWORD), width(pattern.value)
    return (BROAD if broad else REGEX), precision(pattern.value, folded)
