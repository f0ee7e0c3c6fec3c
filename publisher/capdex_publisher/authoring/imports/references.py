"""References of documents that are imported, and what stands at their ends."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from capdex.json import Json
from capdex.json_schema.keywords import RULES, Shape
from capdex.json_schema.schema import at_pointer, pointer_steps

MAX_REFERENCES: Final = 32  # that lead to one another
MAX_LOOKED_AT: Final = 20_000  # values, for the one that has a name
_IN_FRAGMENT: Final = "~!$&'()*+,;=:@?-._"  # RFC 3986, 3.5


def found_at(document: Json | None, reference: str) -> Any:
    """Return what a reference into a document names; None if nothing, or if it leads elsewhere."""
    steps = pointer_steps(reference) if reference.startswith("#") else None
    if steps is None:
        document = at_pointer(document, ("components", "schemas"))[1]
        steps = _steps_to(document, reference)
    return None if steps is None else at_pointer(document, steps)[1]


def _steps_to(root: object, name: str) -> list[str] | None:
    """Return the steps to the schema that has `name` as `$id`, or as `$anchor` after a `#`."""
    return _named(_Root(root)).get(name)


class _Root(NamedTuple):
    """A value that is the same as another one only if it is that one: JSON has no hash."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Root) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@lru_cache(maxsize=4)  # a document of many files refers to them thousands of times
def _named(root: _Root) -> dict[str, list[str]]:
    """Return the steps to each schema of a document that has a name, the nearest if two have it."""
    found: dict[str, list[str]] = {}
    waiting: list[tuple[list[str], object]] = [([], root.value)]
    for steps, value in waiting:
        items: Iterable[tuple[Any, Any]] = enumerate(value) if isinstance(value, list) else ()
        if isinstance(value, dict):
            items = value.items()
            for word, before in (("$id", ""), ("$anchor", "#")):
                if isinstance(name := value.get(word), str):
                    found.setdefault(f"{before}{name}", steps)
        if len(waiting) < MAX_LOOKED_AT:
            waiting += [([*steps, str(x)], y) for x, y in items if isinstance(y, dict | list)]
    return found


def target(document: Json | None, value: object) -> Any:
    """Return a value, or what it refers to in a document: None if that is missing."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
            return value
        value = found_at(document, value["$ref"])
    return None


def beside(document: Json | None, value: object) -> Json:
    """Return what stands beside the references of a schema: OpenAPI 3.1 adds it, 3.0 ignores it."""
    found: Json = {}
    for _ in range(MAX_REFERENCES):
        if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
            break
        found |= {key: item for key, item in value.items() if key != "$ref"}
        value = found_at(document, value["$ref"])
    return found


def is_read_only(schema: object, document: Json | None, *, old: bool) -> bool:
    """Return True for a property that a reply has and a request has not (OpenAPI)."""
    found = [target(document, schema), {} if old else beside(document, schema)]
    return any(isinstance(x, dict) and x.get("readOnly") is True for x in found)


def united(document: Json | None, value: object, *, old: bool) -> list[Json]:
    """Return a schema and what its references and `allOf` add to it: they judge one value.

    `old`: of a dialect that ignores what stands beside a reference.
    """
    found, waiting = list[Json](), [value]
    while waiting and len(found) < MAX_REFERENCES:
        one = waiting.pop()
        if not isinstance(one, dict) or any(one is x for x in found):
            continue
        reference, parts = one.get("$ref"), one.get("allOf")
        is_alone = old and isinstance(reference, str)
        found.append({} if is_alone else one)
        if isinstance(reference, str):
            waiting.append(found_at(document, reference))
        if not is_alone and isinstance(parts, list):
            waiting += parts
    return found


def read_only(document: Json | None, value: object, *, old: bool) -> frozenset[str]:
    """Return the members of an object that a reply has and a request has not (OpenAPI)."""
    if document is None:
        return frozenset()
    members = [x.get("properties") for x in united(document, value, old=old)]
    return frozenset(
        name
        for x in members
        if isinstance(x, dict)
        for name, schema in x.items()
        if is_read_only(schema, document, old=old)
    )


def renamed(root: Json, reference: str) -> str:
    """Return a reference into a schema of draft-07 as one into the same schema in 2020-12.

    A URL in front of it that is the `$id` of the schema is left out, as the `$id` is; one that is
    the `$id` of a part becomes the way to it.
    """
    base, hash_, _ = reference.partition("#")
    if base and base == str(root.get("$id", root.get("id", ""))).partition("#")[0]:
        reference = hash_ + reference.partition("#")[2] if hash_ else "#"
    is_local = reference.startswith("#")
    steps = pointer_steps(reference) if is_local else _steps_to(root, reference)
    here: Any = root
    words: list[str] = []
    is_schema = True
    for step in steps or ():
        word = step
        if is_schema and isinstance(here, dict):
            tuple_ = isinstance(here.get("items"), list)
            words_now = {"definitions": "$defs", "dependencies": "dependentSchemas"}
            if tuple_:
                words_now |= {"items": "prefixItems", "additionalItems": "items"}
            word = words_now.get(step, step)
        one_schema = is_schema and word in RULES and RULES[word][0] is Shape.SCHEMA
        is_schema = one_schema or not is_schema
        words.append(word)
        here = at_pointer(here, [step])[1]
    if (is_local and words == steps) or steps is None:
        return reference
    escaped = (x.replace("~", "~0").replace("/", "~1") for x in words)
    return "#" + "".join(f"/{quote(x, safe=_IN_FRAGMENT)}" for x in escaped)
