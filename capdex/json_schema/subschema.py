"""A subschema of JSON Schema 2020-12, its references, and whether it accepts a value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from capdex.json import levels
from capdex.json_schema.keywords import (
    ANNOTATIONS,
    KEYWORD_KINDS,
    KEYWORDS,
    KINDS,
    MARKS,
    TYPES,
    Shape,
    frozen,
    kind,
    kinds,
    same,
)
from capdex.json_schema.schema import at_pointer, pointer_steps

MAX_REFERENCES: Final = 20  # from one to the next

READ_BY: Final = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
BOUNDS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties"), operator.ge),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties"), operator.le),
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}

Effort: TypeAlias = Iterator[int]  # the steps left, which several comparisons may share
VALUES_A_STEP: Final = 20  # of what is compared one by one, such as an enumeration


class Schema(NamedTuple):
    """A subschema with the document that its references point into.

    `package` is the schema that `#/schema` means in a tool's parameters.
    """

    value: Any
    root: Any
    package: Any = None

    def sub(self, value: object) -> Schema:
        """Return a subschema of this one."""
        return self._replace(value=value)

    def get(self, keyword: str, default: object = None) -> Any:
        """Return the value of a keyword, or `default`."""
        return self.value.get(keyword, default) if isinstance(self.value, dict) else default

    def property(self, name: str) -> Schema:
        """Return the schema of a property; a name that a pattern may match can hold anything."""
        other = True if self.get("patternProperties") else self.get("additionalProperties", True)
        return self.sub(self.get("properties", {}).get(name, other))

    def item(self, index: int) -> Schema:
        """Return the schema of the item at `index`."""
        prefix = self.get("prefixItems", ())
        return self.sub(prefix[index] if index < len(prefix) else self.get("items", True))

    def listed(self) -> list[Any] | None:
        """Return the values that `const` and `enum` leave; None without either."""
        listed: list[Any] | None = self.get("enum")
        if not isinstance(self.value, dict) or "const" not in self.value:
            return listed
        const = self.value["const"]
        return [const] if listed is None or any(same(const, x) for x in listed) else []

    def types(self) -> frozenset[str]:
        """Return the kinds of values that `type`, `enum` and `const` leave."""
        listed = self.listed()
        return kinds(self.get("type", TYPES)) & (KINDS if listed is None else {*map(kind, listed)})

    def assertions(self) -> list[str]:
        """Return the keywords that accept or refuse values."""
        words = () if isinstance(self.value, bool) else self.value
        return [x for x in words if x in (*KEYWORDS, "const") and x not in (*ANNOTATIONS, *READ_BY)]

    def target(self) -> Schema | None:
        """Return the target of `$ref`; None without one and for anchors, which are not followed."""
        steps = pointer_steps(self.get("$ref", "#none"))
        if steps is None:
            return None
        in_package = self.package is not None and steps[:1] == ["schema"]
        document = Schema(self.package, self.package) if in_package else self.sub(self.root)
        exists, target = at_pointer(document.value, steps[in_package:])
        return document.sub(target) if exists else None

    def resolved(self) -> tuple[Schema, dict[str, Any]]:
        """Follow `$ref` while no other assertion is beside it; return merge annotations, too."""
        schema: Schema = self
        marks: dict[str, Any] = {}
        for _ in range(MAX_REFERENCES):
            marks = {x: schema.get(x) for x in MARKS if schema.get(x) is not None} | marks
            target = schema.target() if schema.assertions() == ["$ref"] else None
            if target is None:
                break
            schema = target
        return schema, marks


def take(effort: Effort, steps: int) -> bool:
    """Take some steps; False if there are not as many left."""
    return sum(1 for _ in islice(effort, steps)) == steps


def count_values(value: object) -> int:
    """Return how many values a JSON value has, with itself."""
    return sum(map(len, levels(value)))


def names_and_values(schema: Schema) -> int:
    """Return how many names and values a schema has, without those of its subschemas."""
    words = schema.value.items() if isinstance(schema.value, dict) else ()
    parts = (Shape.SCHEMA, Shape.SCHEMAS, Shape.SCHEMA_MAP)
    held = ((KEYWORDS.get(word) in parts, x) for word, x in words if isinstance(x, dict | list))
    return sum(len(x) if apart else count_values(x) for apart, x in held)


def accepts(schema: Schema, value: object, effort: Effort) -> bool | None:
    """True if a schema accepts a value, False if it refuses it, None if that is unknown."""
    schema = schema.resolved()[0]
    if isinstance(schema.value, bool):
        return schema.value
    if not take(effort, 1):
        return None
    words = [x for x in schema.assertions() if kind(value) in KEYWORD_KINDS.get(x, KINDS)]
    return _all(_accepts(schema, word, value, effort) for word in words)


def _accepts(schema: Schema, word: str, value: Any, effort: Effort) -> bool | None:
    limit = schema.value[word]
    match word:
        case "type":
            return kind(value) in kinds(limit)
        case "enum" | "const":
            values = limit if word == "enum" else [limit]
            take(effort, len(values) // VALUES_A_STEP)
            return any(same(value, x) for x in values if x == value)
        case "multipleOf" if isinstance(value, int) and isinstance(limit, int):
            return value % limit == 0
        case "uniqueItems":
            return not limit or len({*map(frozen, value)}) == len(value)
        case "required":
            return all(name in value for name in limit)
        case "properties" | "additionalProperties":
            return _all(accepts(schema.property(x), y, effort) for x, y in value.items())
        case "items" | "prefixItems":
            return _all(accepts(schema.item(i), item, effort) for i, item in enumerate(value))
    if word in BOUNDS:
        return BOUNDS[word](value if word.endswith("imum") else len(value), limit)
    return None


def _all(answers: Iterable[bool | None]) -> bool | None:
    known = {*answers}
    return False if False in known else None if None in known else True
