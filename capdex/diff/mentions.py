"""What schemas mention of the value at one place, in whatever branch: its properties' names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from capdex.diff.facts import MAX_PARTS, Node
from capdex.json_schema.merge_annotations import MARKS
from capdex.json_schema.values import matches


@dataclass(slots=True)
class Mentions:
    """`names` of properties and `others` that are only required somewhere; patterns of names.

    `named`: there is a list of properties, if an empty one. `open`: properties beyond it are
    spoken of and not refused. `marks`: how replicas merge the value.
    """

    names: dict[str, None] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    patterns: set[str] = field(default_factory=set)
    named: bool = False
    open: bool = False
    marks: dict[str, Any] = field(default_factory=dict)

    def covers(self, name: str) -> bool:
        """Whether a property of this name is named, or may match a pattern."""
        return name in self.names or any(matches(x, name) is not False for x in self.patterns)


def mentions(*nodes: Node) -> Mentions:
    """What the schemas and all that apply to the same value with them mention."""
    found, seen, ahead = Mentions(), set[int](), list(nodes)
    while ahead and len(seen) < MAX_PARTS:
        node = ahead.pop()
        if not isinstance(node.schema, dict) or id(node.schema) in seen:
            continue
        seen.add(id(node.schema))
        found.named |= "properties" in node.schema
        found.names |= dict.fromkeys(node.get("properties") or ())
        found.patterns |= set(node.get("patternProperties") or ())
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            found.open |= node.schema.get(keyword, False) is not False
        found.marks |= {mark: node.schema[mark] for mark in MARKS if mark in node.schema}
        found.others |= set(node.get("required") or ())
        for name, needed in (node.get("dependentRequired") or {}).items():
            found.others |= {name, *needed}
        ahead += _beside(node)
    return found


def _beside(node: Node) -> Iterator[Node]:
    """The subschemas that apply to the same value, some of them perhaps."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from map(node.sub, node.get(keyword) or ())
    for keyword in ("if", "then", "else"):
        yield node.sub(node.get(keyword))
    for keyword in ("dependentSchemas", "dependencies"):
        yield from map(node.sub, (node.get(keyword) or {}).values())
    target = node.resolve(node.get("$ref")) if node.get("$ref") else None
    if target is not None:
        yield target
