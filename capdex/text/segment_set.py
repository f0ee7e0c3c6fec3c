"""A set of immutable segments: which of their packages are live, and which to merge next.

Words (`capdex.search`) and triggers (`capdex.routing`) are the two kinds of segments. A change of
a set makes another set, which shares all segments but the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from capdex.text.strings import Strings

Mask = NDArray[np.bool_]
Ints = NDArray[np.int32]

AT_ONCE: Final = 4  # segments of about one size before they are merged
SMALLEST: Final = 1024  # packages: smaller segments count as one size


class Named(Protocol):
    """A segment: its packages by slot, in order of their names, none of them twice."""

    @property
    def names(self) -> Strings:
        """The names of the packages."""


S = TypeVar("S", bound=Named)
Source = tuple[S, Mask | None]  # a segment, and which of its packages are live; None: all


@dataclass(frozen=True, slots=True)
class Part(Generic[S]):
    """A segment in a set: where its slots begin, and which of its packages are live."""

    segment: S
    begin: int
    live: Mask | None = None  # None: all are

    @property
    def packages(self) -> int:
        """The number of live packages."""
        return len(self.segment.names) if self.live is None else int(np.count_nonzero(self.live))

    @property
    def slots(self) -> slice:
        """The slots of the set that are of this segment."""
        return slice(self.begin, self.begin + len(self.segment.names))

    def find(self, name: str) -> int | None:
        """Return the slot in the segment of a live package, None if there is none."""
        at = self.segment.names.place(name)
        return at if at is not None and (self.live is None or self.live[at]) else None

    def count(self, slots: Ints) -> int:
        """Return how many packages at some slots of the segment are live."""
        return len(slots) if self.live is None else int(np.count_nonzero(self.live[slots]))


class SegmentSet(Generic[S]):
    """A value: packages in segments. Safe to use from several threads at once."""

    def __init__(self, sources: Iterable[Source[S]] = ()) -> None:
        parts: list[Part[S]] = []
        begin = 0
        for segment, live in sources:
            if len(segment.names):
                parts.append(Part(segment, begin, live))
                begin += len(segment.names)
        self.parts, self.slots = tuple(parts), begin
        self.packages = sum(part.packages for part in parts)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(True for _ in self.places(name))

    def places(self, name: str) -> Iterator[tuple[Part[S], int]]:
        """Yield the part with a live package of this name, and its slot in the segment."""
        for part in self.parts:
            if (at := part.find(name)) is not None:
                yield part, at

    def with_segment(self, segment: S) -> Self:
        """Return a set with the packages of a segment, in place of those of the same names."""
        return type(self)([*self._without(segment.names), (segment, None)])

    def without(self, names: Iterable[str]) -> Self:
        """Return a set without the packages of these names; unknown ones are passed over."""
        return type(self)(self._without(names))

    def mergeable(self) -> list[Source[S]]:
        """Return the segments to merge next; none if they are few enough.

        `merge` of them may run beside questions and changes, `merged` puts the result in. Each
        merge takes AT_ONCE segments of one size, a power of AT_ONCE, so a package is merged as
        often as its number has digits; or a segment half of whose packages are removed.
        """
        sizes: dict[int, list[Part[S]]] = {}
        for part in self.parts:
            live, size = part.packages, 0
            if 2 * live <= len(part.segment.names):
                return [(part.segment, part.live)]
            while live > SMALLEST:
                live //= AT_ONCE
                size += 1
            sizes.setdefault(size, []).append(part)
        full = [some for _, some in sorted(sizes.items()) if len(some) >= AT_ONCE]
        return [(part.segment, part.live) for part in full[0]] if full else []

    def merged(self, sources: Sequence[Source[S]], segment: S) -> Self:
        """Return the set with `segment`, the merged `sources`, in their place.

        What was removed from the sources since then is removed from it, too.
        """
        now = {id(part.segment): part.live for part in self.parts}
        gone: list[str] = []
        for source, was in sources:
            left = np.ones(len(source.names), np.bool_) if was is None else was.copy()
            if id(source) in now:  # otherwise all its packages have been removed
                live = now[id(source)]
                left &= False if live is None else ~live
            gone += [source.names[at] for at in np.flatnonzero(left).tolist()]
        replaced = {id(source) for source, _ in sources}
        kept = [(x.segment, x.live) for x in self.parts if id(x.segment) not in replaced]
        return type(self)([*type(self)([(segment, None)])._without(gone), *kept])

    def name(self, slot: int) -> str:
        """Return the name of the package at a slot, removed ones included."""
        for part in self.parts:
            if slot < part.slots.stop:
                return part.segment.names[slot - part.begin]
        raise IndexError(slot)

    def _without(self, names: Iterable[str]) -> list[Source[S]]:
        names = list(names)
        sources: list[Source[S]] = []
        for part in self.parts:
            gone = [at for name in names if (at := part.segment.names.place(name)) is not None]
            live = part.live
            if gone:
                live = np.ones(len(part.segment.names), np.bool_) if live is None else live.copy()
                live[gone] = False
            if live is None or live.any():
                sources.append((part.segment, live))
        return sources


def renumbered(sources: Sequence[Source[S]]) -> tuple[list[str], list[Ints]]:
    """Return the live names of segments in order, and the new slot of each of their packages.

    The new slot of a removed package is -1. No two live packages have the same name.
    """
    moved = [np.full(len(segment.names), -1, np.int32) for segment, _ in sources]
    named = sorted(
        (segment.names[slot], at, slot)
        for at, (segment, live) in enumerate(sources)
        for slot in range(len(segment.names))
        if live is None or live[slot]
    )
    for new, (_, at, slot) in enumerate(named):
        moved[at][slot] = new
    return [name for name, _, _ in named], moved
