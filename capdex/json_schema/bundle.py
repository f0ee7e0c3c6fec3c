"""Make the parameters of a tool one schema by itself, without `#/schema` (P8, P10).

In a package `#/schema` and paths below it mean the package's own schema, which no validator
elsewhere knows. Here it becomes an entry of `$defs`, and all references are written accordingly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, unquote

from capdex.json_schema.keywords import KEYWORDS, Shape
from capdex.json_schema.schema import pointer_steps

PACKAGE_STEP: Final = "schema"

_VALUES: Final = ("const", "default")  # keywords of any value, which is not a schema

_Rewrite = Callable[[str], str]


def self_contained(parameters: dict[str, Any], package_schema: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with the package's schema in `$defs`, if they refer to it.

    Both are schemas that `check_schema` accepts. Parameters that do not are returned equal.
    """
    used = False
    key = "schema"
    while key in parameters.get("$defs", {}):
        key = f"package_{key}"

    def of_tool(reference: str) -> str:
        nonlocal used
        steps = pointer_steps(reference)
        if steps is None or steps[:1] != [PACKAGE_STEP]:
            return reference
        used = True
        return _pointer("$defs", key, *steps[1:])

    def of_package(reference: str) -> str:
        steps = pointer_steps(reference)
        if steps is None:
            return f"#{key}.{unquote(reference[1:])}"
        return _pointer("$defs", key, *steps)

    schema = _rewrite(parameters, of_tool, lambda anchor: anchor)
    if not used:
        return parameters
    own = {word: value for word, value in package_schema.items() if word not in ("$id", "$schema")}
    # Anchors are prefixed, so that none of the package has the name of one of the tool.
    definition = _rewrite(own, of_package, lambda anchor: f"{key}.{anchor}")
    return {**schema, "$defs": {**schema.get("$defs", {}), key: definition}}


def _pointer(*steps: str) -> str:
    return "#" + "".join(f"/{quote(x.replace('~', '~0').replace('/', '~1'), '$~')}" for x in steps)


def _rewrite(value: object, reference: _Rewrite, anchor: _Rewrite) -> Any:
    """Return a copy of a schema, or a list of schemas, with its references changed."""
    if isinstance(value, list):
        return [_rewrite(item, reference, anchor) for item in value]
    if not isinstance(value, dict):
        return value
    copy: dict[str, Any] = {}
    for word, inner in value.items():
        # References may lead into values of unknown keywords, so these count as schemas, too.
        match KEYWORDS.get(word, None if word in _VALUES else Shape.SCHEMA):
            case Shape.REFERENCE if isinstance(inner, str):
                copy[word] = reference(inner)
            case Shape.ANCHOR if isinstance(inner, str):
                copy[word] = anchor(inner)
            case Shape.SCHEMA_MAP | Shape.DEPENDENCIES if isinstance(inner, dict):
                copy[word] = {
                    name: _rewrite(item, reference, anchor) for name, item in inner.items()
                }
            case Shape.SCHEMA | Shape.SCHEMAS:
                copy[word] = _rewrite(inner, reference, anchor)
            case _:
                copy[word] = inner
    return copy
