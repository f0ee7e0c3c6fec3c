"""What JSON Schemas that all hold at one place say for certain of the values there (2020-12, P8).

A `Conjunction` never says more than its schemas do; a keyword that is not read here is left out.
So what is proved of every value it takes is true of every value they take, which is all that
`capdex.diff.schema_compatibility` needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from capdex.json_schema.schema import at_pointer
from capdex.json_schema.values import KINDS, constant, frozen, kind, kinds, matches

MAX_PARTS: Final = 1000  # of one conjunction: as many as a package has subschemas


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A schema, and what `#/schema` means inside it (a tool's parameters), if anything."""

    root: Any
    package: dict[str, Any] | None = None


class Node(NamedTuple):
    """A subschema and the document that its references point into."""

    schema: Any
    document: Document

    def sub(self, schema: Any) -> Node:
        """A subschema of this one."""
        return Node(schema, self.document)

    def get(self, keyword: str) -> Any:
        """The value of a keyword, or None."""
        return self.schema.get(keyword) if isinstance(self.schema, dict) else None

    def resolve(self, reference: str) -> Node | None:
        """What a `$ref` points at; None for an anchor, which is not followed here."""
        fragment = unquote(reference.removeprefix("#"))
        if fragment and not fragment.startswith("/"):
            return None
        steps = [x.replace("~1", "/").replace("~0", "~") for x in fragment.split("/")[1:]]
        document = self.document
        if document.package is not None and steps[:1] == ["schema"]:
            document, steps = Document(document.package), steps[1:]
        found, target = at_pointer(document.root, steps)
        return Node(target, document) if found else None


@dataclass(frozen=True, eq=False)
class Conjunction:
    """Schemas that all hold at one place.

    `only` are the kinds of value in question, and `spent` the lists of alternatives (by identity)
    of which one was chosen already: it is among the nodes.
    """

    nodes: tuple[Node, ...]
    only: frozenset[str] = KINDS
    spent: frozenset[int] = frozenset()

    @cached_property
    def _written(self) -> tuple[Node, ...]:
        """The nodes, and what they hold to be true beside themselves: allOf and $ref."""
        ahead, seen = list(self.nodes), set[int]()
        parts: list[Node] = []
        while ahead and len(parts) < MAX_PARTS:
            node = ahead.pop()
            if id(node.schema) in seen or node.schema is True:
                continue
            seen.add(id(node.schema))
            parts.append(node)
            ahead.extend(map(node.sub, node.get("allOf") or ()))
            target = node.resolve(node.get("$ref")) if node.get("$ref") else None
            if target is not None:
                ahead.append(target)
        return tuple(parts)

    @cached_property
    def parts(self) -> tuple[Node, ...]:
        """All schemas that hold here; one value that is left says everything about itself."""
        if self.values is None or len(self.values) != 1:
            return self._written
        return (*self._written, Node(constant(self.values[0]), Document(True)))

    @cached_property
    def types(self) -> frozenset[str]:
        """The kinds of value that are possible."""
        found = self.only
        for part in self._written:
            if type_ := part.get("type"):
                found &= kinds(type_)
            for listed in _listed(part):
                found &= frozenset(map(kind, listed))
        return found

    @cached_property
    def values(self) -> list[Any] | None:
        """The possible values where they are few enough to be listed, else None."""
        lists = [listed for part in self._written for listed in _listed(part)]
        if not lists:
            if not self.types <= {"boolean", "null"}:
                return None
            lists = [[None, False, True]]
        first, *others = lists
        allowed = [{frozen(value) for value in other} for other in others]
        found = {frozen(value): value for value in first if kind(value) in self.types}
        return [value for key, value in found.items() if all(key in other for other in allowed)]

    @cached_property
    def impossible(self) -> bool:
        """Whether no value can stand here."""
        return (
            not self.types
            or self.values == []
            or any(part.schema is False for part in self._written)
        )

    def and_(self, *nodes: Node) -> Conjunction:
        """This, and more that holds here."""
        return Conjunction((*self.nodes, *nodes), self.only, self.spent)

    def said(self, keyword: str) -> list[Any]:
        """Every value of a keyword that holds here."""
        return [part.schema[keyword] for part in self.parts if part.get(keyword) is not None]

    # numbers ------------------------------------------------------------------------------------

    def bound(self, sign: int) -> tuple[float, bool] | None:
        """The lower bound (`sign` 1) or the upper one (-1), and whether it is left out itself."""
        inner, outer = (
            ("minimum", "exclusiveMinimum") if sign == 1 else ("maximum", "exclusiveMaximum")
        )
        found = [(sign * x, False) for x in self.said(inner)]
        found += [(sign * x, True) for x in self.said(outer)]
        if not found:
            return None
        value, open_ = max(found)
        if "fraction" not in self.types:  # the next whole number
            value, open_ = (math.floor(value) + 1 if open_ else math.ceil(value)), False
        return sign * value, open_

    # objects ------------------------------------------------------------------------------------

    @cached_property
    def required(self) -> frozenset[str]:
        """The properties that every object here has."""
        return frozenset(name for names in self.said("required") for name in names)

    @cached_property
    def names(self) -> frozenset[str]:
        """The properties that are named."""
        return frozenset(name for named in self.said("properties") for name in named)

    @cached_property
    def closed(self) -> frozenset[str] | None:
        """The only names that properties may have, or None where there may be others."""
        found: frozenset[str] | None = None
        for part in self.parts:
            if part.get("additionalProperties") is False and not part.get("patternProperties"):
                names = frozenset(part.get("properties") or ())
                found = names if found is None else found & names
        return found

    def property(self, name: str) -> Conjunction:
        """What holds of the value of one property."""
        found: list[Node] = []
        for part in self.parts:
            named = (part.get("properties") or {}).get(name)
            patterns: dict[str, Any] = part.get("patternProperties") or {}
            hits = {pattern: matches(pattern, name) for pattern in patterns}
            found += [part.sub(patterns[pattern]) for pattern, hit in hits.items() if hit]
            if named is not None:
                found.append(part.sub(named))
            elif not any(hit is not False for hit in hits.values()):
                found += _present(part, "additionalProperties")
        return Conjunction(tuple(found))

    def matching(self, pattern: str) -> Conjunction:
        """What holds of every property that this pattern matches, named or not."""
        listed = [(part, part.get("patternProperties") or {}) for part in self.parts]
        return Conjunction(tuple(x.sub(found[pattern]) for x, found in listed if pattern in found))

    @cached_property
    def patterns(self) -> frozenset[str]:
        """The patterns of properties' names."""
        return frozenset(x for listed in self.said("patternProperties") for x in listed)

    def unnamed(self, pattern: str | None = None) -> Conjunction:
        """What holds of a property that is not named, and that only this pattern matches."""
        found: list[Node] = []
        for part in self.parts:
            patterns = part.get("patternProperties") or {}
            if pattern is not None and pattern in patterns:
                found.append(part.sub(patterns[pattern]))
            elif pattern is None or not patterns:
                found += _present(part, "additionalProperties")
        return Conjunction(tuple(found))

    # arrays -------------------------------------------------------------------------------------

    @cached_property
    def prefix(self) -> int:
        """From where on all items are of one kind."""
        return max((len(listed) for listed in self.said("prefixItems")), default=0)

    @cached_property
    def most_items(self) -> float:
        """The most items an array here may have."""
        ends = [
            len(part.get("prefixItems") or ()) for part in self.parts if part.get("items") is False
        ]
        return min([*ends, *self.said("maxItems")], default=math.inf)

    def item(self, index: int) -> Conjunction:
        """What holds of the item at `index`."""
        found: list[Node] = []
        for part in self.parts:
            listed = part.get("prefixItems") or ()
            found += [part.sub(listed[index])] if index < len(listed) else _present(part, "items")
        return Conjunction(tuple(found))


def _present(part: Node, keyword: str) -> list[Node]:
    value = part.get(keyword)
    return [] if value is None else [part.sub(value)]


def _listed(part: Node) -> list[list[Any]]:
    """The lists of values that a schema holds to: enum, const."""
    if not isinstance(part.schema, dict):
        return []
    found = [part.schema["enum"]] if "enum" in part.schema else []
    return [*found, [part.schema["const"]]] if "const" in part.schema else found
