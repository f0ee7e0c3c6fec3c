"""A change from one release to the next, with the rule that gives the step it owes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from capdex.diff.semver_step import Rule, Step


class ChangeKind(StrEnum):
    """Kind of change at a path."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """A change. `message` is a line for people; `old` and `new` are short texts, or None.

    All of them quote untrusted packages: printable, and to be escaped for a terminal.
    """

    rule: Rule
    path: str
    kind: ChangeKind
    message: str
    old: str | None = None
    new: str | None = None

    @property
    def section(self) -> str:
        """The part of the package that changed."""
        return self.rule.section

    @property
    def step(self) -> Step:
        """The step owed from 1.0.0 on."""
        return self.rule.step

    @property
    def risk(self) -> bool:
        """True if the package can do or reach more than before."""
        return self.rule.risk

    def to_json(self) -> dict[str, Any]:
        """Return the change as `capdex diff --json` and errors show it."""
        return {
            "section": self.section,
            "path": self.path,
            "kind": str(self.kind),
            "step": str(self.step),
            "risk": self.risk,
            "message": self.message,
            "old": self.old,
            "new": self.new,
        }
