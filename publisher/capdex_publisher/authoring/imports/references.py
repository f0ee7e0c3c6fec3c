"""References of documents that are imported, and what stands at their ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote, urljoin

from capdex.json import Json, list_of, object_of
from capdex.json_schema.keywords import RULES, Shape
from capdex.json_schema.schema import at_pointer, pointer_steps

OPENED: Final = "\0"  # among the hidden members of a part: those beside it have members, too
MAX_REFERENCES: Final = 32  # that lead to one another
_NUMBERS: Final = {"integer": "number", "number": "integer"}  # types that share values
_IN_FRAGMENT: Final = "~!$&'()*+,;=:@?-._"  # RFC 3986, 3.5


def found_at(document: Json | None, reference: str) -> Any:
    """Return what a reference into a document names; None if nothing, or if it leads elsewhere."""
    steps = pointer_steps(reference) if reference.startswith("#") else None
    return None if steps is None else at_pointer(document, steps)[1]


def write_pointers(root: Json) -> None:
    """Write references by a name as JSON pointers from the root, in place.

    A name is an `$id` or an anchor; a part with an `$id` is the root of the references in it (JSON
    Schema 2020-12, 8.2). What leads to nothing there stays: many documents mean their own root.
    """
    given = root.get("$self", root.get("$id", root.get("id")))
    own = given.partition("#")[0] if isinstance(given, str) else ""
    places: dict[str, tuple[str, ...]] = {own: ()}
    references: list[tuple[Json, str]] = []
    waiting: list[tuple[tuple[str, ...], Any, str]] = [((), root, own)]
    for steps, value, base in waiting:
        if isinstance(value, dict):
            for word, before in (("$id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")):
                if isinstance(name := value.get(word), str):
                    uri = _joined(base, before + name.removesuffix("#"))
                    places.setdefault(uri, steps)
                    base = uri.partition("#")[0]
            reference = value.get("$ref")
            if isinstance(reference, str) and (base != own or not reference.startswith("#/")):
                references.append((value, _joined(base, reference)))
        items = value.items() if isinstance(value, dict) else enumerate(value)
        waiting += [((*steps, str(x)), y, base) for x, y in items if isinstance(y, dict | list)]
    for value, uri in references:
        name, _, fragment = uri.partition("#")
        place, more = places.get(uri), pointer_steps(f"#{fragment}")
        if place is None and name in places and more is not None:
            place = (*places[name], *more)
        if place is not None and at_pointer(root, place)[0]:
            value["$ref"] = pointer(place)


def _joined(base: str, reference: str) -> str:
    try:
        return base + reference if reference.startswith("#") else urljoin(base, reference)
    except ValueError:  # such as an odd host
        return reference


def pointer(steps: Iterable[str]) -> str:
    """Return a JSON pointer as a fragment of a URI."""
    escaped = (x.replace("~", "~0").replace("/", "~1") for x in steps)
    return "#" + "".join(f"/{quote(x, safe=_IN_FRAGMENT)}" for x in escaped)


def target(document: Json, value: object) -> Any:
    """Return a value, or what it refers to in a document: None if that is missing."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
            return value
        value = found_at(document, value["$ref"])
    return None


def beside(document: Json, value: object) -> Json:
    """Return what stands beside the references of a schema: OpenAPI 3.1 adds it, 3.0 ignores it."""
    siblings: Json = {}
    for _ in range(MAX_REFERENCES):
        if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
            break
        siblings |= {key: item for key, item in value.items() if key != "$ref"}
        value = found_at(document, value["$ref"])
    return siblings


def is_read_only(schema: object, document: Json, *, old: bool) -> bool:
    """Return True for a property that a reply has and a request has not (OpenAPI)."""
    parts = [object_of(target(document, schema)), {} if old else beside(document, schema)]
    return any(x.get("readOnly") is True for x in parts)


def united(
    document: Json | None, value: object, *, old: bool, words: Sequence[str] = ("allOf",)
) -> list[Json]:
    """Return a schema and what its references and `allOf` add to it: they judge one value.

    `old`: of a dialect that ignores what stands beside a reference. `words` have the parts.
    """
    schemas, waiting = list[Json](), [value]
    while waiting and len(schemas) < MAX_REFERENCES:
        schema = waiting.pop()
        if not isinstance(schema, dict) or any(schema is x for x in schemas):
            continue
        if isinstance(reference := schema.get("$ref"), str):
            waiting.append(found_at(document, reference))
            schema = {} if old else schema
        schemas.append(schema)
        for word in words:
            waiting += list_of(schema.get(word))
    return schemas


def discriminator_of(schema: Json) -> Json:
    """Return the discriminator of a schema as OpenAPI 3 writes it; Swagger has the name alone."""
    given = schema.get("discriminator")
    return given if isinstance(given, dict) else {"propertyName": given}


def overlapping(choices: Iterable[Sequence[Json]]) -> bool:
    """Return True if types and formats alone let a value fit two choices, each with its parts.

    No format is checked, an integer is a number, too, and null fits each choice that allows it.
    """
    met: dict[str, bool] = {}  # the types of choices, and if one of these has a format
    for parts in choices:
        kinds = {str(kind) for x in parts for kind in _kinds(x)}
        formatted = any("format" in x for x in parts)
        if any(_NUMBERS.get(kind) in met for kind in kinds):
            return True
        if any(kind == "null" or formatted or met[kind] for kind in kinds & met.keys()):
            return True
        met |= {kind: formatted or met.get(kind, False) for kind in kinds}
    return False


def _kinds(schema: Json) -> list[Any]:
    kind = schema.get("type", [])
    kinds = kind if isinstance(kind, list) else [kind]
    return [*kinds, "null"] if schema.get("nullable") is True else kinds


def read_only(document: Json, value: object, *, old: bool) -> frozenset[str]:
    """Return the members of an object that a reply has and a request has not (OpenAPI).

    OPENED is among them if several parts have members, so that none of them may be closed.
    """
    members = [x.get("properties") for x in united(document, value, old=old)]
    listed = [x for x in members if isinstance(x, dict)]
    names = {name for own in listed for name in own if is_read_only(own[name], document, old=old)}
    return frozenset(names | ({OPENED} if len(listed) > 1 else set()))


def renamed(root: Json, reference: str) -> str:
    """Return a pointer into a schema of draft-07 as one into the same schema in 2020-12."""
    steps = pointer_steps(reference) if reference.startswith("#") else None
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
    return reference if words == (steps or []) else pointer(words)
