"""Structural compatibility of two JSON Schemas (P2, P8), compared keyword by keyword.

| answer | when |
| --- | --- |
| compatible | every keyword of the new schema follows from the same keyword of the old one |
| incompatible | an example is valid for the old schema and not for the new one; or a property |
| | is named no longer or merged otherwise, which P2 calls incompatible |
| cannot tell | neither: another `pattern`, other branches of `oneOf`, too many steps |

Each place where the new schema does not follow is a `SchemaGap`; none: it is compatible. Where the
old schema names properties and does not mention others, others count as never written, so that an
optional property may be added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from capdex.diff.schema_facts import (
    Names,
    Nodes,
    alike,
    examples,
    follows,
    listed,
    of_item,
    of_property,
    parts,
    possible_kinds,
    required,
    said,
    type_names,
)
from capdex.diff.schema_gap import UNDECIDED, SchemaGap, SchemaPath
from capdex.json_schema.evaluate import ANNOTATIONS, KEYWORD_KINDS, Effort, Node, accepts
from capdex.json_schema.keywords import KEYWORDS
from capdex.json_schema.merge_annotations import MARKS
from capdex.json_schema.values import KINDS, same

MAX_STEPS: Final = 10_000  # for two packages in both directions: a few seconds at worst
MAX_LEVELS: Final = 60  # of recursion, well within Python's limit
MAX_GAPS: Final = 100  # of one comparison; more are of no use to a reader
MAX_EXAMPLE_STEPS: Final = 20_000  # of one search for an example

# Keywords whose meaning depends on others beside them.
_TOGETHER: Final = {
    "if": ("if", "then", "else"),
    "contains": ("contains", "minContains", "maxContains"),
}
_READ_WITH_OTHERS: Final = ("then", "else", "minContains", "maxContains")
_WHOLE: Final = ("unevaluatedItems", "unevaluatedProperties")


class SchemaComparison(NamedTuple):
    """Places where the new schema accepts less than the old one, and where it accepts more.

    `decided`: the narrowed ones make it incompatible for certain, by an example or by P2.
    """

    narrowed: tuple[SchemaGap, ...] = ()
    widened: tuple[SchemaGap, ...] = ()
    decided: bool = False


def compare_schemas(old: Node, new: Node, effort: Effort, *, state: bool) -> SchemaComparison:
    """Compare two schemas in both directions; each difference is reported once.

    `state` compares merge annotations, too. Comparisons that share `effort` are bounded together.
    """
    narrowed = gaps(old, new, effort, state=state)
    reported = {(gap.path, gap.topic) for gap in narrowed}
    widened = [x for x in gaps(new, old, effort, state=state) if (x.path, x.topic) not in reported]
    decided = any(x.by_rule for x in narrowed) or (bool(narrowed) and any(refused(old, new)))
    return SchemaComparison(narrowed, tuple(widened), decided)


def refused(old: Node, new: Node) -> Iterator[tuple[Any]]:
    """Iterate over values, each in a tuple, that `old` accepts and `new` refuses."""
    effort = Effort(MAX_EXAMPLE_STEPS)
    for value in examples((old,), (new,), effort):
        if accepts(new, value, effort) is False and accepts(old, value, effort):
            yield (value,)


def gaps(old: Node, new: Node, effort: Effort, *, state: bool = False) -> tuple[SchemaGap, ...]:
    """Return the places where `new` does not follow; none: it accepts all that `old` accepts."""
    once: dict[tuple[str, str], SchemaGap] = {}
    for gap in _Comparison(effort, state).compare((old,), new, SchemaPath()):
        once.setdefault((gap.path, gap.keyword), gap)
    return tuple(once.values())[:MAX_GAPS]


class _Comparison:
    """Compares schemas that hold together (`old`) with another one (`new`), place by place."""

    def __init__(self, effort: Effort, state: bool) -> None:
        self._effort = effort
        self._state = state
        self._open: dict[tuple[frozenset[int], int], int] = {}  # pairs in progress: their depth
        self._chosen: set[int] = set()  # lists of alternatives of which one is in `old`

    def compare(self, old: Nodes, new: Node, at: SchemaPath) -> list[SchemaGap]:
        """Return the gaps at one value and inside it."""
        if new.schema is True:
            return []
        found = list(self._names_and_marks(parts(old), new, at))
        return found + self._same_value(old, new, at)

    def _same_value(self, old: Nodes, new: Node, at: SchemaPath) -> list[SchemaGap]:
        """Compare as `compare` does, for a value whose names are compared already."""
        old = parts(old)
        if new.schema is True or any(node.schema is False for node in old):
            return []
        pair = frozenset(id(node.schema) for node in old), id(new.schema)
        if self._open.get(pair, at.depth) < at.depth:
            return []  # compared for the value around: values are finite, so it holds here, too
        if pair in self._open or len(self._open) >= MAX_LEVELS or not self._effort.spend():
            return [SchemaGap(at.text, UNDECIDED)]
        self._open[pair] = at.depth
        found = self._values(old, new, at)
        if found is None:
            found = [gap for word in _words(new) for gap in self._keyword(old, new, word, at)]
            if found and self._by_alternatives(old, new, at):
                found = []
        del self._open[pair]
        return found

    def _values(self, old: Nodes, new: Node, at: SchemaPath) -> list[SchemaGap] | None:
        """Compare by evaluation if the old values are listed; None if that does not decide."""
        if new.schema is False:
            return [SchemaGap(at.text, "false")]
        values, effort = listed(old), Effort(MAX_EXAMPLE_STEPS)
        if values is None:
            return None
        values = [x for x in values if all(accepts(y, x, effort) is not False for y in old)]
        answers = [accepts(new, value, effort) for value in values]
        missing = [x for x, answer in zip(values, answers, strict=True) if answer is False]
        if missing:
            return [SchemaGap(at.text, "missing", missing)]
        return [] if all(answers) else None

    def _by_alternatives(self, old: Nodes, new: Node, at: SchemaPath) -> bool:
        """True if `new` follows from each branch of one anyOf or oneOf in `old`."""
        for node, branches in [(x, x.get(word)) for x in old for word in ("anyOf", "oneOf")]:
            if branches is None or id(branches) in self._chosen:
                continue
            self._chosen.add(id(branches))
            follows = not any(self._same_value((*old, node.sub(x)), new, at) for x in branches)
            self._chosen.remove(id(branches))
            return follows
        return False

    def _names_and_marks(self, old: Nodes, new: Node, at: SchemaPath) -> Iterator[SchemaGap]:
        before, after = Names(old), Names((new,))
        if "object" in possible_kinds(old) and (after.given or not at.text):
            for name in before.names:
                if name not in after.names and not after.patterns and not (after.open and at.text):
                    yield SchemaGap(at.property(name).text, "dropped", name, by_rule=True)
        for mark in MARKS if self._state else ():
            was, now = before.marks.get(mark), after.marks.get(mark)
            if not same(was, now):
                yield SchemaGap(at.text, mark, was, now, by_rule=True)

    def _keyword(self, old: Nodes, new: Node, word: str, at: SchemaPath) -> Iterable[SchemaGap]:
        value = new.schema[word]
        if not possible_kinds(old) & KEYWORD_KINDS.get(word, KINDS):
            return
        if word in _INNER:
            yield from _INNER[word](self, old, new, value, at)
        elif word == "required":
            for name in value:
                if name not in required(old):
                    yield SchemaGap(at.property(name).text, word)
        elif not follows(old, word, value) and not self._equal(old, new, word):
            known = said(old, word) if word not in ("enum", "const") else []
            keyword = "enum" if word == "const" else word
            before = type_names(possible_kinds(old)) if word == "type" else next(iter(known), None)
            yield SchemaGap(at.text, keyword, before, [value] if word == "const" else value)

    def _equal(self, old: Nodes, new: Node, word: str) -> bool:
        """True if a schema in `old` has the same keyword and what it depends on."""
        return any(
            alike(_only(node, word), _only(new, word)) for node in old if node.get(word) is not None
        )

    # keywords that hold schemas -----------------------------------------------------------------

    def _reference(self, old: Nodes, new: Node, value: Any, at: SchemaPath) -> list[SchemaGap]:
        target = new.resolve()
        if target is not None:
            return self._same_value(old, target, at)
        return [] if self._equal(old, new, "$ref") else [SchemaGap(at.text, "$ref", None, value)]

    def _all_of(self, old: Nodes, new: Node, value: Any, at: SchemaPath) -> list[SchemaGap]:
        return [gap for item in value for gap in self._same_value(old, new.sub(item), at)]

    def _any_of(self, old: Nodes, new: Node, value: Any, at: SchemaPath) -> list[SchemaGap]:
        if any(not self._same_value(old, new.sub(item), at) for item in value):
            return []
        return [SchemaGap(at.text, "anyOf")]

    def _properties(self, old: Nodes, new: Node, value: Any, at: SchemaPath) -> list[SchemaGap]:
        names, found = Names(old), list[SchemaGap]()
        never_written = names.given and not (names.open or names.patterns or listed(old))
        for name, schema in value.items():
            if not never_written or name in names.names or name in required(old):
                found += self.compare(of_property(old, name), new.sub(schema), at.property(name))
        return found

    def _additional(self, old: Nodes, new: Node, value: Any, at: SchemaPath) -> list[SchemaGap]:
        node, named, found = new.sub(value), new.get("properties", {}), list[SchemaGap]()
        for name in Names(old).names:
            if name not in named:
                found += self.compare(of_property(old, name), node, at.property(name))
        closed = any(
            x.get("additionalProperties") is False and not x.get("patternProperties") for x in old
        )
        other = max(["", *named], key=len) + "_"  # a name that is not named
        if not closed and self.compare(of_property(old, other), node, at.property(other)):
            found.append(SchemaGap(at.text, "unnamed"))
        return found

    def _items(self, old: Nodes, new: Node, value: Any, at: SchemaPath) -> list[SchemaGap]:
        first = len(new.get("prefixItems", ()))
        last = max([first, *(len(x) for x in said(old, "prefixItems"))])
        return [
            gap
            for index in range(first, last + 1)
            for gap in self.compare(of_item(old, index), new.sub(value), at.item())
        ]

    def _prefix(self, old: Nodes, new: Node, value: Any, at: SchemaPath) -> list[SchemaGap]:
        return [
            gap
            for index, schema in enumerate(value)
            for gap in self.compare(of_item(old, index), new.sub(schema), at.item())
        ]


_Rule = Callable[[_Comparison, Nodes, Node, Any, SchemaPath], list[SchemaGap]]
_INNER: Final[dict[str, _Rule]] = {
    "$ref": _Comparison._reference,
    "allOf": _Comparison._all_of,
    "anyOf": _Comparison._any_of,
    "properties": _Comparison._properties,
    "additionalProperties": _Comparison._additional,
    "items": _Comparison._items,
    "prefixItems": _Comparison._prefix,
}


def _words(node: Node) -> list[str]:
    """Return the keywords of a schema that accept or refuse values."""
    words = [x for x in node.schema if x in KEYWORDS or x == "const"]
    words = [x for x in words if x not in ANNOTATIONS and x not in _READ_WITH_OTHERS]
    return sorted(words, key=_INNER.__contains__)  # the value itself first


def _only(node: Node, word: str) -> Node:
    """Return the schema of one keyword with those that it depends on."""
    words = node.schema if word in _WHOLE else _TOGETHER.get(word, (word,))
    return node.sub({x: node.schema[x] for x in words if x in node.schema})
