"""Structural compatibility of two JSON Schemas (P2, P8), compared keyword by keyword.

Each place where the new schema accepts less, or may do so, is a `SchemaGap`; without one the new
schema is compatible. Types, enums, bounds, properties and items are compared; every other keyword
(`allOf`, `anyOf`, `not`, `if`, `pattern` …) only follows from an equal one. The new schema is
incompatible for certain if an example is valid for the old one alone, or by a rule of P2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from capdex.diagnostics import show, show_change, show_path
from capdex.diff.schema_examples import MAX_CANDIDATES, MAX_LEVELS, holding, samples
from capdex.json import list_of
from capdex.json_schema.keywords import (
    ANNOTATIONS,
    KEYWORD_KINDS,
    KEYWORDS,
    KINDS,
    MARKS,
    Shape,
    frozen,
    kinds,
    same,
)
from capdex.json_schema.subschema import (
    BOUNDS,
    READ_BY,
    VALUES_A_STEP,
    Effort,
    Schema,
    accepts,
    count_values,
    names_and_values,
    take,
)

MAX_STEPS: Final = 10_000  # for two packages in both directions: a second at worst
MAX_EXAMPLE_STEPS: Final = 20_000  # to look for examples, for two packages: two seconds at worst
MAX_GAPS: Final = 100  # of one comparison; more are of no use to a reader
MAX_VALUES: Final = 10  # of an enumeration that one message names
MAX_PATH_CHARS: Final = 120  # of a path inside a message; its end is kept
UNDECIDED: Final = "undecided"  # instead of a keyword: the comparison ran out of steps

# Keywords that apply schemas to the same value, which may name properties, too.
IN_PLACE: Final = frozenset(
    (
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if"),
        *("dependentSchemas", "dependencies"),
    )
)
# Keywords that say something of properties that are not named beside them.
_OF_OTHERS: Final = IN_PLACE | frozenset(
    ("additionalProperties", "patternProperties", "unevaluatedProperties", "enum", "const")
)
_PHRASES: Final = {  # where the newer schema takes less, and where it takes more
    "dropped": ("{it} is gone", "{it} is new"),
    "required": ("{it} is required now", "{it} is optional now"),
    "missing": ("{it} takes {values} no longer", "{it} takes {values} too"),
    "enum": ("{it} takes only {values} now", "{it} takes more than {values} now"),
    "false": ("{it} is not allowed any more", "{it} is allowed now"),
    UNDECIDED: (
        "{it} cannot be compared within the steps allowed",
        "{it} may take more; that is not known within the steps allowed",
    ),
}

_ANYTHING: Final[dict[str, Any]] = {}  # what the schema True says, as keywords


@dataclass(frozen=True, slots=True)
class SchemaGap:
    """A place where a schema (`target`) may not accept all that another one (`source`) does.

    `path` leads to the value: `preferred.length`, `tags[]`, `labels.*` for any other property.
    `by_rule`: P2 calls it incompatible without an example.
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
        if phrases := _PHRASES.get(self.keyword):
            values = list_of(self.source or self.target)
            words = [show(x) for x in values[:MAX_VALUES]]
            if len(values) > MAX_VALUES:
                words.append(f"and {len(values) - MAX_VALUES} more")
            return phrases[widened].format(it=it, values=", ".join(words))
        return f"{self.keyword} of {it} {show_change(*self.values(widened=widened))}"

    def values(self, *, widened: bool) -> tuple[Any, Any]:
        """Return the older and the newer value."""
        return (self.target, self.source) if widened else (self.source, self.target)


class SchemaComparison(NamedTuple):
    """Places where the new schema accepts less than the old one, and where it accepts more.

    `examples`: a value that the old schema accepts and the new one refuses, if one is found.
    """

    narrowed: tuple[SchemaGap, ...]
    widened: tuple[SchemaGap, ...]
    examples: list[Any]

    @property
    def decided(self) -> bool:
        """True if the new schema is incompatible for certain, by an example or by P2."""
        return bool(self.examples) or any(gap.by_rule for gap in self.narrowed)


class StepsLeft(NamedTuple):
    """The steps left to compare schemas, and to look for examples."""

    comparing: Effort
    looking: Effort

    @classmethod
    def of(cls, comparing: int = MAX_STEPS, looking: int = MAX_EXAMPLE_STEPS) -> StepsLeft:
        """Return so many steps."""
        return cls(iter(range(comparing)), iter(range(looking)))


def compare_schemas(old: Schema, new: Schema, left: StepsLeft, *, state: bool) -> SchemaComparison:
    """Compare two schemas in both directions; each difference is reported once.

    `state` compares merge annotations, too. Comparisons that share the steps are bounded together.
    """
    narrowed = _Comparison(left, state)
    widened = _Comparison(left._replace(looking=iter(())), state)
    examples = narrowed.compare(old, new, "")
    widened.compare(new, old, "")
    reported = {(gap.path, gap.topic) for gap in narrowed.gaps.values()}
    # That a property is new says that it is allowed, where no other ones are.
    reported |= {(path, "false") for path, keyword in widened.gaps if keyword == "dropped"}
    # What an enumeration lists no longer says nothing of what it lists now.
    others = tuple(
        gap
        for gap in widened.gaps.values()
        if gap.keyword == "missing" or (gap.path, gap.topic) not in reported
    )
    return SchemaComparison(tuple(narrowed.gaps.values()), others, examples)


class _Comparison:
    """Compares two schemas place by place, and collects the places where `new` accepts less."""

    def __init__(self, left: StepsLeft, state: bool) -> None:
        self.gaps: dict[tuple[str, str], SchemaGap] = {}
        self._effort, self._examples = left
        self._marks = MARKS if state else ()
        self._open: set[tuple[int, int]] = set()  # pairs in progress

    def compare(self, old: Schema, new: Schema, at: str) -> list[Any]:
        """Add the gaps at one value and inside it; return an example that only `old` accepts."""
        (old, was), (new, now) = old.resolved(), new.resolved()
        for mark in self._marks:
            if not same(was.get(mark), now.get(mark)):
                self._add(at, mark, was.get(mark), now.get(mark), _complete(old) and _complete(new))
        for word in sorted({*old.assertions()} - {*new.assertions()}) if self._marks else ():
            inside = repr(self._plain(old.sub({word: old.value[word]})))
            if any(repr(mark) in inside for mark in MARKS):
                self._add(at, word, old.value[word])
        old = old.sub(_ANYTHING) if old.value is True else old
        pair = id(old.value), id(new.value)
        if new.value is True or old.value is False or pair in self._open:
            return []  # a pair in progress holds for the value around, and values are finite
        if len(self._open) >= MAX_LEVELS or not self._take_steps(old, new):
            self._add(at, UNDECIDED)
            return []
        self._open.add(pair)
        known, effort = len(self.gaps), self._examples
        within = [*self._value(old, new, at)]
        # One by one: each may be as large as the names that a schema requires.
        candidates: Iterable[Any] = (holding(old, step, x, effort) for step, x in within)
        if len(self.gaps) > known:
            candidates = chain(candidates, samples(old, new, effort))
        self._open.remove(pair)
        candidates = islice(candidates, MAX_CANDIDATES)
        refused = (x for x in candidates if accepts(new, x, effort) is False)
        return [*islice((x for x in refused if accepts(old, x, effort)), 1)]

    def _take_steps(self, *schemas: Schema) -> bool:
        """Take a step, and more where a schema has many names; False if too few are left."""
        return take(self._effort, 1) and take(
            self._effort, max(map(names_and_values, schemas)) // VALUES_A_STEP
        )

    def _add(self, *fields: Any) -> None:
        gap = SchemaGap(*fields)
        if len(self.gaps) < MAX_GAPS:
            self.gaps.setdefault((gap.path, gap.keyword), gap)

    def _value(self, old: Schema, new: Schema, at: str) -> Iterator[tuple[str | int | None, Any]]:
        """Compare one value and those inside it; iterate over values that may be in an example.

        Each comes with its name or its index, None for the whole.
        """
        if new.value is False:
            self._add(at, "false")
            return
        types, listed = old.types(), old.listed()
        if "object" in types:
            self._names(old, new, at)
        for word in new.assertions():
            value = new.value[word]
            if not types & KEYWORD_KINDS.get(word, KINDS):
                continue
            if word in ("properties", "additionalProperties", "items", "prefixItems"):
                for step, before, after, path in self._inside(old, new, word, at):
                    yield from ((step, x) for x in self.compare(before, after, path))
            elif word == "required":
                known = {*old.get(word, ())}
                for name in (x for x in value if x not in known):
                    self._add(_below(at, name), word)
            elif word in ("enum", "const"):
                values = value if word == "enum" else [value]
                known = {*map(frozen, values)}
                missing = [x for x in listed or () if frozen(x) not in known]
                yield from ((None, x) for x in missing)
                if missing:
                    self._add(at, "missing", missing)
                elif listed is None:
                    self._add(at, "enum", None, values)
            elif not self._follows(old, new, word):
                self._add(at, word, old.get(word), value)

    def _names(self, old: Schema, new: Schema, at: str) -> None:
        """Add the properties that are named no longer."""
        others = [new.get(x, False) for x in ("additionalProperties", "unevaluatedProperties")]
        anything = others != [False, False] or "properties" not in new.value
        if new.get("patternProperties") or (at and anything):
            return
        for name in old.get("properties", {}):
            if name not in new.get("properties", {}):
                self._add(_below(at, name), "dropped", name, None, _complete(new))

    def _inside(
        self, old: Schema, new: Schema, word: str, at: str
    ) -> Iterator[tuple[str | int, Schema, Schema, str]]:
        """Iterate over the values inside one: name or index, both schemas, and path.

        Where `old` names properties and says nothing of others, others count as never written.
        """
        ours, theirs = old.get("properties", {}), new.get("properties", {})
        if word == "properties":
            silent = "properties" in old.value and not _OF_OTHERS & old.value.keys()
            for name in theirs:
                if name in ours or not silent or name in old.get("required", ()):
                    yield name, old.property(name), new.property(name), _below(at, name)
        elif word == "additionalProperties":
            value = new.sub(new.value[word])
            for name in ours:
                if name not in theirs:
                    yield name, old.property(name), value, _below(at, name)
            other = max(["", *ours, *theirs], key=len) + "_"  # a name that is not named
            before = old.property(other)
            if self._equal(old, new, "patternProperties"):
                before = old.sub(old.get(word, True))
            yield other, before, value, f"{at}.*" if at else "*"
        else:
            first, last = 0, len(new.get("prefixItems", ()))
            if word == "items":
                first, last = last, max(last, len(old.get("prefixItems", ()))) + 1
            for index in range(first, last):
                yield index, old.item(index), new.item(index), f"{at}[]"

    def _follows(self, old: Schema, new: Schema, word: str) -> bool:
        """True if a keyword of `new` follows from the same keyword of `old`."""
        known, value = old.get(word), new.value[word]
        if word == "type":
            return old.types() <= kinds(value)
        if word in BOUNDS and known != value:
            end = word.removeprefix("exclusive").lower()
            bounds = [old.get(x) for x in (word, end, f"exclusive{end.capitalize()}")]
            bounds += [0] if word in ("minLength", "minItems", "minProperties") else []
            return any(BOUNDS[word](x, value) for x in bounds if x is not None)
        if word == "uniqueItems" and value is False:
            return True
        if word == "multipleOf" and isinstance(known, int) and isinstance(value, int):
            return known % value == 0
        return self._equal(old, new, word)

    def _equal(self, old: Schema, new: Schema, word: str) -> bool:
        """True if a keyword, and all that it depends on, is the same but for annotations."""
        if not word.startswith("unevaluated"):
            words = {word, *(read for read, reader in READ_BY.items() if reader == word)}
            old, new = (x.sub({k: v for k, v in x.value.items() if k in words}) for x in (old, new))
        return same(self._plain(old), self._plain(new))

    def _plain(self, schema: Schema, around: tuple[int, ...] = ()) -> Any:
        """Return a schema without annotations, and with the targets of its references."""
        here = id(schema.value)
        if not isinstance(schema.value, dict):
            return schema.value
        if here in around:
            return ["recursion", around[::-1].index(here)]
        if len(around) >= MAX_LEVELS or not self._take_steps(schema):
            return object()  # equal to nothing
        plain: dict[str, Any] = {}
        for word, value in schema.value.items():
            shape, items = KEYWORDS.get(word), value
            if word in ANNOTATIONS or not (shape or word in ("const", *MARKS)):
                continue
            if word == "$ref" and (target := schema.target()) is not None:
                items = self._plain(target, (*around, here))
            elif shape is Shape.REFERENCE:
                items = [value, schema.root, schema.package]
                if not take(self._effort, count_values(items) // VALUES_A_STEP):
                    items = object()  # equal to nothing
            elif shape is Shape.SCHEMA:
                items = self._plain(schema.sub(value), (*around, here))
            elif shape is Shape.SCHEMAS:
                items = [self._plain(schema.sub(x), (*around, here)) for x in value]
            elif shape in (Shape.SCHEMA_MAP, Shape.DEPENDENCIES):
                items = {x: self._plain(schema.sub(y), (*around, here)) for x, y in value.items()}
            plain[word] = items
        return plain


def _complete(schema: Schema) -> bool:
    """True if all properties are named here, and none by a schema for the same value."""
    return not IN_PLACE.intersection(schema.assertions())


def _below(at: str, name: str) -> str:
    """Return the path of a property; a long one keeps its end."""
    step = show_path((name,))
    text = f"{at}{'.' if at and not step.startswith('[') else ''}{step}"
    return text if len(text) <= MAX_PATH_CHARS else f"…{text[1 - MAX_PATH_CHARS :]}"
