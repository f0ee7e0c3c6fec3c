"""Proving that a JSON Schema takes every value that others take (2020-12), or finding the gaps.

Each keyword of the target is proved from what the sources say for certain (`capdex.diff.facts`);
where
that fails, the sources are split into alternatives that are proved one by one. Sound, and not
complete: a gap may only mean that no proof was found. Bounded in steps and depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from capdex.diff.assertions import ARRAYS, ASSERTIONS, OBJECTS, prove
from capdex.diff.facts import Conjunction, Node
from capdex.diff.gap import UNDECIDED, Gap, Place
from capdex.diff.likeness import ANNOTATIONS, Likeness
from capdex.diff.mentions import mentions
from capdex.json_schema.keywords import KEYWORDS
from capdex.json_schema.merge_annotations import MARKS
from capdex.json_schema.values import KINDS, frozen, matches

MAX_STEPS: Final = 10_000  # of two packages, both ways: a few seconds at the worst
MAX_LEVELS: Final = 80  # of recursion, well within Python's own
MAX_SPLIT: Final = 256  # values looked at one by one

# Read elsewhere: with the keywords that they belong to, or not at all.
_SILENT: Final = ANNOTATIONS | ASSERTIONS | {"then", "else", "minContains", "maxContains"}


class Reading(Enum):
    """What counts beside validity."""

    VALIDITY = auto()  # nothing; properties that no schema names may have been written as well
    CALLS = auto()  # the names of a tool's parameters
    STATE = auto()  # names, and how replicas merge


@dataclass(slots=True)
class Effort:
    """What proofs may still cost, in steps; several can share it."""

    left: int = MAX_STEPS

    def spend(self, a: Conjunction) -> bool:
        """Pay for one step about `a`; False when nothing is left."""
        self.left -= 1 + (len(a.parts) + len(a.values or ())) // 8 if self.left > 0 else 1
        return self.left >= 0


class Inclusion:
    """One proof that schemas are included in another one, with the gaps in it."""

    def __init__(self, reading: Reading, effort: Effort) -> None:
        self._reading = reading
        self._effort = effort
        self._alike = Likeness()
        self._depth = 0
        self._assumed: list[tuple[frozenset[int], frozenset[str], int, int]] = []

    def value(self, a: Conjunction, b: Node, place: Place) -> list[Gap]:
        """Where `b` does not take all that `a` does, at the place of one value."""
        return self._judged(a, b, place, value=True)

    def _names_and_marks(self, a: Conjunction, b: Node, place: Place) -> Iterable[Gap]:
        if self._reading is Reading.VALIDITY:
            return
        before, after = mentions(*a.nodes), mentions(b)
        if "object" in a.types and (after.named or not place.path):
            for name in before.names:
                if not (after.covers(name) or (after.open and place.path)):
                    yield Gap(place.named(name).path, "dropped", name)
        if self._reading is Reading.STATE:
            for mark in MARKS:
                pair = before.marks.get(mark), after.marks.get(mark)
                if frozen(pair[0]) != frozen(pair[1]):
                    yield Gap(place.path, mark, *pair)

    def _schema(self, a: Conjunction, b: Node, place: Place) -> list[Gap]:
        """As `value`, for schemas about the same value, or where names do not matter."""
        return self._judged(a, b, place, value=False)

    def _judged(self, a: Conjunction, b: Node, place: Place, *, value: bool) -> list[Gap]:
        if b.schema is True:
            return []
        if self._depth >= MAX_LEVELS or not self._effort.spend(a):
            return [Gap(place.path, UNDECIDED)]
        if a.impossible or self._alike.holds(b, a.parts):
            return []
        if b.schema is False:
            return [Gap(place.path, "false")]
        said = list(self._names_and_marks(a, b, place)) if value else []
        self._depth += 1
        found = self._keywords(a, b, place)
        if found:
            found = self._taken_apart(a, b, place, found)
        self._depth -= 1
        return said + found

    def _keywords(self, a: Conjunction, b: Node, place: Place) -> list[Gap]:
        found: list[Gap] = []
        for keyword, value in b.schema.items():  # the value itself first, then what is inside it
            if keyword in ASSERTIONS:
                found += prove(a, keyword, value, place)
        for keyword, value in b.schema.items():
            if keyword in _APPLICATORS:
                kinds, rule = _APPLICATORS[keyword]
                if kinds & a.types:
                    found += rule(self, a, b, value, place)
            elif keyword in KEYWORDS and keyword not in _SILENT:
                found.append(Gap(place.path, keyword, None, value, decided=False))
        return found

    def _taken_apart(self, a: Conjunction, b: Node, place: Place, found: list[Gap]) -> list[Gap]:
        """The gaps left when `a` is split, if it can be, else those `found` before."""
        split = _split(a, b)
        if split is None:
            return found
        for part in split.parts:
            inner = self._schema(part, b, place)
            if inner:
                return inner if split.telling else found
        return []

    # references and combinations ----------------------------------------------------------------

    def _reference(self, a: Conjunction, b: Node, value: str, place: Place) -> list[Gap]:
        target = b.resolve(value)
        if target is None:
            return [Gap(place.path, "$ref", None, value, decided=False)]
        claim = frozenset(id(node.schema) for node in a.nodes), a.only, id(target.schema)
        for *assumed, level in self._assumed:
            if (*assumed,) == claim:
                # Proved for every smaller value, it holds for this one: values are finite.
                return [] if level < place.level else [Gap(place.path, UNDECIDED)]
        self._assumed.append((*claim, place.level))
        found = self._schema(a, target, place)
        self._assumed.pop()
        return found

    def _all_of(self, a: Conjunction, b: Node, value: list[Any], place: Place) -> list[Gap]:
        return [gap for item in value for gap in self._schema(a, b.sub(item), place)]

    def _any_of(self, a: Conjunction, b: Node, value: list[Any], place: Place) -> list[Gap]:
        if any(not self._schema(a, b.sub(item), place) for item in value):
            return []
        return [Gap(place.path, "anyOf")]

    def _one_of(self, a: Conjunction, b: Node, value: list[Any], place: Place) -> list[Gap]:
        for i, item in enumerate(value):
            others = [b.sub(other) for j, other in enumerate(value) if j != i]
            if not self._schema(a, b.sub(item), place) and all(
                self._apart(a, other, place) for other in others
            ):
                return []
        return [Gap(place.path, "oneOf")]

    def _not(self, a: Conjunction, b: Node, value: Any, place: Place) -> list[Gap]:
        return [] if self._apart(a, b.sub(value), place) else [Gap(place.path, "not")]

    def _apart(self, a: Conjunction, x: Node, place: Place) -> bool:
        """Whether no value is taken by both, for certain."""
        if not self._effort.spend(a):
            return False
        other = Conjunction((x,), a.types)
        both = Conjunction((*a.nodes, x), a.only, a.spent)
        if x.schema is False or both.impossible:
            return True
        for part in a.parts:
            if part.get("not") is not None and not self._schema(
                other, part.sub(part.get("not")), place
            ):
                return True
        return both.types == {"object"} and any(
            both.property(name).impossible for name in both.required
        )

    def _if(self, a: Conjunction, b: Node, value: Any, place: Place) -> list[Gap]:
        condition = b.sub(value)
        then, else_ = (b.sub(b.schema.get(word, True)) for word in ("then", "else"))
        never = self._apart(a, condition, place)
        always = not self._schema(a, condition, place)
        met, unmet = a, a
        for part in a.parts:
            if "if" in part.schema and self._alike.holds(condition, [part.sub(part.get("if"))]):
                met = met.and_(part.sub(part.schema.get("then", True)))
                unmet = unmet.and_(part.sub(part.schema.get("else", True)))
        fine = (never or not self._schema(met.and_(condition), then, place)) and (
            always or not self._schema(unmet.and_(b.sub({"not": value})), else_, place)
        )
        return [] if fine else [Gap(place.path, "if")]

    # objects ------------------------------------------------------------------------------------

    def _properties(
        self, a: Conjunction, b: Node, value: dict[str, Any], place: Place
    ) -> list[Gap]:
        found: list[Gap] = []
        said = mentions(*a.nodes)
        # Where others are named and it is not, a property is taken never to have been written.
        telling = said.named and not said.open and a.values is None
        lenient = telling and self._reading is not Reading.VALIDITY
        for name, schema in value.items():
            if lenient and not said.covers(name) and name not in said.others:
                continue
            found += self.value(a.property(name), b.sub(schema), place.named(name))
        return found

    def _pattern_properties(
        self, a: Conjunction, b: Node, value: dict[str, Any], place: Place
    ) -> list[Gap]:
        found: list[Gap] = []
        for pattern, schema in value.items():
            node, at = b.sub(schema), place.named(f"/{pattern}/")
            if pattern in a.patterns and not self._schema(a.matching(pattern), node, at):
                continue
            for name in a.names if a.closed is None else a.closed:
                if matches(pattern, name) is not False:
                    found += self.value(a.property(name), node, place.named(name))
            for other in sorted(a.patterns):
                found += self.value(a.unnamed(other), node, at)
            if pattern not in a.patterns and a.closed is None:
                found += self.value(a.unnamed(), node, at)
        return found

    def _additional_properties(
        self, a: Conjunction, b: Node, value: Any, place: Place
    ) -> list[Gap]:
        node, found = b.sub(value), list[Gap]()
        named, patterns = b.get("properties") or {}, b.get("patternProperties") or {}
        for name in a.names if a.closed is None else a.closed:
            if name not in named and not any(matches(x, name) for x in patterns):
                found += self.value(a.property(name), node, place.named(name))
        for pattern in sorted(a.patterns - patterns.keys()):
            found += self.value(a.unnamed(pattern), node, place.named(f"/{pattern}/"))
        if a.closed is None and self._schema(a.unnamed(), node, place.within):
            found.append(Gap(place.path, "unnamed"))
        return found

    def _property_names(self, a: Conjunction, b: Node, value: Any, place: Place) -> list[Gap]:
        node, at = b.sub(value), place.within
        said = Conjunction(
            tuple(
                x.sub(x.get("propertyNames")) for x in a.parts if x.get("propertyNames") is not None
            ),
            frozenset(["string"]),
        )
        if a.closed is None:
            return self._schema(said, node, at)
        names = [said.and_(b.sub({"const": name})) for name in a.closed]
        return [gap for name in names for gap in self._schema(name, node, at)]

    def _dependencies(
        self, a: Conjunction, b: Node, value: dict[str, Any], place: Place
    ) -> list[Gap]:
        found: list[Gap] = []
        for name, needed in value.items():
            schema = {"required": needed} if isinstance(needed, list) else needed
            given = a.and_(b.sub({"required": [name]}))
            for listed in a.said("dependentRequired"):
                given = given.and_(b.sub({"required": listed.get(name, [])}))
            for part in a.parts:
                given = given.and_(part.sub((part.get("dependentSchemas") or {}).get(name, True)))
            if not a.property(name).impossible:
                found += self._schema(given, b.sub(schema), place)
        return found

    # arrays -------------------------------------------------------------------------------------

    def _prefix_items(self, a: Conjunction, b: Node, value: list[Any], place: Place) -> list[Gap]:
        found: list[Gap] = []
        for i, schema in enumerate(value):
            if i < a.most_items:
                found += self.value(a.item(i), b.sub(schema), place.item)
        return found

    def _items(self, a: Conjunction, b: Node, value: Any, place: Place) -> list[Gap]:
        found: list[Gap] = []
        first = len(b.get("prefixItems") or ())
        for i in range(first, max(first, a.prefix) + 1):
            if i < a.most_items:
                found += self.value(a.item(i), b.sub(value), place.item)
        return found

    def _contains(self, a: Conjunction, b: Node, value: Any, place: Place) -> list[Gap]:
        least, most = b.schema.get("minContains", 1), b.get("maxContains")
        wanted, at = b.sub(value), place.item
        enough, few = least == 0, most is None or a.most_items <= most
        for part in a.parts:
            if part.get("contains") is None:
                continue
            held = part.sub(part.get("contains"))
            if part.schema.get("minContains", 1) >= least:
                enough = enough or not self._schema(Conjunction((held,)), wanted, at)
            if most is not None and part.schema.get("maxContains", most + 1) <= most:
                few = few or not self._schema(Conjunction((wanted,)), held, at)
        count = max(a.said("minItems"), default=0)
        if count >= least and not enough:
            sure = [not self._schema(a.item(i), wanted, at) for i in range(a.prefix + 1)]
            rest = max(0, count - a.prefix) if sure.pop() else 0
            enough = sum(sure[: int(count)]) + rest >= least
        return [] if enough and few else [Gap(place.path, "contains", None, value, decided=False)]


class _Split(NamedTuple):
    """Conjunctions that take together what one does; whether gaps in one tell more than in all."""

    parts: Iterator[Conjunction]
    telling: bool = False


def _split(a: Conjunction, b: Node) -> _Split | None:
    """A conjunction by its first list of alternatives, else by its values, else by their kinds."""
    for part in a.parts:
        for keyword in ("anyOf", "oneOf"):
            listed = part.get(keyword)
            if listed is not None and id(listed) not in a.spent:
                parts = _chosen(a, part, listed, alone=keyword == "oneOf")
                return _Split(parts, telling=keyword not in b.schema)
    if a.values is not None and 1 < len(a.values) <= MAX_SPLIT:
        return _Split(a.and_(b.sub({"const": value})) for value in a.values)
    if len(a.types) > 1 and any(word in b.schema for word in ("anyOf", "oneOf", "not", "if")):
        return _Split(replace(a, only=frozenset([kind])) for kind in sorted(a.types))
    return None


def _chosen(a: Conjunction, part: Node, listed: list[Any], *, alone: bool) -> Iterator[Conjunction]:
    """`a` with each of the alternatives; none of the others holds if one holds `alone`."""
    spent = replace(a, spent=a.spent | {id(listed)})
    for i, item in enumerate(listed):
        others = [x for j, x in enumerate(listed) if j != i] if alone else []
        yield spent.and_(part.sub(item), *(part.sub({"not": x}) for x in others))


_Rule = Callable[[Inclusion, Conjunction, Node, Any, Place], list[Gap]]
_APPLICATORS: Final[dict[str, tuple[frozenset[str], _Rule]]] = {
    "$ref": (KINDS, Inclusion._reference),
    "allOf": (KINDS, Inclusion._all_of),
    "anyOf": (KINDS, Inclusion._any_of),
    "oneOf": (KINDS, Inclusion._one_of),
    "not": (KINDS, Inclusion._not),
    "if": (KINDS, Inclusion._if),
    "properties": (OBJECTS, Inclusion._properties),
    "patternProperties": (OBJECTS, Inclusion._pattern_properties),
    "additionalProperties": (OBJECTS, Inclusion._additional_properties),
    "propertyNames": (OBJECTS, Inclusion._property_names),
    "dependentRequired": (OBJECTS, Inclusion._dependencies),
    "dependentSchemas": (OBJECTS, Inclusion._dependencies),
    "dependencies": (OBJECTS, Inclusion._dependencies),
    "prefixItems": (ARRAYS, Inclusion._prefix_items),
    "items": (ARRAYS, Inclusion._items),
    "contains": (ARRAYS, Inclusion._contains),
}
