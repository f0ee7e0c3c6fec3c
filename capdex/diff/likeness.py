"""Whether two subschemas say the very same, references included."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final, NamedTuple

from capdex.diff.facts import Node
from capdex.json_schema.keywords import KEYWORDS, Shape
from capdex.json_schema.merge_annotations import MARKS
from capdex.json_schema.values import same

# What takes or refuses no value by itself.
ANNOTATIONS: Final = frozenset(
    [
        "$anchor",
        "$comment",
        "$defs",
        "$dynamicAnchor",
        "$id",
        "$recursiveAnchor",
        "$schema",
        "$vocabulary",
        "default",
        "definitions",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    ]
)
_WHOLE: Final = "#whole"  # an anchor: what it means hangs on the whole document


class _Print(NamedTuple):
    """A fingerprint of what a subschema says, and the references inside it."""

    digest: str
    references: frozenset[str]
    schema: Any  # kept alive, so that its identity stays its own


class Likeness:
    """Compares subschemas by fingerprint; each is read once."""

    def __init__(self) -> None:
        self._prints: dict[int, _Print] = {}
        self._documents: dict[tuple[int, int], bool] = {}

    def holds(self, node: Node, parts: Iterable[Node]) -> bool:
        """Whether one of `parts` says the same as `node`."""
        return any(self._alike(part, node, set()) for part in parts)

    def _alike(self, a: Node, b: Node, seen: set[tuple[str, int, int]]) -> bool:
        ours, theirs = self._print(a.schema), self._print(b.schema)
        if ours.digest != theirs.digest:
            return False
        for reference in ours.references:
            key = (reference, id(a.document.root), id(b.document.root))
            if key in seen:
                continue
            seen.add(key)
            target, other = a.resolve(reference), b.resolve(reference)
            if target is None or other is None:
                if not self._whole(a, b):
                    return False
            elif not self._alike(target, other, seen):
                return False
        return True

    def _whole(self, a: Node, b: Node) -> bool:
        """Whether two documents are the same in every letter."""
        one, other = a.document, b.document
        key = (id(one.root), id(other.root))
        if key not in self._documents:
            self._documents[key] = same(one.root, other.root)
        return self._documents[key] and same(one.package, other.package)

    def _print(self, schema: Any) -> _Print:
        if id(schema) not in self._prints:
            self._prints[id(schema)] = self._read(schema)
        return self._prints[id(schema)]

    def _read(self, schema: Any) -> _Print:
        if not isinstance(schema, dict):
            return _Print(_digest(schema), frozenset(), schema)
        said: dict[str, Any] = {}
        references: set[str] = set()
        for keyword, value in schema.items():
            shape = KEYWORDS.get(keyword)
            if keyword in ANNOTATIONS or not (shape or keyword == "const" or keyword in MARKS):
                continue
            said[keyword] = value
            if shape is Shape.SCHEMA:
                said[keyword] = self._inner(value, references)
            elif shape is Shape.SCHEMAS:
                said[keyword] = [self._inner(item, references) for item in value]
            elif shape in (Shape.SCHEMA_MAP, Shape.DEPENDENCIES):
                said[keyword] = {k: self._inner(v, references) for k, v in value.items()}
            elif keyword == "$ref":
                references.add(value)
            elif shape is Shape.REFERENCE:
                references.add(_WHOLE)
        return _Print(_digest(said), frozenset(references), schema)

    def _inner(self, schema: Any, references: set[str]) -> str:
        found = self._print(schema)
        references |= found.references
        return found.digest


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
