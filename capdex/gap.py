"""One place where a JSON Schema takes less than another one, and how people read of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from capdex.findings import show, show_path

UNDECIDED: Final = "undecided"  # instead of a keyword: the comparison ended before it could tell


class Place(NamedTuple):
    """A place inside the values that schemas are about: its path, and how deep it is."""

    path: str = ""
    level: int = 0

    def named(self, name: str) -> Place:
        """One property of the value."""
        step = show_path((name,))
        dot = "." if self.path and not step.startswith("[") else ""
        return Place(f"{self.path}{dot}{step}", self.level + 1)

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

    def words(self, *, widened: bool) -> str:
        """What changed, in words; `widened` where the newer schema is the one that takes more."""
        before, after = self.values(widened=widened)
        if phrases := _PHRASES.get(self.keyword):
            return phrases[widened].format(one=_listed(self.source), other=_listed(self.target))
        if before is None:
            said = f"{self.keyword} is new: {after}"
        elif after is None:
            said = f"{self.keyword} was {before} and is gone"
        else:
            said = f"{self.keyword} was {before}, is {after}"
        return said if self.decided else f"{said}; what that takes cannot be compared"

    def values(self, *, widened: bool) -> tuple[str | None, str | None]:
        """The older and the newer value as short texts."""
        pair = (self.target, self.source) if widened else (self.source, self.target)
        before, after = (None if x is None else show(x) for x in pair)
        return before, after


_PHRASES: Final = {  # (takes less, takes more)
    "dropped": ("is gone", "is new"),
    "required": ("is required now", "is optional now"),
    "missing": ("takes {one} no longer", "takes {one} too"),
    "enum": ("takes only {other} now", "takes more than {other} now"),
    "false": ("takes nothing now", "takes something now"),
    "unnamed": ("refuses properties that it does not name", "takes properties it does not name"),
    "anyOf": ("no alternative takes all that was taken", "there are more alternatives"),
    "oneOf": ("no one alternative takes all that was taken", "there are more alternatives"),
    "not": ("what `not` rules out cannot be told apart", "`not` rules out less"),
    "if": ("`if` rules out more, or nobody can tell", "`if` rules out less"),
    UNDECIDED: ("cannot be compared with what it was", "may take more; that cannot be told"),
}


def _listed(value: Any) -> str:
    """A list of values as people write it."""
    return ", ".join(map(show, value)) if isinstance(value, list) else show(value)
