"""Filters of `state.query`: an own subset of Mongo's, bounded and linear. Pure.

As in Mongo, a condition on an array holds if it holds for the array or for one of its items, a path
goes through the objects of an array, and `null` also matches a missing field. `$contains` (NIP-8)
holds for an array with an item, and a text with a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import re2

from capdex.errors import Code, InvalidInput
from capdex_router.state.values import equal

MAX_CONDITIONS: Final = 128
MAX_CHOICES: Final = 256  # of $in, $nin and $all
MAX_FILTER_DEPTH: Final = 8
MAX_PATTERN_BYTES: Final = 512
MAX_PATTERN_MEMORY_BYTES: Final = 1024 * 1024
MAX_PATH_CHARS: Final = 256
MAX_STEPS: Final = 16
MAX_COMPARED: Final = 16_000_000  # values, by one query: some seconds

Holds = Callable[[Any], bool]
_Test = Callable[[Sequence[Any]], bool]  # of all values at a path
_Sized = TypeVar("_Sized", dict[str, Any], list[Any], tuple[Any, ...])
_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda x: isinstance(x, str),
    "number": lambda x: isinstance(x, int | float) and not isinstance(x, bool),
    "integer": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "boolean": lambda x: isinstance(x, bool),
    "null": lambda x: x is None,
    "array": lambda x: isinstance(x, list),
    "object": lambda x: isinstance(x, dict),
}
_OPERATORS: Final = (
    "$eq $ne $gt $gte $lt $lte $in $nin $all $size $exists $type $elemMatch $not $regex $contains"
)
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$gt": lambda x, y: x > y,
    "$gte": lambda x, y: x >= y,
    "$lt": lambda x, y: x < y,
    "$lte": lambda x, y: x <= y,
}


def compiled(where: object) -> Holds:
    """Return the predicate of a filter; raises InvalidInput for anything that it does not have.

    The predicate is for one query: it raises InvalidInput TOO_LARGE beyond MAX_COMPARED values.
    """
    return _Compiler().filter(where, MAX_FILTER_DEPTH)


class _Compiler:
    def __init__(self) -> None:
        self._left = MAX_CONDITIONS
        self._values_left = MAX_COMPARED

    def filter(self, where: object, depth: int) -> Holds:
        if not isinstance(where, dict):
            raise _wrong("it is not an object")
        if depth == 0:
            raise _wrong(f"it is nested deeper than {MAX_FILTER_DEPTH} levels", Code.TOO_LARGE)
        conditions = [self._condition(key, value, depth) for key, value in where.items()]
        if len(conditions) == 1:
            return conditions[0]
        return lambda value: all(holds(value) for holds in conditions)

    def _condition(self, key: str, value: object, depth: int) -> Holds:
        self._count()
        if key in ("$and", "$or", "$nor"):
            if not isinstance(value, list) or not value:
                raise _wrong(f"{key} takes a list of filters")
            inner = [self.filter(item, depth - 1) for item in value]
            if key == "$and":
                return lambda x: all(holds(x) for holds in inner)
            wanted = key == "$or"
            return lambda x: any(holds(x) for holds in inner) is wanted
        if key.startswith("$"):
            raise _wrong(f"{key[:32]!r} stands where a field, $and, $or or $nor must stand")
        steps = path(key)
        test = self._test(value, depth)
        if len(steps) == 1:
            name = steps[0]
            return lambda x: test((x[name],) if isinstance(x, dict) and name in x else ())
        return lambda x: test(self._spent(tuple(reached(x, steps))))

    def _test(self, value: object, depth: int) -> _Test:
        if not isinstance(value, dict) or not any(key.startswith("$") for key in value):
            return self._any(_equals(value), missing=value is None)
        tests = [self._operator(key, item, depth) for key, item in value.items()]
        return tests[0] if len(tests) == 1 else lambda values: all(test(values) for test in tests)

    def _operator(self, name: str, value: Any, depth: int) -> _Test:
        self._count()
        match name:
            case "$eq":
                return self._any(_equals(value), missing=value is None)
            case "$ne":
                return _not(self._any(_equals(value), missing=value is None))
            case "$gt" | "$gte" | "$lt" | "$lte":
                return self._any(_ordered(name, value))
            case "$in" | "$nin":
                test = self._any(self._one_of(_choices(name, value)), missing=None in value)
                return test if name == "$in" else _not(test)
            case "$all":
                tests = [self._any(_equals(item)) for item in _choices(name, value)]
                return lambda values: bool(tests) and all(test(values) for test in tests)
            case "$size":
                if not _TYPES["integer"](value):
                    raise _wrong("$size takes a whole number")
                return lambda values: any(isinstance(x, list) and len(x) == value for x in values)
            case "$exists":
                if not isinstance(value, bool):
                    raise _wrong("$exists takes true or false")
                return lambda values: bool(values) is value
            case "$type":
                if not isinstance(value, str) or value not in _TYPES:
                    raise _wrong(f"$type takes one of {', '.join(_TYPES)}")
                is_type = _TYPES[value]
                return lambda values: any(is_type(x) for x in values)
            case "$elemMatch":
                return self._element(value, depth)
            case "$not":
                if not isinstance(value, dict) or depth == 0:
                    raise _wrong("$not takes operators")
                return _not(self._test(value, depth - 1))
            case "$regex":
                return self._any(_matches(value))
            case "$contains":
                return self._contains(value)
            case _:
                raise _wrong(f"{name[:32]!r} is none of {_OPERATORS}")

    def _element(self, value: object, depth: int) -> _Test:
        if not isinstance(value, dict) or depth == 0:
            raise _wrong("$elemMatch takes a filter or operators")
        if any(key.startswith("$") and key not in ("$and", "$or", "$nor") for key in value):
            test = self._test(value, depth - 1)
            return self._has_item(lambda item: test((item,)))
        holds = self.filter(value, depth - 1)
        return self._has_item(lambda item: isinstance(item, dict) and holds(item))

    def _has_item(self, holds: Holds) -> _Test:
        """Return the test that is true for an array with an item for which `holds` is."""
        return lambda values: any(
            holds(item)
            for array in values
            if isinstance(array, list)
            for item in self._spent(array)
        )

    def _any(self, holds: Holds, *, missing: bool = False) -> _Test:
        def test(values: Sequence[Any]) -> bool:
            for value in values:
                if holds(value):
                    return True
                if isinstance(value, list) and any(map(holds, self._spent(value))):
                    return True
            return missing and not values

        return test

    def _one_of(self, choices: list[Any]) -> Holds:
        wanted = frozenset(map(self._key, choices))
        nested = any(isinstance(item, dict | list) for item in choices)
        return lambda value: (
            (nested or not isinstance(value, dict | list)) and self._key(value) in wanted
        )

    def _key(self, value: Any) -> Any:
        """Return what is the same for equal values alone, and can be in a set."""
        match value:
            case dict():
                items = self._spent(value).items()
                return dict, frozenset((key, self._key(item)) for key, item in items)
            case list():
                return list, tuple(map(self._key, self._spent(value)))
            case bool():
                return bool, value
            case _:
                return value

    def _contains(self, wanted: object) -> _Test:
        has_item = self._has_item(lambda item: equal(item, wanted))
        if not isinstance(wanted, str):
            return has_item
        return lambda values: (
            any(isinstance(x, str) and wanted in x for x in values) or has_item(values)
        )

    def _spent(self, values: _Sized) -> _Sized:
        self._values_left -= len(values)
        if self._values_left < 0:
            why = f"it compares more than {MAX_COMPARED} values of objects"
            raise _wrong(why, Code.TOO_LARGE)
        return values

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _wrong(f"it has more than {MAX_CONDITIONS} conditions", Code.TOO_LARGE)


def path(text: object) -> list[str]:
    """Return the steps of a field's path, which dots divide; raises InvalidInput."""
    if not isinstance(text, str) or len(text) > MAX_PATH_CHARS:
        raise _wrong(f"a field is named by a text of at most {MAX_PATH_CHARS} characters")
    steps = text.split(".")
    if len(steps) > MAX_STEPS:
        raise _wrong(f"a path has at most {MAX_STEPS} steps", Code.TOO_LARGE)
    return steps


def reached(value: object, steps: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path; it goes through the items of arrays."""
    if not steps:
        yield value
    elif isinstance(value, dict):
        if steps[0] in value:
            yield from reached(value[steps[0]], steps[1:])
    elif isinstance(value, list):
        if steps[0].isascii() and steps[0].isdigit() and int(steps[0][:9]) < len(value):
            yield from reached(value[int(steps[0][:9])], steps[1:])
        for item in value:
            if isinstance(item, dict):
                yield from reached(item, steps)


def _not(test: _Test) -> _Test:
    return lambda values: not test(values)


def _equals(wanted: object) -> Holds:
    if isinstance(wanted, str):
        return lambda value: bool(value == wanted)
    return lambda value: equal(value, wanted)


def _ordered(name: str, wanted: object) -> Holds:
    order = _ORDERS[name]
    for kind in ("string", "number"):
        if _TYPES[kind](wanted):
            same = _TYPES[kind]
            return lambda value: same(value) and order(value, wanted)
    raise _wrong(f"{name} takes a number or a text")


def _choices(name: str, value: object) -> list[Any]:
    if not isinstance(value, list) or len(value) > MAX_CHOICES:
        raise _wrong(f"{name} takes a list of at most {MAX_CHOICES} values")
    return value


def _matches(pattern: object) -> Holds:
    if not isinstance(pattern, str):
        raise _wrong("$regex takes a pattern")
    options = re2.Options()
    options.max_mem = MAX_PATTERN_MEMORY_BYTES
    options.log_errors = False
    try:
        if len(pattern.encode("utf-8")) > MAX_PATTERN_BYTES:
            raise _wrong(f"a pattern has at most {MAX_PATTERN_BYTES} bytes", Code.TOO_LARGE)
        search = re2.compile(pattern, options).search
    except (re2.error, UnicodeEncodeError):
        raise _wrong(f"{pattern[:64]!r} is not an RE2 pattern") from None
    return lambda value: isinstance(value, str) and search(value) is not None


def _wrong(why: str, code: Code = Code.INVALID_INPUT) -> InvalidInput:
    return InvalidInput(
        "the filter cannot be used",
        code,
        why=why,
        fix='write it as in {"field": {"$gte": 1}} or {"field": {"$regex": "(?i)in any case"}}',
    )
