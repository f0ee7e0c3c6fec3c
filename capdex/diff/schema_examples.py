"""Values near the limits of schemas, among which a comparison looks for an example."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from capdex.json_schema.subschema import Effort, Schema, accepts

MAX_CANDIDATES: Final = 200  # for an example of one place
MAX_LEVELS: Final = 60  # of values inside a value, well within Python's recursion limit
MAX_SIZE: Final = 300  # characters or items of an example


def samples(old: Schema, new: Schema, effort: Effort, level: int = 0) -> Iterator[Any]:
    """Iterate over values near the limits of two schemas."""
    if level > MAX_LEVELS or next(effort, None) is None:
        return
    both = [x.value for x in (old, new) if isinstance(x.value, dict)]
    limits = {limit for part in both for limit in part.values() if type(limit) in (int, float)}
    numbers = sorted({0, 1, 2, 0.5, *(x + step for x in limits for step in (-1, -0.5, 0, 0.5, 1))})
    sizes = [int(x) for x in numbers if 0 <= x <= MAX_SIZE and x == int(x)]
    yield from old.listed() or ()
    yield from (None, False, True, *numbers, *("a" * size for size in sizes))
    yield {x: sample(old.property(x), effort, level) for x in old.get("required", ())}
    item = sample(old.item(0), effort, level)
    yield from ([item] * size for size in sizes)


def sample(schema: Schema, effort: Effort, level: int = 0) -> Any:
    """Return a value that a schema accepts; None if none is found."""
    schema = schema.resolved()[0]
    values = islice(samples(schema, schema, effort, level + 1), MAX_CANDIDATES)
    return next((x for x in values if accepts(schema, x, effort)), None)


def holding(schema: Schema, step: str | int | None, value: object, effort: Effort) -> Any:
    """Return a value that holds another one under a name, or at an index; None: that one."""
    if step is None:
        return value
    if isinstance(step, int):
        return [value] * max(step + 1, min(MAX_SIZE, int(schema.get("minItems", 0))))
    return {x: sample(schema.property(x), effort) for x in schema.get("required", ())} | {
        step: value
    }
