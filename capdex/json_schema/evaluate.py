"""Evaluate a JSON value against a schema (2020-12), three-valued: True, False or None (unknown).

Used to confirm examples when two schemas are compared. Keywords on which validators differ or that
are rare (`pattern`, `format`, `contains`, `unevaluatedProperties`, anchors …) evaluate to None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from capdex.json_schema.keywords import KEYWORDS
from capdex.json_schema.schema import at_pointer
from capdex.json_schema.values import frozen, kind, kinds, same

MAX_NESTING: Final = 60  # of one evaluation, well within Python's recursion limit

# Keywords that accept or refuse no value by themselves.
ANNOTATIONS: Final = frozenset(
    (
        *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema"),
        *("$vocabulary", "default", "definitions", "deprecated", "description", "examples"),
        *("readOnly", "title", "writeOnly"),
    )
)
NUMBERS: Final = frozenset(["integer", "fraction"])
KEYWORD_KINDS: Final = {  # of the values that a keyword is about; it accepts all others
    word: about
    for about, words in {
        NUMBERS: "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
        frozenset(["string"]): "minLength maxLength pattern format contentEncoding "
        "contentMediaType contentSchema",
        frozenset(["array"]): "minItems maxItems uniqueItems items prefixItems contains "
        "minContains maxContains unevaluatedItems",
        frozenset(["object"]): "minProperties maxProperties required properties propertyNames "
        "patternProperties additionalProperties dependentRequired dependentSchemas "
        "dependencies unevaluatedProperties",
    }.items()
    for word in words.split()
}


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A schema, and the package schema that `#/schema` means in a tool's parameters, if any."""

    root: Any
    package: dict[str, Any] | None = None


class Node(NamedTuple):
    """A subschema and the document that its references point into."""

    schema: Any
    document: Document

    def sub(self, schema: Any) -> Node:
        """Return a subschema of this one."""
        return Node(schema, self.document)

    def get(self, keyword: str, default: Any = None) -> Any:
        """Return the value of a keyword, or `default`."""
        return self.schema.get(keyword, default) if isinstance(self.schema, dict) else default

    def resolve(self) -> Node | None:
        """Return the target of `$ref`; None without one and for anchors, which are not followed."""
        reference = self.get("$ref")
        fragment = unquote(reference.removeprefix("#")) if reference is not None else "none"
        if fragment and not fragment.startswith("/"):
            return None
        steps = [x.replace("~1", "/").replace("~0", "~") for x in fragment.split("/")[1:]]
        document = self.document
        if document.package is not None and steps[:1] == ["schema"]:
            document, steps = Document(document.package), steps[1:]
        found, target = at_pointer(document.root, steps)
        return Node(target, document) if found else None


@dataclass(slots=True)
class Effort:
    """Steps that comparisons and evaluations may still take together."""

    left: int

    def spend(self) -> bool:
        """Take one step; False if none is left."""
        self.left -= 1
        return self.left >= 0


def accepts(node: Node, value: Any, effort: Effort, nesting: int = 0) -> bool | None:
    """True if the schema accepts `value`, False if it refuses it, None if that is unknown."""
    if not isinstance(node.schema, dict):
        return bool(node.schema)
    if nesting > MAX_NESTING or not effort.spend():
        return None

    def inner(schema: Any, item: Any) -> bool | None:
        return accepts(node.sub(schema), item, effort, nesting + 1)

    def check(keyword: str, expected: Any) -> bool | None:
        if keyword in ANNOTATIONS or not (keyword in KEYWORDS or keyword == "const"):
            return True
        if kind(value) not in KEYWORD_KINDS.get(keyword, (kind(value),)):
            return True
        match keyword:
            case "type":
                return kind(value) in kinds(expected)
            case "const":
                return same(value, expected)
            case "enum":
                return any(same(value, item) for item in expected)
            case "minimum":
                return bool(value >= expected)
            case "exclusiveMinimum":
                return bool(value > expected)
            case "maximum":
                return bool(value <= expected)
            case "exclusiveMaximum":
                return bool(value < expected)
            case "multipleOf" if isinstance(value, int) and isinstance(expected, int):
                return value % expected == 0
            case "minLength" | "minItems" | "minProperties":
                return bool(len(value) >= expected)
            case "maxLength" | "maxItems" | "maxProperties":
                return bool(len(value) <= expected)
            case "uniqueItems":
                return not expected or len({frozen(item) for item in value}) == len(value)
            case "required":
                return all(name in value for name in expected)
            case "properties":
                return _all(
                    inner(expected[name], value[name]) for name in expected if name in value
                )
            case "additionalProperties" if not node.get("patternProperties"):
                named = node.get("properties", {})
                return _all(inner(expected, value[name]) for name in value if name not in named)
            case "prefixItems":
                return _all(map(inner, expected, value))
            case "items":
                return _all(
                    inner(expected, item) for item in value[len(node.get("prefixItems", ())) :]
                )
            case "allOf":
                return _all(inner(item, value) for item in expected)
            case "anyOf":
                return _not(_all(_not(inner(item, value)) for item in expected))
            case "not":
                return _not(inner(expected, value))
            case "$ref" if (target := node.resolve()) is not None:
                return accepts(target, value, effort, nesting + 1)
        return None

    return _all(check(keyword, expected) for keyword, expected in node.schema.items())


def _all(answers: Iterable[bool | None]) -> bool | None:
    result: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        result = answer and result
    return result


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer
