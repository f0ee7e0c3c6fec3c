"""One place where a JSON Schema takes less than another one, and how people read of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from capdex.diagnostics import show, show_path

UNDECIDED: Final = "undecided"  # instead of a keyword: the comparison ended before it could tell

MAX_PATH_CHARS: Final = 120  # of a path inside a message; its end tells the most


class Place(NamedTuple):
    """A place inside the values that schemas are about: its path, and how deep it is."""

    path: str = ""
    level: int = 0

    def named(self, name: str) -> Place:
        """One property of the value."""
        step = show_path((name,))
        dot = "." if self.path and not step.startswith("[") else ""
        path = f"{self.path}{dot}{step}"
        clipped = path if len(path) <= MAX_PATH_CHARS else f"…{path[1 - MAX_PATH_CHARS :]}"
        return Place(clipped, self.level + 1)

    @property
    def item(self) -> Place:
        """The items of the value."""
        return Place(f"{self.path}[]", self.level + 1)

    @property
    def within(self) -> Place:
        """Some part of the value that has no name of its own."""
        return Place(self.path, self.level + 1)


@dataclass(frozen=True, slots=True)
class Gap:
    """One place where a schema (`target`) does not take all that another one (`source`) does.

    `path` leads to the value: `preferred.length`, `tags[]`.
    """

    path: str
    keyword: str
    source: Any = None
    target: Any = None
    decided: bool = True

    def words(self, it: str, *, widened: bool) -> str:
        """What changed about `it`; `widened` where the newer schema is the one that takes more."""
        before, after = self.values(widened=widened)
        if phrases := _PHRASES.get(self.keyword):
            one, other = _listed(self.source), _listed(self.target)
            return phrases[widened].format(it=it, one=one, other=other)
        if before is None:
            said = f"{self.keyword} of {it} is new: {after}"
        elif after is None:
            said = f"{self.keyword} of {it} was {before} and is gone"
        else:
            said = f"{self.keyword} of {it} was {before}, is {after}"
        return said if self.decided else f"{said}; what that takes cannot be compared"

    def values(self, *, widened: bool) -> tuple[str | None, str | None]:
        """The older and the newer value as short texts."""
        pair = (self.target, self.source) if widened else (self.source, self.target)
        before, after = (None if x is None else show(x) for x in pair)
        return before, after


_PHRASES: Final = {  # where it takes less, and where it takes more
    "dropped": ("{it} is gone", "{it} is new"),
    "required": ("{it} is required now", "{it} is optional now"),
    "missing": ("{it} takes {one} no longer", "{it} takes {one} too"),
    "enum": ("{it} takes only {other} now", "{it} takes more than {other} now"),
    "false": ("{it} may not be there now", "{it} may be there now"),
    "unnamed": (
        "{it} refuses properties that it does not name now",
        "{it} takes properties that it does not name now",
    ),
    "anyOf": (
        "no alternative of {it} takes all that was taken, for certain",
        "{it} has other alternatives",
    ),
    "oneOf": (
        "no alternative of {it} alone takes all that was taken, for certain",
        "{it} has other alternatives",
    ),
    "not": (
        "{it} rules out by `not` what was taken, or nobody can tell",
        "{it} rules out less by `not`, or other things",
    ),
    "if": (
        "{it} rules out by `if` what was taken, or nobody can tell",
        "{it} rules out less by `if`, or other things",
    ),
    UNDECIDED: (
        "{it} cannot be compared within the steps allowed",
        "{it} may take more; that cannot be told within the steps allowed",
    ),
}


def _listed(value: Any) -> str:
    """A list of values as people write it."""
    return ", ".join(map(show, value)) if isinstance(value, list) else show(value)
