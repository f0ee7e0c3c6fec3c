"""The containers of fields: what is shown of each, and what may be written to it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex_router.state.strategies import Strategy
from capdex_router.state.values import canonical

MAX_COUNT: Final = 2**53
MISSING: Final = object()
EMPTY: Final[dict[Strategy, Any]] = {
    Strategy.RGA_TEXT: "",
    Strategy.GROW_ONLY_SET: [],
    Strategy.OR_MAP: {},
    Strategy.COUNTER: 0,
    Strategy.FLAG: False,
    Strategy.LOG_RGA: [],
}


def values(root: Any) -> Json:
    """Return the plain values of a map; containers in it are not of our making."""
    content: Json = root.get_value()
    return {key: value for key, value in content.items() if isinstance(value, str | int | float)}


def text(value: object) -> str:
    """Return the canonical JSON of a value, as containers hold it."""
    return canonical(value).decode("utf-8")


def parsed(held: Any) -> Any:
    """Return the value of such a text; MISSING for what is none."""
    try:
        return orjson.loads(held)
    except (orjson.JSONDecodeError, TypeError):
        return MISSING


def entries(root: object) -> list[tuple[str, str, str]]:
    """Return key, dot and name of each entry of an or_map, sorted."""
    triples = []
    for name in values(root):
        match parsed(name):
            case [str() as key, str() as dot]:
                triples.append((key, dot, name))
    return sorted(triples)


def splice(root: Any, before: str, after: str) -> None:
    """Change a text by one splice between its common start and end; places are code points."""
    most = min(len(before), len(after))
    start = next((i for i in range(most) if before[i] != after[i]), most)
    rest = most - start
    end = next((i for i in range(rest) if before[-1 - i] != after[-1 - i]), rest)
    if removed := len(before) - start - end:
        root.delete(start, removed)
    if added := after[start : len(after) - end]:
        root.insert(start, added)


def check(name: str, strategy: Strategy, before: Any, after: Any) -> None:
    """Raise InvalidInput for a change that a strategy does not have."""
    type_ = type(EMPTY[strategy])
    if not isinstance(after, type_) or (type_ is int and isinstance(after, bool)):
        kind = {str: "text", list: "array", dict: "object", int: "integer", bool: "boolean"}[type_]
        raise _refused(name, strategy, f"its value is to be of the type {kind}")
    if strategy is Strategy.GROW_ONLY_SET and not {*map(text, before)} <= {*map(text, after)}:
        raise _refused(name, strategy, "nothing is removed from it")
    if strategy is Strategy.LOG_RGA:
        kept = after[: len(before)]
        if [*map(text, kept)] != [*map(text, before)]:
            raise _refused(name, strategy, "it is appended to; nothing in it is edited or removed")


def count(value: int) -> int:
    """Return a sum; raises InvalidInput beyond what every reader of JSON takes for a number."""
    if abs(value) > MAX_COUNT:
        raise InvalidInput(
            f"a counter goes to {MAX_COUNT}", fix="count in smaller steps, or begin another counter"
        )
    return value


def _refused(name: str, strategy: Strategy, why: str) -> InvalidInput:
    return InvalidInput(
        f"the field {name[:64]!r} cannot be changed so",
        why=f"{strategy}: {why}",
        fix="change it as its x-crdt in the schema allows, or leave it as it is",
    )


# What is shown of a root, by strategy. ----------------------------------------------------------


def _known(held: Iterable[Any]) -> list[Any]:
    return [value for value in map(parsed, held) if value is not MISSING]


def _mv(root: object) -> Any:
    dots = values(root)
    return next(iter(_known(dots[dot] for dot in sorted(dots))), MISSING)


def _map(root: object) -> Json:
    merged: Json = {}
    held = values(root)
    for key, _, name in entries(root):
        value = parsed(held[name])
        if value is not MISSING:
            merged.setdefault(key, value)
    return merged


def _total(root: object) -> int:
    return sum(x for x in values(root).values() if isinstance(x, int) and abs(x) <= MAX_COUNT)


SHOWN: Final[dict[Strategy, Callable[[Any], Any]]] = {
    Strategy.MV_REGISTER: _mv,
    Strategy.RGA_TEXT: lambda root: root.to_string(),
    Strategy.GROW_ONLY_SET: lambda root: _known(sorted(values(root))),
    Strategy.OR_MAP: _map,
    Strategy.COUNTER: _total,
    Strategy.FLAG: lambda root: bool(values(root)),
    Strategy.LOG_RGA: lambda root: _known(root.get_value()),
}
