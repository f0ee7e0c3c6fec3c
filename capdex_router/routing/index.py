"""An index of the triggers and the names of installed capabilities.

`add` and `remove` are known by name at once, and hit by messages after `compile`, which may run in
a thread; until it ends, hits are those of before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from capdex.manifest.triggers import Trigger
from capdex.routing import Segment, TriggerSet, merge
from capdex.routing.patterns import (
    Level,
    Message,
    Pattern,
    compiled,
    is_denied,
    pattern_of,
    traits,
)
from capdex.routing.text import bounded, fold

Label = Literal["broad", "inactive", "unroutable"]
"""`inactive` is a broad trigger beyond the cap; `unroutable` one that this router cannot match."""

BROAD, REGEX, KEYWORD = Level.BROAD, Level.REGEX, Level.KEYWORD
_AT_ONCE: Final = 1_000  # capabilities of one segment; others can be read between two


@dataclass(frozen=True, slots=True)
class InstalledHit:
    """A trigger that a message hits. `score` is (BROAD, REGEX or KEYWORD; width of its text)."""

    capability: str
    trigger: Trigger
    score: tuple[int, int]


class TriggerIndex:
    """The triggers of the installed capabilities. One thread reads and changes it."""

    def __init__(self) -> None:
        self._triggers: dict[str, tuple[Trigger, ...]] = {}
        self._names: dict[str, set[str]] = {}
        self._set = TriggerSet()  # replaced as a whole
        self._pending: dict[str, None] = {}
        self._lock = threading.Lock()  # for `_triggers`, `_pending` and changes of `_set`
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
        self._names.setdefault(short_name(capability), set()).add(capability)
        with self._lock:
            self._triggers[capability] = tuple(dict.fromkeys(triggers))
            self._pending[capability] = None

    def remove(self, capability: str) -> None:
        """Remove a capability, if it is there; no message hits it any more."""
        if capability not in self._triggers:
            return
        named = self._names[short_name(capability)]
        named.discard(capability)
        if not named:
            del self._names[short_name(capability)]
        with self._lock:
            del self._triggers[capability]
            if capability in self._set:
                self._set = self._set.without([capability])
            self._pending.pop(capability, None)

    def compile(self) -> None:
        """Bring in what was added since the last time; may run in a thread beside the readers."""
        with self._compiling:
            while True:
                with self._lock:
                    names = list(self._pending)[:_AT_ONCE]
                    waiting = [(name, self._triggers[name]) for name in names]
                if not waiting:
                    break
                segment = Segment.build(waiting)
                with self._lock:
                    stale = [name for name, own in waiting if self._triggers.get(name) is not own]
                    self._set = self._set.with_segment(segment).without(stale)
                    for name in names:
                        if name not in stale:
                            self._pending.pop(name, None)
            while sources := self._set.mergeable():
                segment = merge(sources)
                with self._lock:
                    self._set = self._set.merged(sources, segment)

    def hits(self, message: str) -> list[InstalledHit]:
        """Return the triggers that the beginning of a message hits, in no order.

        Equal patterns of one capability are one hit, and so are keywords that fold alike, with the
        first of them. The message is bounded here (text.MAX_MESSAGE_BYTES).
        """
        return [
            InstalledHit(hit.name, Trigger(hit.kind, hit.text), (hit.level, hit.width))
            for hit in self._set.hits(message)
        ]

    def labels(self, capability: str) -> dict[Trigger, Label]:
        """Return the triggers of a capability that are broad or cannot be routed by."""
        found: dict[Trigger, Label] = {}
        for trigger in self._triggers.get(capability, ()):
            pattern = pattern_of(trigger)
            if pattern is None or _is_refused(pattern):
                found[trigger] = "unroutable"
                continue
            known = traits(pattern)
            if not known.choices and pattern not in self._set.active:
                found[trigger] = "inactive"
            elif known.broad:
                found[trigger] = "broad"
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


def short_name(capability: str) -> str:
    """Return the last part of an id, folded: `note` of `did:nuwa:cap:note`."""
    return fold(capability.rpartition(":")[2])


def negated(hit: InstalledHit, message: str) -> bool:
    """True if the part of a message that a hit is in says not to do it."""
    pattern = pattern_of(hit.trigger)
    return pattern is not None and is_denied(pattern, Message.of(message))


def _is_refused(pattern: Pattern) -> bool:
    return pattern.kind == "regex" and compiled(pattern.value) is None
