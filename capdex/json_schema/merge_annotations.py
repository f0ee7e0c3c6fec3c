"""`x-crdt` and `x-asm`: how replicas of state merge, said inside a schema (NIP-7, state.update)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from capdex.diagnostics import Findings, Path, show
from capdex.problems import Reason

STRATEGIES: Final = (
    *("lww_register", "mv_register", "rga_text", "grow_only_set", "or_map"),
    *("counter", "flag", "log_rga"),
)
CONTAINERS: Final = ("object", "map", "list", "log")
MARKS: Final = ("x-crdt", "x-asm")

_KNOWN: Final = {"container": CONTAINERS, "": (*STRATEGIES, *CONTAINERS)}


def check_mark(value: Any, path: Path, findings: Findings) -> None:
    """Flag words that no runtime knows; they never refuse a package.

    The value is a word, or a mapping whose `container` is a container and whose `type`, `crdt` or
    `strategy` a strategy.
    """
    for key, word, known in _words(value):
        if word not in known:
            there = f"there are {', '.join(known)}"
            hint = findings.suggest(word, known) if isinstance(word, str) else ""
            at = (*path, key) if key else path
            message = f"{show(word)} is no way to merge; {there}"
            findings.warn(Reason.BAD_SCHEMA, at, message, hint=hint or there)


def _words(value: Any) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    if not isinstance(value, dict):
        yield "", value, _KNOWN[""]
        return
    for key in ("container", "type", "crdt", "strategy"):
        if key in value:
            yield key, value[key], _KNOWN.get(key, _KNOWN[""])
