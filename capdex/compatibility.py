"""Whether one JSON Schema takes everything that another takes (P2, P8): conservative, bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capdex.facts import Document, same
from capdex.findings import show


@dataclass(frozen=True, slots=True)
class Gap:
    """One place where a schema takes less (`target`) than another one (`source`)."""

    path: str
    keyword: str
    source: Any = None
    target: Any = None

    def words(self, *, widened: bool) -> str:
        """What changed, in words; `widened` where the newer schema is the one that takes more."""
        before, after = self.values(widened=widened)
        return f"{self.keyword} was {before}, is {after}"

    def values(self, *, widened: bool) -> tuple[str | None, str | None]:
        """The older and the newer value as short texts."""
        pair = (self.target, self.source) if widened else (self.source, self.target)
        before, after = (None if x is None else show(x) for x in pair)
        return before, after


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where the new schema takes less than the old one, and where it takes more."""

    narrowed: tuple[Gap, ...] = ()
    widened: tuple[Gap, ...] = ()


def compare_schemas(old: Document, new: Document, *, merging: bool = False) -> Comparison:
    """Compare two schemas both ways."""
    if same(old.root, new.root) and same(old.package, new.package):
        return Comparison()
    gap = Gap("", "undecided", old.root, new.root)
    return Comparison((gap,))
