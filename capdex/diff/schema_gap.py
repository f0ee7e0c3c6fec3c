"""A place where one JSON Schema accepts less than another one, and its sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from capdex.diagnostics import show, show_path

UNDECIDED: Final = "undecided"  # instead of a keyword: the comparison ran out of steps

MAX_PATH_CHARS: Final = 120  # of a path inside a message; its end is kept


class SchemaPath(NamedTuple):
    """Place inside the values that schemas describe: its path as text, and how deep it is."""

    text: str = ""
    depth: int = 0

    def property(self, name: str) -> SchemaPath:
        """Return the place of one property."""
        step = show_path((name,))
        dot = "." if self.text and not step.startswith("[") else ""
        text = f"{self.text}{dot}{step}"
        clipped = text if len(text) <= MAX_PATH_CHARS else f"…{text[1 - MAX_PATH_CHARS :]}"
        return SchemaPath(clipped, self.depth + 1)

    def item(self) -> SchemaPath:
        """Return the place of the items."""
        return SchemaPath(f"{self.text}[]", self.depth + 1)


@dataclass(frozen=True, slots=True)
class SchemaGap:
    """A place where a schema (`target`) does not accept all that another one (`source`) does.

    `path` leads to the value: `preferred.length`, `tags[]`. `by_rule`: P2 calls it incompatible
    without an example.
    """

    path: str
    keyword: str
    source: Any = None
    target: Any = None
    by_rule: bool = False

    @property
    def topic(self) -> str:
        """The keyword under which a place is reported once: a dropped property is not optional."""
        return "required" if self.keyword == "dropped" else self.keyword

    def words(self, it: str, *, widened: bool) -> str:
        """Return a sentence about `it`; `widened`: the newer schema accepts more."""
        before, after = self.values(widened=widened)
        if phrases := _PHRASES.get(self.keyword):
            one, other = _listed(self.source), _listed(self.target)
            return phrases[widened].format(it=it, one=one, other=other)
        if before is None:
            return f"{self.keyword} of {it} is new: {after}"
        if after is None:
            return f"{self.keyword} of {it} was {before} and is gone"
        return f"{self.keyword} of {it} was {before}, is {after}"

    def values(self, *, widened: bool) -> tuple[str | None, str | None]:
        """Return the older and the newer value as short texts."""
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
        "{it} rules out by `not` what was taken, or that is not known",
        "{it} rules out less by `not`, or other things",
    ),
    "if": (
        "{it} rules out by `if` what was taken, or that is not known",
        "{it} rules out less by `if`, or other things",
    ),
    UNDECIDED: (
        "{it} cannot be compared within the steps allowed",
        "{it} may take more; that is not known within the steps allowed",
    ),
}


def _listed(value: Any) -> str:
    """Return a list of values as text."""
    return ", ".join(map(show, value)) if isinstance(value, list) else show(value)
