"""A change between two releases: the rule that it falls under, its place, and its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from capdex.diagnostics import Path, show, show_path, walk
from capdex.diff.schema_compatibility import SchemaGap
from capdex.diff.semver_step import Rule
from capdex.json_schema.keywords import ANNOTATIONS, same


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

    def to_json(self) -> dict[str, Any]:
        """Return the change as `capdex diff --json` and errors show it."""
        return {
            "section": self.rule.section,
            "path": self.path,
            "kind": str(self.kind),
            "step": str(self.rule.step),
            "risk": self.rule.risk,
            "message": self.message,
            "old": self.old,
            "new": self.new,
        }


def differs(rule: Rule, path: Path, old: object, new: object, message: str) -> Change:
    """Return the change of one value; None is a missing one."""
    gone = ChangeKind.REMOVED if new is None else ChangeKind.CHANGED
    kind = ChangeKind.ADDED if old is None else gone
    return Change(rule, show_path(path), kind, message, short(old), short(new))


def gap_change(
    rule: Rule,
    gap: SchemaGap,
    section: str,
    it: str,
    *,
    widened: bool = False,
    doubt: str = "",
) -> Change:
    """Return the change of one place where a schema accepts less, or more; `it` names the place."""
    kind = ChangeKind.CHANGED
    if gap.keyword == "dropped":
        kind = ChangeKind.ADDED if widened else ChangeKind.REMOVED
    path = f"{section}.{gap.path}" if gap.path else section
    before, after = map(short, gap.values(widened=widened))
    return Change(rule, path, kind, gap.words(it, widened=widened) + doubt, before, after)


def short(value: object) -> str | None:
    """Return a value as changes show it."""
    return None if value is None else show(value)


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over the fields with another value, each with both values; None is a missing one."""
    for field in dict.fromkeys([*old, *new]):
        before, after = old.get(field), new.get(field)
        if not same(before, after):
            yield field, before, after


def reworded(old: object, new: object) -> Iterator[tuple[Path, Any, Any]]:
    """Iterate over the annotations that changed at places that both schemas have."""
    before = dict(walk(old))
    for path, part in walk(new):
        if isinstance(part, dict) and isinstance(was := before.get(path), dict):
            for word, *values in changed(_annotations(was), _annotations(part)):
                yield ((*path, word), *values)


def _annotations(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the annotations of a schema; under `properties` these words are names."""
    words = ANNOTATIONS - {"$id"}
    return {x: y for x, y in schema.items() if x in words and not isinstance(y, dict)}


def only(these: Iterable[Any], those: Iterable[Any]) -> list[Any]:
    """Return the items of `these` that are not in `those`, once each, in order."""
    known = set(those)
    return [x for x in dict.fromkeys(these) if x not in known]
