"""Collect the problems of one file, each with its path and its line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final, TypeAlias

from capdex.problems import Problem, Reason, Severity

Path: TypeAlias = tuple[str | int, ...]
LineColumn: TypeAlias = tuple[int, int]

MAX_PROBLEMS = 100  # errors, and as many warnings and notes: more are of no use in one report
MAX_SUGGESTIONS = 50  # a file: comparing words costs time
MAX_CHOICE = 100  # words compared for one suggestion
MAX_SHOWN_CHARS = 60  # of a hostile key or value inside a message

TYPE_NAMES: Final[dict[type, str]] = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
}

_BARE_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*", re.ASCII)


def type_name(value: object) -> str:
    """Name the type of a YAML or JSON value in a package author's words."""
    return TYPE_NAMES[type(value)]


def show(value: object) -> str:
    """Return `value` as a message quotes it: JSON, short, and escaped where not printable."""
    text = json.dumps(value, ensure_ascii=False, default=ascii)
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 1] + "…"


def show_change(old: object, new: object) -> str:
    """Return `was a, is b` for short values; None is a missing one, and long ones only changed."""
    long = any(isinstance(x, dict) or show(x).endswith("…") for x in (old, new))
    if old is None:
        return "is new" if long else f"is new: {show(new)}"
    if new is None:
        return "is gone"
    return "changed" if long else f"was {show(old)}, is {show(new)}"


def show_path(path: Path) -> str:
    """A path as problems write it: `tools[2].function.parameters`; empty for the whole file."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif len(step) <= MAX_SHOWN_CHARS and _BARE_KEY.fullmatch(step):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{show(step)}]")
    return "".join(parts)


def walk(value: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Iterate over a JSON-able value and all values in it, in order, each with its path."""
    ahead = [(path, value)]
    while ahead:
        at, inner = ahead.pop()
        yield at, inner
        if isinstance(inner, dict):
            ahead += [((*at, key), item) for key, item in reversed(inner.items())]
        elif isinstance(inner, list):
            ahead += [((*at, i), item) for i, item in reversed(list(enumerate(inner)))]


class Findings:
    """Problems found so far. A place comes from `mark`, of the path or its nearest ancestor."""

    def __init__(self, mark: Callable[[Path], LineColumn | None] = lambda _: None) -> None:
        self._mark = mark
        self._errors: list[Problem] = []
        self._others: list[Problem] = []
        self._suggestions = 0

    def place(self, path: Path) -> LineColumn:
        """Line and column of the value at `path`, or of the nearest value around it."""
        while (mark := self._mark(path)) is None and path:
            path = path[:-1]
        return mark or (1, 1)

    def error(
        self, code: Reason, path: Path, message: str, hint: str = "", at: LineColumn | None = None
    ) -> None:
        """Add a problem that refuses the package."""
        self._add(Severity.ERROR, code, path, message, hint, at)

    def warn(self, code: Reason, path: Path, message: str, hint: str = "") -> None:
        """Add a problem that people should see and that refuses nothing."""
        self._add(Severity.WARNING, code, path, message, hint, None)

    def note(
        self, code: Reason, path: Path, message: str, hint: str = "", at: LineColumn | None = None
    ) -> None:
        """Add something worth knowing."""
        self._add(Severity.NOTE, code, path, message, hint, at)

    def suggest(self, word: str, known: Iterable[str]) -> str:
        """A hint naming the nearest known word, or nothing where none is near."""
        self._suggestions += 1
        if self._suggestions > MAX_SUGGESTIONS:
            return ""
        choice = [x for x in islice(known, MAX_CHOICE) if len(x) <= MAX_SHOWN_CHARS]
        near = get_close_matches(word[:MAX_SHOWN_CHARS], choice, n=1, cutoff=0.7)
        return f"did you mean {near[0]}?" if near else ""

    def extend(self, problems: Sequence[Problem]) -> None:
        """Add problems that have their places already."""
        for problem in problems:
            self._keep(problem)

    @property
    def failed(self) -> bool:
        """True if there is an error."""
        return bool(self._errors)

    def problems(self) -> tuple[Problem, ...]:
        """All problems in the order of the file."""
        return tuple(sorted([*self._errors, *self._others], key=lambda x: (x.line, x.column)))

    def _add(
        self,
        severity: Severity,
        code: Reason,
        path: Path,
        message: str,
        hint: str,
        at: LineColumn | None,
    ) -> None:
        line, column = at or self.place(path)
        self._keep(Problem(code, show_path(path), message, line, column, severity, hint))

    def _keep(self, problem: Problem) -> None:
        kept = self._errors if problem.severity is Severity.ERROR else self._others
        if len(kept) < MAX_PROBLEMS:
            kept.append(problem)
