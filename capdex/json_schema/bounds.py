"""Bounds on the work of validation: how often a schema looks at one place of a value. Pure.

A schema of forty subschemas can look at one place a quarter of a million times, since references
multiply: `anyOf` of twice the same reference, eighteen times in a row, took half a minute. So a
schema is counted before it is used, without any value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import orjson

from capdex.errors import InvalidInput
from capdex.json import Json, levels, list_of, object_of
from capdex.json_schema.schema import at_pointer, pointer_steps

MAX_PARTS: Final = 1_000  # objects and lists of a schema
MAX_SCHEMA_BYTES: Final = 256 * 1024
MAX_EVALUATIONS: Final = 1_000  # of subschemas at one place of a value
MAX_WORK: Final = 200_000  # of counting: subschemas times places below, of places that differ
MAX_DEPTH: Final = 64  # of values
MAX_NODES: Final = 500_000  # of values

# Keywords of JSON Schema 2020-12 whose schemas judge the same place (Core, 10.2).
_SAME: Final = ("not", "if", "then", "else")
_SAME_LISTS: Final = ("allOf", "anyOf", "oneOf")
_REFERENCES: Final = ("$ref", "$dynamicRef")
_UNEVALUATED: Final = ("unevaluatedItems", "unevaluatedProperties")
NO_INPUT_HELPS: Final = "no input helps: its author must change it, so use another capability"


def evaluations_of(schema: Json, size: int) -> int:
    """Return at most how many subschemas of a schema of a tool judge one place of a value.

    `size` is its bytes as JSON. Raises InvalidInput for a schema that no router uses, since it is
    too large or too complex.
    """
    parts = (part for level in levels(schema) for part in level if isinstance(part, dict | list))
    if size > MAX_SCHEMA_BYTES or len(list(islice(parts, MAX_PARTS + 1))) > MAX_PARTS:
        raise InvalidInput("the schema is too large to be used", fix=NO_INPUT_HELPS)
    return evaluations(schema)


def evaluations(schema: Json) -> int:
    """Return at most how many subschemas judge one place of a value.

    Raises InvalidInput if that is more than MAX_EVALUATIONS, as it is for a schema that refers to
    itself at the same place.
    """
    graph = _Graph(schema)
    start = _State({graph.root: 1}.items())
    seen, waiting = {start}, [start]
    worst = work = 0
    while waiting:
        judged = _closed(graph, waiting.pop())
        worst = max(worst, judged.total())
        places = {place for number in judged for place in graph.places(number)}
        work += len(judged) * len(places)
        if work > MAX_WORK:
            raise _too_complex("its parts meet in too many ways")
        for state in _below(graph, judged, places):
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    return worst


def unusable(schema: Json) -> str:
    """Return the reason why no router uses a schema, empty if they do."""
    try:
        evaluations_of(schema, len(orjson.dumps(schema)))
    except InvalidInput as error:
        return error.line
    return ""


def measure(value: object) -> int:
    """Return how many values a JSON value has; raises InvalidInput for one too deep or large."""
    count = 0
    for depth, level in enumerate(levels(value)):
        count += len(level)
        if count > MAX_NODES:
            raise InvalidInput(f"the value has more than {MAX_NODES} values in it")
        if depth == MAX_DEPTH:
            raise InvalidInput(f"the value is nested deeper than {MAX_DEPTH} levels")
    return count


# The subschemas that judge a place, by number, each with how often it does.
_State = frozenset[tuple[int, int]]
# The name of a member, the index of an item or None for any other, and `member`, `item` or `name`.
_Place = tuple[str | int | None, str]


class _Graph:
    """The subschemas of a schema by number, and which of them judge what."""

    def __init__(self, schema: Json) -> None:
        self._numbers: dict[int, int] = {}
        self._schemas: list[Json] = []
        self._same: dict[int, list[int]] = {}
        self._roots = [schema]  # whatever has an `$id`: a reference is counted in each of them
        self._anchors: dict[str, list[Json]] = {}
        waiting: list[Any] = [schema]
        seen: set[int] = set()  # values that a program made may be shared
        while waiting:
            part = waiting.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            if isinstance(part, list):
                waiting += part
            elif isinstance(part, dict):
                if isinstance(part.get("$id"), str) and part is not schema:
                    self._roots.append(part)
                for word in ("$anchor", "$dynamicAnchor"):
                    if isinstance(part.get(word), str):
                        self._anchors.setdefault(part[word], []).append(part)
                waiting += part.values()
        self.root = self._number(schema)

    def same(self, number: int) -> list[int]:
        """Return the subschemas that judge the same place as one of them does."""
        if number not in self._same:
            schema = self._schemas[number]
            numbers = [self._number(subschema) for subschema in self._of_same_place(schema)]
            # These ask all others beside them again for what they have judged.
            asks = sum(word in schema for word in _UNEVALUATED)
            self._same[number] = numbers * (1 + asks)
        return self._same[number]

    def below(self, number: int, place: str | int | None, kind: str) -> Iterator[int]:
        """Yield the subschemas that judge a place below: a member, an item or a name.

        `place` is the name of a member or the index of an item, None for one that is not named.
        """
        schema = self._schemas[number]
        for subschema in _judging(schema, place, kind):
            if isinstance(subschema, dict):
                yield self._number(subschema)

    def places(self, number: int) -> Iterator[_Place]:
        """Yield the places below that a subschema tells from one another, each with its kind."""
        schema = self._schemas[number]
        yield from ((name, "member") for name in _members(schema))
        yield from ((index, "item") for index in range(len(_first_items(schema))))
        yield from ((None, kind) for kind in ("member", "item", "name"))

    def _of_same_place(self, schema: Json) -> Iterator[Json]:
        inner: list[Any] = [schema.get(word) for word in _SAME]
        for word in _SAME_LISTS:
            inner += list_of(schema.get(word))
        inner += object_of(schema.get("dependentSchemas")).values()
        for word in _REFERENCES:
            if isinstance(schema.get(word), str):
                inner += self._referred(schema[word])
        for subschema in inner:
            if isinstance(subschema, dict):
                yield subschema

    def _referred(self, reference: str) -> Iterator[Any]:
        """Yield all that a reference may mean; one that leaves the schema is refused elsewhere."""
        url, _, fragment = reference.partition("#")
        if url and not any("$id" in root for root in self._roots):
            return
        if fragment and not fragment.startswith("/"):
            yield from self._anchors.get(fragment, ())
            return
        steps = pointer_steps(f"#{fragment}") or []
        for root in self._roots:
            yield at_pointer(root, steps)[1]

    def _number(self, schema: Json) -> int:
        number = self._numbers.setdefault(id(schema), len(self._schemas))
        if number == len(self._schemas):
            self._schemas.append(schema)
        return number


def _closed(graph: _Graph, state: _State) -> Counter[int]:
    """Return how often each subschema judges a place that those of a state judge."""
    judged: Counter[int] = Counter()
    level = Counter(dict(state))
    while level:
        judged.update(level)
        if judged.total() > MAX_EVALUATIONS:
            raise _too_complex(f"more than {MAX_EVALUATIONS} of its parts may judge one place")
        further: Counter[int] = Counter()
        for number, times in level.items():
            for other in graph.same(number):
                further[other] += times
        level = further
    return judged


def _below(graph: _Graph, judged: Counter[int], places: Iterable[_Place]) -> Iterator[_State]:
    """Yield what judges each of the places below."""
    for place, kind in places:
        judging: Counter[int] = Counter()
        for number, times in judged.items():
            for other in graph.below(number, place, kind):
                judging[other] += times
        if judging:
            yield _State(judging.items())


def _judging(schema: Json, place: str | int | None, kind: str) -> Iterator[Any]:
    """Yield the values of the keywords of a schema that judge a place below (Core, 10.3)."""
    if kind == "name":
        yield schema.get("propertyNames")
    elif kind == "member":
        yield from object_of(schema.get("patternProperties")).values()
        members = _members(schema)
        if place in members:
            yield members[place]
        else:
            yield schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    else:
        first = _first_items(schema)
        yield schema.get("contains")
        if isinstance(place, int) and place < len(first):
            yield first[place]
        else:
            yield schema.get("items", schema.get("unevaluatedItems"))


def _members(schema: Json) -> dict[Any, Any]:
    return object_of(schema.get("properties"))


def _first_items(schema: Json) -> list[Any]:
    return list_of(schema.get("prefixItems"))


def _too_complex(why: str) -> InvalidInput:
    return InvalidInput(
        "the schema is too complex to be used",
        why=why,
        fix="refer to a part only once in allOf, anyOf and oneOf",
    )
