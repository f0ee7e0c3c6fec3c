"""Facts about the values that JSON Schemas accept together, and examples of such values.

A fact holds for every value that all the schemas accept; a keyword that is not read here only makes
the facts fewer. Examples are candidates: `capdex.json_schema.evaluate` says which are accepted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from capdex.json_schema.evaluate import ANNOTATIONS, Effort, Node, accepts
from capdex.json_schema.keywords import KEYWORDS, Shape
from capdex.json_schema.merge_annotations import MARKS
from capdex.json_schema.values import KINDS, frozen, kind, kinds, same

MAX_PARTS: Final = 1000  # of schemas that hold together: as many as a package has subschemas
MAX_LEVELS: Final = 20  # of values inside an example
MAX_SIZE: Final = 300  # characters or items of an example

Nodes = tuple[Node, ...]


def parts(nodes: Iterable[Node]) -> Nodes:
    """Return the schemas with all that hold beside them: allOf and the targets of $ref."""
    ahead, found = list(nodes), dict[int, Node]()
    while ahead and len(found) < MAX_PARTS:
        node = ahead.pop()
        if id(node.schema) not in found and node.schema is not True:
            found[id(node.schema)] = node
            ahead += [*map(node.sub, node.get("allOf", ())), *filter(None, [node.resolve()])]
    return tuple(found.values())


def said(nodes: Nodes, keyword: str) -> list[Any]:
    """Return every value of a keyword."""
    return [x.schema[keyword] for x in nodes if isinstance(x.schema, dict) and keyword in x.schema]


def listed(nodes: Nodes) -> list[Any] | None:
    """Return the values that `enum` and `const` leave; None without such a list."""
    lists = [*said(nodes, "enum"), *([x] for x in said(nodes, "const"))]
    types = possible_kinds(nodes)
    if not lists and types <= {"boolean", "null"}:
        lists = [[None, False, True]]
    if not lists:
        return None
    return [
        value
        for value in lists[0]
        if kind(value) in types and all(any(same(value, x) for x in other) for other in lists[1:])
    ]


def possible_kinds(nodes: Nodes) -> frozenset[str]:
    """Return the kinds of values that `type` leaves."""
    return KINDS.intersection(*map(kinds, said(nodes, "type")))


def required(nodes: Nodes) -> dict[str, None]:
    """Return the properties that every object has."""
    return {name: None for names in said(nodes, "required") for name in names}


def of_property(nodes: Nodes, name: str) -> Nodes:
    """Return the schemas of one property."""
    found = []
    for node in nodes:
        if name in node.get("properties", {}):
            found.append(node.sub(node.schema["properties"][name]))
        elif not node.get("patternProperties"):
            found += [node.sub(x) for x in said((node,), "additionalProperties")]
    return tuple(found)


def of_item(nodes: Nodes, index: int) -> Nodes:
    """Return the schemas of the item at `index`."""
    found: list[Node] = []
    for node in nodes:
        prefix = node.get("prefixItems", ())
        inner = [prefix[index]] if index < len(prefix) else said((node,), "items")
        found += map(node.sub, inner)
    return tuple(found)


def bound(nodes: Nodes, sign: int) -> tuple[float, bool] | None:
    """Return the lower bound (`sign` 1) or the upper one (-1), and whether it is excluded."""
    end = "inimum" if sign == 1 else "aximum"
    found = [(sign * x, False) for x in said(nodes, f"m{end}")]
    found += [(sign * x, True) for x in said(nodes, f"exclusiveM{end}")]
    if not found:
        return None
    value, excluded = max(found)
    if "fraction" not in possible_kinds(nodes):  # the next whole number
        value, excluded = (math.floor(value) + 1 if excluded else math.ceil(value)), False
    return sign * value, excluded


class Names:
    """Property names and merge annotations that schemas mention, in whatever branch.

    `given`: there is a list of properties, if an empty one. `open`: others are mentioned and not
    refused. `patterns`: some names are described by patterns.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.names: dict[str, None] = {}
        self.given = self.open = self.patterns = False
        self.marks: dict[str, Any] = {}
        seen, ahead = set[int](), list(nodes)
        while ahead and len(seen) < MAX_PARTS:
            node = ahead.pop()
            if not isinstance(node.schema, dict) or id(node.schema) in seen:
                continue
            seen.add(id(node.schema))
            self.given |= "properties" in node.schema
            self.names |= dict.fromkeys(node.get("properties", ()))
            self.patterns |= bool(node.get("patternProperties"))
            for keyword in ("additionalProperties", "unevaluatedProperties"):
                self.open |= node.get(keyword, False) is not False
            self.marks |= {mark: node.schema[mark] for mark in MARKS if mark in node.schema}
            beside = [x for word in ("allOf", "anyOf", "oneOf") for x in node.get(word, ())]
            beside += [node.get(word) for word in ("if", "then", "else")]
            beside += node.get("dependentSchemas", {}).values()
            ahead += [*map(node.sub, beside), *filter(None, [node.resolve()])]


def follows(old: Nodes, word: str, value: Any) -> bool:
    """True if an assertion follows from the same keyword in `old`."""
    known = said(old, word)
    match word:
        case "type":
            return possible_kinds(old) <= kinds(value)
        case "enum" | "const":
            values, wanted = listed(old), [value] if word == "const" else value
            return values is not None and {*map(frozen, values)} <= {*map(frozen, wanted)}
        case "minLength" | "minItems" | "minProperties":
            least = len(required(old)) if word == "minProperties" else 0
            return bool(max([least, *known]) >= value)
        case "maxLength" | "maxItems" | "maxProperties":
            return bool(known) and min(known) <= value
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            sign = 1 if "inimum" in word else -1
            edge = bound(old, sign)
            if edge is None:
                return False
            beyond = sign * edge[0] > sign * value
            return beyond or (edge[0] == value and (edge[1] or not word.startswith("exclusive")))
        case "multipleOf":
            whole = [x for x in known if isinstance(x, int) and isinstance(value, int)]
            return value in known or any(x % value == 0 for x in whole)
        case "uniqueItems":
            return not value or any(known)
    return False


def type_names(types: frozenset[str]) -> Any:
    """Return types as `type` writes them; None for any."""
    if types == KINDS:
        return None
    names = {"number" if x == "fraction" else x for x in types}
    names -= {"integer"} if "number" in names else set()
    return sorted(names) if len(names) > 1 else names.pop()


def alike(a: Node, b: Node) -> bool:
    """True if two schemas say the same but for annotations.

    References say the same if the documents that they point into are the same.
    """
    one, other = _plain(a.schema), _plain(b.schema)
    if not same(one, other):
        return False
    its, others = ([_plain(x.document.root), _plain(x.document.package)] for x in (a, b))
    return not re.search(r'"\$\w*[rR]ef"', json.dumps(one)) or same(its, others)


def _plain(schema: Any) -> Any:
    """Return a schema without annotations and unknown keywords."""
    if not isinstance(schema, dict):
        return schema
    found = {}
    for word, value in schema.items():
        shape = KEYWORDS.get(word)
        if shape is Shape.SCHEMA:
            found[word] = _plain(value)
        elif shape is Shape.SCHEMAS:
            found[word] = [_plain(item) for item in value]
        elif shape in (Shape.SCHEMA_MAP, Shape.DEPENDENCIES):
            found[word] = {name: _plain(item) for name, item in value.items()}
        elif shape or word in ("const", *MARKS):
            found[word] = value
    kept = ("$defs", "definitions", "$anchor", "$dynamicAnchor")  # what references point at
    return {x: value for x, value in found.items() if x in kept or x not in ANNOTATIONS}


def examples(nodes: Nodes, others: Nodes, effort: Effort, level: int = 0) -> Iterator[Any]:
    """Iterate over values near the limits of the schemas in `nodes` and in `others`."""
    if level > MAX_LEVELS or not effort.spend():
        return
    nodes, others = parts(nodes), parts(others)
    values = listed(nodes)
    if values is not None:
        yield from values
        return
    schemas = [x.schema for x in (*nodes, *others) if isinstance(x.schema, dict)]
    if not schemas:
        yield from (None, 0.5, "a", [], {})
        return
    limits = {x for schema in schemas for x in schema.values() if type(x) in (int, float)}
    numbers = {0, 1, 0.5, *(limit + step for limit in limits for step in (-1, -0.5, 0, 0.5, 1))}
    sizes = sorted(int(x) for x in numbers if 0 <= x <= MAX_SIZE and x == int(x))
    whole = {x: _accepted(of_property(nodes, x), effort, level) for x in required(nodes)}
    item = [_accepted(of_item(nodes, 0), effort, level)]
    yield from (None, False, True, *sorted(numbers), *("a" * size for size in sizes))
    yield from (whole, *(item * size for size in sizes))
    names = [name for x in schemas for name in (*x.get("properties", ()), *x.get("required", ()))]
    for name in dict.fromkeys([*names, "other"]):
        ours, theirs = of_property(nodes, name), of_property(others, name)
        if name not in names or [x.schema for x in ours] != [x.schema for x in theirs]:
            for value in examples(ours, theirs, effort, level + 1):
                yield whole | {name: value}
    for value in examples(of_item(nodes, 0), of_item(others, 0), effort, level + 1):
        yield [value]


def _accepted(nodes: Nodes, effort: Effort, level: int) -> Any:
    """Return an example that all schemas accept; None if none is found."""
    values = examples(nodes, (), effort, level + 1)
    return next((x for x in values if all(accepts(node, x, effort) for node in nodes)), None)
